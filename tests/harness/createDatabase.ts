import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { findTestServer, onServer } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** What the databases of this run on the server are called, each with a name of its own behind it. */
    databaseUrlPrefix: string;
  }
}

/** Databases of its own for the run, one for each worker, removed afterwards. */
export default async function setup(project: TestProject) {
  const { url } = await findTestServer();
  const prefix = `deckhand_test_${randomBytes(6).toString('hex')}_`;
  project.provide('databaseUrlPrefix', Object.assign(new URL(url!), { pathname: `/${prefix}` }).href);
  return async () => {
    const databases = await onServer<{ datname: string }>(
      url!,
      `select datname from pg_database where starts_with(datname, '${prefix}')`,
    );
    for (const { datname } of databases) await onServer(url!, `drop database ${datname} with (force)`);
  };
}
