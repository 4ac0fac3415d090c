import { basename } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { hasServerPrograms } from './tests/faults/privateServer.ts';
import { findTestServer } from './tests/harness/server.ts';

const server = await findTestServer();
if (server.url === undefined) console.log(`\nSKIPPED: the suites on a PostgreSQL server. ${server.reason}\n`);
if (!hasServerPrograms())
  console.log('\nSKIPPED: the suites with replicas. The programs of a PostgreSQL server are not installed.\n');

/** The suites where a server differs from the embedded database: concurrency, plans, types and limits of connections; large ones, too. */
const ON_A_SERVER = [
  'addresses',
  'answerSize',
  'audit',
  'baselines',
  'changes',
  'connections',
  'deletion',
  'erasure',
  'eventFeed',
  'eventHandlers',
  'faults',
  'idempotency',
  'idle',
  'incarnation',
  'keyAge',
  'lane',
  'largeBoards',
  'mails',
  'manyCards',
  'migrate',
  'ownKey',
  'plans',
  'positions',
  'races',
  'recovery',
  'removal',
  'restoration',
  'rolloutModel',
  'rollouts',
  'schema',
  'search',
  'sso',
  'staleStatistics',
  'statements',
  'templateIdentifiers',
  'templatePush',
  'templateSync',
  'templates',
  'tenancy',
  'unknownFields',
  'rowVersions',
  'webhookResends',
  'webhookRights',
  'webhooks',
  'workloadIdentity',
];

/** Those of them where the embedded database has its own way: text search, and one connection for all. At night, all of them. */
const ON_BOTH = process.env.NIGHT ? ON_A_SERVER : ['erasure', 'idempotency', 'rolloutModel', 'search', 'webhooks'];

/** The longest of the slow suites start first, so that all workers end at about the same time. */
const LONGEST = [
  'documentation',
  'faults',
  'schedules',
  'documentedChanges',
  'disturbedStart',
  'pageRoles',
  'testKitPackage',
  'databaseBackup',
  'mailKills',
  'pages',
  'cardPanel',
  'boardPage',
  'apiPage',
  'databaseCopy',
  'upgrade',
  'traces',
  'failover',
  'sandbox',
  'erasureMarkers',
  'clientPackage',
  'incarnations',
  'boardChanges',
  'workers',
  'cli',
  'start',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.indexOf(basename(moduleId, '.test.ts'));
      return place < 0 ? LONGEST.length : place;
    };
    return files.toSorted((one, other) => rank(one) - rank(other));
  }
}

/** The seed of random inputs, the same in every run unless set. */
const { FAST_CHECK_SEED = '1' } = process.env;

type Settings = TestProjectInlineConfiguration['test'] & { setupFiles?: string[]; globalSetup?: string[] };

function project(
  name: string,
  include: string[],
  { setupFiles = [], globalSetup = [], ...more }: Settings,
): TestProjectInlineConfiguration {
  return {
    test: {
      name,
      include,
      setupFiles: ['tests/harness/checkAnswers.ts', 'tests/harness/longWaits.ts', ...setupFiles],
      globalSetup: ['tests/harness/makeWorkplace.ts', ...globalSetup],
      isolate: false,
      env: { FAST_CHECK_SEED },
      hookTimeout: 60_000,
      // Long enough for a busy machine: a condition that holds ends the wait at once.
      expect: { poll: { timeout: 15_000 } },
      ...more,
    },
  };
}

const fileOf = (suite: string) => `tests/${suite}.test.ts`;

/** The files of a worker share its modules, and so its database. */
const onDatabase: Settings = {
  setupFiles: ['tests/harness/openDatabase.ts'],
  pool: 'threads',
  testTimeout: 60_000,
};

export default defineConfig({
  test: {
    // More than the cores of a small machine: many suites wait.
    maxWorkers: 3,
    reporters: ['default', './tests/harness/progress.ts'],
    sequence: { sequencer: LongestFirst },
    projects: [
      project('embedded', ['tests/*.test.ts'], {
        ...onDatabase,
        ...(server.url && { exclude: ON_A_SERVER.filter((name) => !ON_BOTH.includes(name)).map(fileOf) }),
      }),
      ...(server.url
        ? [
            project('postgresql', ON_A_SERVER.map(fileOf), {
              ...onDatabase,
              globalSetup: ['tests/harness/createDatabase.ts'],
            }),
          ]
        : []),
      project('unit', ['tests/unit/*.test.ts', 'tests/history/*.test.ts'], { testTimeout: 60_000 }),
      project('slow', ['tests/slow/*.test.ts'], {
        testTimeout: 60_000,
        globalSetup: ['tests/harness/makeBundle.ts'],
      }),
      ...(hasServerPrograms()
        ? [
            project('slow-replicas', ['tests/replicas/*.test.ts'], {
              ...onDatabase,
              globalSetup: ['tests/harness/createCluster.ts'],
            }),
          ]
        : []),
    ],
  },
});
