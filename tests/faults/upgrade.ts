import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { connect, type Database } from '../../server/database/connect.ts';
import { adoptDatabase } from '../../server/database/incarnation.ts';
import { finishUpgrade } from '../../server/database/level.ts';
import { query } from '../../server/database/query.ts';
import { schemaDifference } from '../../server/database/schemaDifference.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { readRows, type StartedService, startService } from '../harness/process.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { isCreate, type Sent, startClients } from './load.ts';
import { migrationViolations } from './nodeFaults.ts';
import type { OldVersion } from './oldVersion.ts';
import { type Outcome, type Place, stopNode, withRemoval } from './outcome.ts';
import { startFollowers } from './upgradeFollowers.ts';
import { clientsOf, findChanged } from './upgradeLoad.ts';
import { fillOldTables, findNotRewritten } from './upgradeWorld.ts';

type Size = {
  cards: number;
  /** How many old ones, and how many new ones. */
  nodes: number;
  /** How many must be acknowledged by old nodes alone, by old and new ones together, and by new ones alone. */
  requests: number;
  longestMigrationSeconds: number;
  /** How long a create may take. Without a limit on a machine that does other work, too. */
  longestCreateMilliseconds?: number;
  /** How long each of these phases lasts at least. */
  phaseSeconds?: number;
};

/**
 * A rolling upgrade under load: two new nodes start beside two old ones and migrate the database, one more old node starts on
 * the new tables, then the old ones stop and the level of the database is raised. Followers and a receiver of webhooks get the
 * events of all that. If the old version can't be started, there is only its database.
 */
export const upgrade = async (place: Place, old: OldVersion, size: Size): Promise<Outcome> =>
  withRemoval(await givenWebhookReceiver(), (receiver) => upgradeWith(place, old, size, receiver));

async function upgradeWith(place: Place, old: OldVersion, size: Size, receiver: WebhookReceiver): Promise<Outcome> {
  const settings: Record<string, string> = { ...place.settings, WEBHOOK_ALLOWED_HOSTS: receiver.host };
  const oldNodes: StartedService[] = [];
  const startOld = async () => {
    const node = await old.start?.(settings);
    if (node) oldNodes.push(node);
  };
  // The first one creates the tables.
  await (old.start ? startOld() : old.createTables(settings.DATABASE_URL!));
  const world = await fillOldTables(settings, size.cards, old);
  for (let more = 1; more < size.nodes; more++) await startOld();
  const balancer = startBalancer(oldNodes);
  const phase = { isFinished: false };
  const load = startClients(clientsOf(world, old, phase), balancer);
  const endOfPhase = async () => {
    await Promise.all([load.acknowledged(size.requests), pause((size.phaseSeconds ?? 0) * 1000)]);
  };
  // Whoever creates a webhook proves who they are.
  if (old.isRecent) await readRows(settings, sql`update sessions set proven_at = now()`);
  const followers = old.start && old.isRecent ? await startFollowers(balancer, world, receiver) : undefined;
  if (old.start) await endOfPhase();

  const begun = performance.now();
  const { nodes, violations } = await startNewNodes(settings, size);
  const times = [performance.now() - begun];
  balancer.add(nodes);
  if (nodes.length > 0) {
    // As if an old node had crashed.
    await startOld();
    balancer.add(oldNodes.slice(size.nodes));
    await endOfPhase();
    for (const node of oldNodes) {
      // A recent version is unready before it stops to listen, so the balancer notices by itself.
      if (!old.isRecent) await balancer.takeOut(node);
      violations.push(...(await stopNode(node)).violations);
    }
    await endOfPhase();
    await raiseLevel(settings);
    phase.isFinished = true;
    await endOfPhase();
  }

  const sent = await load.stop();
  if (followers) violations.push(...(await followers.stop(settings)));
  violations.push(...balancer.stop(), ...sent.flatMap((each) => requestViolations(each, size)));
  for (const node of nodes) violations.push(...(await stopNode(node)).violations);
  violations.push(...(await databaseViolations(place, sent, { isMigrated: nodes.length > 0, ...old })));
  return { fault: `upgrade from the ${old.name}, ${size.cards} cards`, rounds: 1, sent, violations, times };
}

