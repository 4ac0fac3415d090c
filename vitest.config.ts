import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { findTestServer } from './tests/harness/server.ts';

const server = await findTestServer();
if (server.url === undefined) console.log(`\nSKIPPED: the suites on a PostgreSQL server. ${server.reason}\n`);

/** Suites that talk to a database run on every kind of it; files share a worker's modules, and so its one database. */
const onDatabase = (name: 'embedded' | 'postgresql'): TestProjectInlineConfiguration => ({
  test: {
    name,
    include: ['tests/*.test.ts'],
    globalSetup: name === 'postgresql' ? ['tests/harness/createDatabase.ts'] : [],
    pool: 'threads',
    isolate: false,
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      onDatabase('embedded'),
      ...(server.url ? [onDatabase('postgresql')] : []),
      { test: { name: 'once', include: ['tests/once/*.test.ts'], testTimeout: 60_000 } },
    ],
  },
});
