import { randomBytes } from 'node:crypto';
import type { TestProject } from 'vitest/node';
import { findTestServer, onServer } from './server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    databaseUrl: string;
  }
}

/** A database of its own for the run, removed afterwards. */
export default async function setup(project: TestProject) {
  const { url } = await findTestServer();
  const name = `deckhand_test_${randomBytes(6).toString('hex')}`;
  await onServer(url!, `create database ${name}`);
  project.provide('databaseUrl', Object.assign(new URL(url!), { pathname: `/${name}` }).href);
  return () => onServer(url!, `drop database ${name} with (force)`);
}