async function raiseLevel(settings: Record<string, string>): Promise<void> {
  const database = await connect(readSettings(settings));
  await finishUpgrade(database.db);
  await adoptDatabase(database.db).finally(database.close);
}

async function startNewNodes(settings: Record<string, string>, { nodes, longestMigrationSeconds }: Size) {
  const limit = pause(longestMigrationSeconds * 1000, undefined, { ref: false }).then(() => {
    throw new Error(`The migrations did not end in ${longestMigrationSeconds} s.`);
  });
  const starts = await Promise.allSettled(
    Array.from({ length: nodes }, () => Promise.race([startService(settings), limit])),
  );
  return {
    nodes: starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : [])),
    violations: starts.flatMap((start) => (start.status === 'rejected' ? [`a new node: ${start.reason}`] : [])),
  };
}

const CHECK_INTERVAL_MILLISECONDS = 100;
/** A node on a busy machine is slow to answer, and still ready. */
const LONGEST_CHECK_MILLISECONDS = 10_000;

/** Sends requests to ready nodes only, like a load balancer; `urls` has none before the first node is ready. */
function startBalancer(first: StartedService[]) {
  const nodes = [...first];
  const violations: string[] = [];
  let isStopping = false;
  const balancer = {
    urls: [] as string[],
    add: (more: StartedService[]) => nodes.push(...more),
    /** For a version that stops to listen at once. */
    takeOut: async (node: StartedService) => {
      nodes.splice(nodes.indexOf(node), 1);
      await pause(3 * CHECK_INTERVAL_MILLISECONDS);
    },
    stop: () => {
      isStopping = true;
      return violations;
    },
  };
  const isReady = async ({ url }: StartedService) => {
    const signal = AbortSignal.timeout(LONGEST_CHECK_MILLISECONDS);
    return (await fetch(`${url}/health/ready`, { signal }).catch(() => undefined))?.status === 200;
  };
  const check = async () => {
    while (!isStopping) {
      const checked = [...nodes];
      const areReady = await Promise.all(checked.map(isReady));
      const ready = checked.filter((node, at) => areReady[at] && nodes.includes(node));
      if (ready.length > 0) balancer.urls = ready.map(({ url }) => url);
      else if (balancer.urls.length > 0) violations.push('no node is ready');
      await pause(CHECK_INTERVAL_MILLISECONDS, undefined, { ref: false });
    }
  };
  void check();
  return balancer;
}

function requestViolations(
  { operation, surface, outcome, status, code, text, milliseconds }: Sent,
  { longestCreateMilliseconds = Number.POSITIVE_INFINITY }: Size,
): string[] {
  const isLate = isCreate(operation) && milliseconds > longestCreateMilliseconds;
  if (outcome === 'acknowledged' && !isLate) return [];
  return [`${surface} ${operation}: ${status ?? code} after ${Math.round(milliseconds)} ms ${text ?? ''}`];
}

async function databaseViolations(
  place: Place,
  sent: Sent[],
  { isMigrated, isRecent }: { isMigrated: boolean; isRecent: boolean },
): Promise<string[]> {
  const database = await connect(readSettings(place.settings));
  try {
    const changed = await findChanged(database.db, sent);
    if (!isMigrated) return changed;
    return [
      ...changed,
      ...(await migrationViolations(place)),
      ...(await schemaDifference(await database.orm())).map(
        (statement) => `the tables differ from the entities: ${statement}`,
      ),
      ...(await unfinished(database)),
      ...(isRecent ? [] : await findNotRewritten(database.db)),
    ];
  } finally {
    await database.close();
  }
}

/** Indexes and constraints that a migration left halfway. */
async function unfinished({ db }: Database): Promise<string[]> {
  const found = await query(
    db,
    sql<{ name: string }>`
      select indexrelid::regclass::text as name from pg_index where not indisvalid
      union all select conname from pg_constraint where not convalidated`,
  );
  return found.map(({ name }) => `${name} is not valid`);
}
