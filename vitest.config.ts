import { basename } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { findTestServer } from './tests/harness/server.ts';

const server = await findTestServer();
if (server.url === undefined) console.log(`\nSKIPPED: the suites on a PostgreSQL server. ${server.reason}\n`);

/** The seed of random inputs, the same in every run unless set. */
const { FAST_CHECK_SEED = '1' } = process.env;

/** Suites with a database run on both kinds; the files of a worker share its modules, and so its database. */
const onDatabase = (name: 'embedded' | 'postgresql'): TestProjectInlineConfiguration => ({
  test: {
    name,
    include: ['tests/*.test.ts'],
    setupFiles: ['tests/harness/checkAnswers.ts', 'tests/harness/openDatabase.ts'],
    globalSetup: [
      'tests/harness/makeWorkplace.ts',
      ...(name === 'postgresql' ? ['tests/harness/createDatabase.ts'] : []),
    ],
    pool: 'threads',
    isolate: false,
    env: { FAST_CHECK_SEED },
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});

/** The slow suites that start processes run first, these before the others: both workers end at about the same time. */
const LONGEST = [
  'documentation',
  'faults',
  'databaseCopy',
  'testKitPackage',
  'disturbedStart',
  'databaseBackup',
  'start',
  'boardChanges',
  'apiPage',
  'samples',
  'clientPackage',
  'dataDirectory',
  'testKit',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ project, moduleId }: TestSpecification) => {
      if (project.name !== 'once') return LONGEST.length + 1;
      const place = LONGEST.indexOf(basename(moduleId, '.test.ts'));
      return place < 0 ? LONGEST.length : place;
    };
    return files.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      onDatabase('embedded'),
      ...(server.url ? [onDatabase('postgresql')] : []),
      {
        test: {
          name: 'once',
          include: ['tests/once/*.test.ts'],
          setupFiles: ['tests/harness/checkAnswers.ts'],
          globalSetup: ['tests/harness/makeWorkplace.ts'],
          isolate: false,
          env: { FAST_CHECK_SEED },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
