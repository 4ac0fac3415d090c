import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { findTestServer } from './tests/harness/server.ts';

const server = await findTestServer();
if (server.url === undefined) console.log(`\nSKIPPED: the suites on a PostgreSQL server. ${server.reason}\n`);

/** Of the generated inputs: every run tries the same ones unless another seed is given. */
const { FAST_CHECK_SEED = '1' } = process.env;

/** Suites that talk to a database run on every kind of it; files share a worker's modules, and so its one database. */
const onDatabase = (name: 'embedded' | 'postgresql'): TestProjectInlineConfiguration => ({
  test: {
    name,
    include: ['tests/*.test.ts'],
    setupFiles: ['tests/harness/checkAnswers.ts'],
    globalSetup: name === 'postgresql' ? ['tests/harness/createDatabase.ts'] : [],
    pool: 'threads',
    isolate: false,
    env: { FAST_CHECK_SEED },
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
});

/** The slow starts of processes first, so that no worker is left alone with them at the end. */
class StartsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const isFirst = ({ project }: TestSpecification) => Number(project.name === 'once');
    return files.toSorted((one, other) => isFirst(other) - isFirst(one));
  }
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: StartsFirst },
    projects: [
      onDatabase('embedded'),
      ...(server.url ? [onDatabase('postgresql')] : []),
      {
        test: {
          name: 'once',
          include: ['tests/once/*.test.ts'],
          setupFiles: ['tests/harness/checkAnswers.ts'],
          env: { FAST_CHECK_SEED },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
