import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { findTestServer } from '../harness/server.ts';
import { freezeDatabase, killDatabase, silenceDatabase, stopInSilence } from './databaseFaults.ts';
import { failOver } from './failover.ts';
import { fillDisk, mountDisk } from './fullDisk.ts';
import { isCreate } from './load.ts';
import { killMirror } from './mirrorFaults.ts';
import { startTogether, workTogether } from './nodeFaults.ts';
import { FIRST, givenOldVersion, missingHistory, missingPackages, PREVIOUS } from './oldVersion.ts';
import {
  givenDatabase,
  givenEmbedded,
  type Outcome,
  overNetwork,
  type Place,
  withRemoval,
  withWorkers,
} from './outcome.ts';
import { givenCluster, givenRedis } from './privateServer.ts';
import { freezeRedis, killRedis } from './redisFaults.ts';
import { killService, stopService } from './serviceFaults.ts';
import { upgrade } from './upgrade.ts';
import { CLIENTS } from './world.ts';

/** Injects faults into the service, PostgreSQL and Redis under load, and checks that acknowledged writes are stored: `npm run test:night -- faults`. */

const values = programOptions('npm run test:night -- faults', {
  kills: '100',
  'database-kills': '10',
  failovers: '6',
  stops: '12',
  starts: '10',
  /** How many changes the mirror of a board must follow. */
  changes: '20000',
  /** How many cards the upgrades begin with, and how long each of their phases lasts at least. */
  cards: '300000',
  'phase-seconds': '0',
  /** Part of the name of the faults to try. */
  only: '',
});
const counts = {
  kills: Number(values.kills),
  databaseKills: Number(values['database-kills']),
  failovers: Number(values.failovers),
  stops: Number(values.stops),
  starts: Number(values.starts),
  changes: Number(values.changes),
  cards: Number(values.cards),
  phaseSeconds: Number(values['phase-seconds']),
};
const FROZEN = { seconds: 15, secondsAfter: 12 };
const SILENT = { seconds: 45, secondsAfter: 12 };
const LONGEST_RECOVERY_MILLISECONDS = 1_000;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const cluster = await givenCluster();
if (!cluster) skip('faults of PostgreSQL itself', 'No PostgreSQL server is installed.');
const redis = await givenRedis();
if (!redis) skip('faults of Redis', 'No redis-server is installed.');
const disk = mountDisk();
if (!disk) skip('a full disk', 'This user may not mount a file system.');
const serverUrl = cluster?.url ?? (await findTestServer()).url;
if (!serverUrl) skip('everything on PostgreSQL', 'No server is reachable.');

