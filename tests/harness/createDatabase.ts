import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { findTestServer, onServer } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** What the databases of this run on the server are called, each with the number of its worker behind it. */
    databaseUrlPrefix: string;
  }
}

const MOST_WORKERS = 16;

/** Databases of its own for the run, one for each worker that asks for one, removed afterwards. */
export default async function setup(project: TestProject) {
  const { url } = await findTestServer();
  const prefix = `deckhand_test_${randomBytes(6).toString('hex')}_`;
  project.provide('databaseUrlPrefix', Object.assign(new URL(url!), { pathname: `/${prefix}` }).href);
  return async () => {
    for (let worker = 0; worker <= MOST_WORKERS; worker++) {
      await onServer(url!, `drop database if exists ${prefix}${worker} with (force)`);
    }
  };
}
