import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { hasServerPrograms } from './tests/faults/privateServer.ts';
import { LONGEST_WAIT_MILLISECONDS } from './tests/harness/longestWait.ts';
import { relatedFolders } from './tests/harness/related.ts';
import { seed } from './tests/harness/sample.ts';
import { findTestServer } from './tests/harness/server.ts';

const server = await findTestServer();
if (server.url === undefined) console.log(`\nSKIPPED: the suites on a PostgreSQL server. ${server.reason}\n`);
if (!hasServerPrograms())
  console.log('\nSKIPPED: the suites with replicas. The programs of a PostgreSQL server are not installed.\n');

/** Where the embedded database has its own way: text search, one connection for all, large work in slices, upkeep, open metrics. */
const ON_BOTH = [
  ...['account/erasure', 'operation/idempotency', 'board/search', 'event/webhooks'],
  ...['database/upkeep', 'http/operatorPaths'],
].map((suite) => `tests/${suite}.test.ts`);

/** The longest suites start first, so that all workers end at about the same time. */
const LONGEST = (
  'docs/documentation page/boardPage page/cardPanel page/pages client/testKitPackage database/copy database/backup ' +
  'client/package page/apiPage contract/contractCommand database/upgrade page/roles database/faults boot/workers cli/cli ' +
  'operation/walk template/rollouts event/follow event/webhooks client/mirror database/migrate board/restoration ' +
  'board/search operation/idempotency'
).split(' ');

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((suite) => moduleId.includes(`/tests/${suite}.`));
      return place < 0 ? LONGEST.length : place;
    };
    return files.toSorted((one, other) => rank(one) - rank(other));
  }
}
const isShuffled = process.argv.some((word) => word.startsWith('--sequence.shuffle'));

type Settings = TestProjectInlineConfiguration['test'];

/** The files of a worker share its modules, and so its database. */
const project = (
  name: string,
  include: string[],
  { globalSetup = [], ...more }: Settings & { globalSetup?: string[] } = {},
): TestProjectInlineConfiguration => ({
  test: {
    name,
    include,
    setupFiles: ['tests/harness/checkAnswers.ts', 'tests/harness/checkWritten.ts', 'tests/harness/longWaits.ts'],
    globalSetup: ['tests/harness/makeWorkplace.ts', ...globalSetup],
    isolate: false,
    restoreMocks: true,
    env: { SEED: String(seed) },
    // Long enough for a busy machine: a condition that holds ends the wait at once. A test fails with what a wait has seen last.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: LONGEST_WAIT_MILLISECONDS } },
    ...more,
  },
});

const QUICK = 'tests/**/*.test.ts';
const SLOW = 'tests/**/*.slow.test.ts';
const REPLICAS = 'tests/replicas/*.slow.test.ts';

/** Slow suites that call a service of their own process, on the database of their worker. */
const SLOW_IN_PROCESS = [
  'tests/operation/*.slow.test.ts',
  'tests/template/rolloutModel.slow.test.ts',
  'tests/contract/contractCommand.slow.test.ts',
  'tests/call/fuzz.slow.test.ts',
];

const onServer: Settings & { globalSetup: string[] } = { globalSetup: ['tests/harness/createDatabase.ts'] };

const quickProjects = (include = [QUICK]) =>
  server.url
    ? [
        project('postgresql', include, { ...onServer, exclude: [SLOW] }),
        project('embedded', process.env.NIGHT ? include : ON_BOTH, { exclude: [SLOW] }),
      ]
    : [project('embedded', include, { exclude: [SLOW] })];

const slowProjects = () => [
  project('slow', [SLOW], {
    exclude: [REPLICAS, ...SLOW_IN_PROCESS],
    globalSetup: ['tests/harness/makeBundle.ts'],
  }),
  project('slow-in-process', SLOW_IN_PROCESS, server.url ? onServer : {}),
  ...(hasServerPrograms()
    ? [project('slow-replicas', [REPLICAS], { globalSetup: ['tests/harness/createCluster.ts'] })]
    : []),
];

const related = relatedFolders(process.argv.slice(2));
if (related) console.log(`\nOnly the suites of tests/${related.join(' and tests/')}: npm test runs all.\n`);

export default defineConfig({
  test: {
    // More than the cores of a small machine: many suites wait.
    maxWorkers: 3,
    reporters: ['default', './tests/harness/progress.ts'],
    ...(!isShuffled && { sequence: { sequencer: LongestFirst } }),
    projects: related
      ? quickProjects(related.map((folder) => `tests/${folder}/*.test.ts`)).slice(0, 1)
      : [...quickProjects(), ...slowProjects()],
  },
});