type On = (work: (place: Place) => Promise<Outcome>) => Promise<Outcome>;
const outcomes: Outcome[] = [];
try {
  const half = (count: number) => (serverUrl ? Math.ceil(count / 2) : count);
  const onEmbedded: On = async (work) => withRemoval(await givenEmbedded(), work);
  const onServer: On = async (work) => withRemoval(await givenDatabase(serverUrl!), work);
  const onEmpty: On = async (work) => withRemoval(await givenDatabase(serverUrl!, { isEmpty: true }), work);
  for (const on of serverUrl ? [onEmbedded, onServer] : [onEmbedded]) {
    await attempt('kill -9 of the service', () => on((place) => killService(place, half(counts.kills))));
    await attempt('SIGTERM under clients', () => on((place) => stopService(place, half(counts.stops), CLIENTS)));
  }
  if (serverUrl) {
    await attempt('SIGTERM under clients, workers', () =>
      onServer((place) => stopService(withWorkers(place), half(counts.stops), CLIENTS)),
    );
    await attempt('PostgreSQL silent', () =>
      overNetwork(serverUrl, (place, network) => silenceDatabase(place, network, SILENT)),
    );
    await attempt('SIGTERM while silent', () =>
      overNetwork(serverUrl, (place, network) => stopInSilence(place, network, 6)),
    );
    for (let start = 0; start < counts.starts; start++) {
      await attempt('nodes start', () => onEmpty((place) => startTogether(place, 2 + (start % 3))));
    }
    await attempt('kill -9 of a mirror', () =>
      onServer((place) => killMirror(place, { changes: counts.changes, writers: 8, kills: 20, cuts: 60 })),
    );
    await attempt('nodes work', () => onEmpty((place) => workTogether(place, 1000)));
  }
  if (cluster) {
    await attempt('kill -9 of PostgreSQL', () =>
      onServer((place) => killDatabase(place, cluster, counts.databaseKills, LONGEST_RECOVERY_MILLISECONDS)),
    );
    await attempt('fail-over', () => failOver(counts.failovers, 500));
    await attempt('PostgreSQL frozen', () => onServer((place) => freezeDatabase(place, cluster, FROZEN)));
    for (const version of [FIRST, PREVIOUS])
      await attempt(`upgrade from the ${version.name}`, () => upgradeFrom(version));
  }
  if (redis) {
    await attempt('kill -9 of Redis', () => onEmbedded((place) => killRedis(place, redis, 8)));
    await attempt('Redis frozen', () => onEmbedded((place) => freezeRedis(place, redis, 12)));
  }
  if (disk) await attempt('full disk', () => fillDisk(disk.directory, 60));
} finally {
  await removeProcesses();
  await Promise.all([cluster?.remove(), redis?.remove()]);
  disk?.remove();
}
printTable();
process.exit(outcomes.some(({ violations }) => violations.length > 0) ? 1 : 0);

async function upgradeFrom(version: typeof FIRST): Promise<Outcome | undefined> {
  const reason = missingHistory(version) ?? (await missingPackages(version));
  if (reason) return skip(`the upgrade from the ${version.name}`, reason);
  const old = await givenOldVersion(version, { isInstalled: !version.hasOurPackages });
  const { cards, phaseSeconds } = counts;
  const size = {
    cards,
    phaseSeconds,
    nodes: 2,
    requests: 2000,
    longestMigrationSeconds: 600,
    longestCreateMilliseconds: 2000,
  };
  return withRemoval(await givenDatabase(serverUrl!, { isEmpty: true }), (place) => upgrade(place, old, size));
}

function skip(what: string, why: string): undefined {
  console.log(`SKIPPED: ${what}. ${why}`);
}

/** Runs one fault and prints its violations; an error during the run counts as a violation too. Undefined was skipped. */
async function attempt(name: string, work: () => Promise<Outcome | undefined>): Promise<void> {
  if (!name.includes(values.only)) return;
  const outcome = await work().catch(
    (error): Outcome => ({ fault: name, rounds: 0, sent: [], violations: [error.stack], times: [] }),
  );
  if (!outcome) return;
  outcomes.push(outcome);
  console.log(`${outcome.fault}: ${outcome.violations.length} violations`);
  for (const violation of outcome.violations.slice(0, 20)) console.log(`  ${violation}`);
}

function printTable() {
  const rows = outcomes.map(({ fault, rounds, sent, violations, times }) => {
    const count = (wanted: string) => sent.filter(({ outcome }) => outcome === wanted).length;
    const most = (all: number[]) => Math.round(all.reduce((largest, one) => Math.max(largest, one), 0));
    return {
      fault,
      rounds,
      sent: sent.length - count('unconnected'),
      acknowledged: count('acknowledged'),
      refused: count('refused'),
      lost: count('lost'),
      violations: violations.length,
      'slowest ms': most(sent.map(({ milliseconds }) => milliseconds)),
      'slowest create ms': most(
        sent.filter(({ operation }) => isCreate(operation)).map(({ milliseconds }) => milliseconds),
      ),
      'recovery ms': times.length
        ? `${Math.round(times.toSorted((a, b) => a - b)[times.length >> 1]!)}, at most ${most(times)}`
        : '',
    };
  });
  console.table(rows);
}
