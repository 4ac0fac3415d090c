import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { findTestServer, onServer } from './server.ts';
import { removeTemplates } from './serverTemplates.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of a test database, up to the name that each worker adds. */
    databaseUrlPrefix: string;
    /** Whether they are copies of one with all tables. */
    areCopies: boolean;
  }
}

/** Lets each worker create a database, and drops them all after the run. */
export default async function setup(project: TestProject) {
  const { url } = await findTestServer();
  const prefix = `deckhand_test_${randomBytes(6).toString('hex')}_`;
  project.provide('databaseUrlPrefix', Object.assign(new URL(url!), { pathname: `/${prefix}` }).href);
  project.provide('areCopies', true);
  return async () => {
    await removeTemplates();
    const created = `select datname from pg_database where starts_with(datname, '${prefix}')`;
    const databases = await onServer<{ datname: string }>(url!, created);
    for (const { datname } of databases) await onServer(url!, `drop database ${datname} with (force)`);
  };
}
