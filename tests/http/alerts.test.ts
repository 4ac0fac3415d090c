import { readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { type RawBuilder, sql } from 'kysely';
import { pino } from 'pino';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import type { Services } from '../../server/api/services.ts';
import { startBackground } from '../../server/database/background.ts';
import { endErasuresDue, finishUpgrade, LATEST_LEVEL, resumeWebhooks } from '../../server/database/level.ts';
import { type Db, query } from '../../server/database/query.ts';
import { claimWebhooks } from '../../server/domain/event/webhookClaim.ts';
import { deliver } from '../../server/domain/event/webhookDelivery.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { feedComplete } from '../harness/events.ts';
import { givenMailServer } from '../harness/mailServer.ts';
import { givenDirectory } from '../harness/process.ts';
import { evaluate, firing, parseSamples, type Rule, type Sample, type Scrape, secondsOf } from '../harness/promql.ts';
import { plan, workOffRollouts } from '../harness/rollout.ts';
import { databaseUrl, givenDatabase, givenService, scrape, testDatabase, withOwnDatabase } from '../harness/service.ts';
import { givenTemplate, sync } from '../harness/template.ts';
import { givenKey, givenMasterBoard, givenWebhook, givenWorld, testDb } from '../harness/world.ts';

withOwnDatabase();

const file = readFileSync(join(import.meta.dirname, '../../docs/prometheus/alerts.yaml'), 'utf8');
const rules: Rule[] = parse(file).groups.flatMap((group: { rules: Rule[] }) => group.rules);

type Node = Awaited<ReturnType<typeof givenNode>>;
type Work = (node: Node) => unknown;
type Inject = (samples: Sample[]) => Sample[];

/**
 * What an alert is about: real work on a real node.
 *
 * - `during`: before each scrape while it lasts.
 * - `inject`: changes these scrapes, for what can't happen within this process.
 * - `times`: each failed call counts so often, since a rate needs hundreds of calls.
 * - `isKept`: a node keeps the values for some seconds, so another one is scraped after each change.
 */
type Situation = { [part in 'begin' | 'during' | 'end']?: Work | Work[] } & {
  settings?: Record<string, string>;
  services?: Partial<Services>;
  inject?: Inject;
  times?: number;
  isKept?: boolean;
};

const SITUATIONS: Record<string, () => Situation | Promise<Situation>> = {
  DeckhandDown: () => ({ begin: ({ service }) => service.app.close(), end: ({ start }) => start() }),
  DeckhandUnready: () => ({ begin: setState(sql`erasures_due_at = now()`), end: onDb(endErasuresDue) }),
  DeckhandFailing: () => {
    const during = [...Array<Work>(19).fill(listBoards), createCard];
    return { begin: refuseCards('XX000'), during, end: acceptCards };
  },
  DeckhandDiskFull: () => ({ begin: [refuseCards('53100'), createCard], end: acceptCards }),
  DeckhandBusy: () => ({ begin: refuseCards('55P03'), during: createCard, times: 100, end: acceptCards }),
  DeckhandWaitingForDatabase: async () => {
    const url = Object.assign(new URL(databaseUrl!), { pathname: '/postgres' }).href;
    const { db, connections, close } = await givenDatabase({ DATABASE_URL: url, DATABASE_POOL_SIZE: '2' });
    onTestFinished(close);
    const { hold, release } = givenHold();
    const occupy = () => void Promise.allSettled([db.transaction().execute(hold)]);
    const pending = () => expect.poll(() => connections()?.pending);
    // Scrapes have connections of their own: they would wait, too.
    const services = { database: { ...(await testDatabase()), connections } };
    const during = [occupy, occupy, occupy, () => pending().toBeGreaterThan(0)];
    return { services, during, end: [release, () => pending().toBe(0)] };
  },
  // Real calls, but none that takes longer than a second.
  DeckhandSlow: () => ({
    during: listBoards,
    inject: altered('deckhand_operation_duration_seconds_bucket', (value, { le }) => (Number(le) <= 1 ? 0 : value)),
  }),
  // A blocked event loop would block other tests.
  DeckhandEventLoopBlocked: () => ({ inject: altered('nodejs_eventloop_lag_p99_seconds', () => 0.6) }),
  // Other processes: a node that starts twice, and then replaces a worker.
  DeckhandRestarting: () => {
    let starts = 0;
    const restarted = altered('process_start_time_seconds', (value) => value + 60 * Math.min(starts++, 2));
    const replaced = altered('deckhand_worker_replacements_total', () => 1);
    return { inject: (samples) => replaced(restarted(samples)) };
  },
  DeckhandRedisUnreachable: async () => {
    const settings = { REDIS_URL: await givenRedis() };
    return { settings, begin: ({ start }) => start({ REDIS_URL: 'redis://127.0.0.1:1' }), end: ({ start }) => start() };
  },
  // At the end, the replica is no longer in the list: a reachable one needs a server of its own.
  DeckhandReplicaLeftOut: () => ({
    begin: ({ start }) => start({ DATABASE_REPLICA_URLS: 'postgresql://127.0.0.1:1/deckhand' }),
    end: ({ start }) => start(),
  }),
  DeckhandSignInFailures: () => ({
    during: ({ world }) => world.asNobody.post('/v1/authenticate', { email: 'nobody@example.test', password: 'wrong' }),
    times: 1000,
  }),
  DeckhandRateLimited: () => {
    const settings = { RATE_LIMIT_PER_MINUTE: '1' };
    return { settings, during: [listBoards, listBoards, listBoards], times: 1000 };
  },
  DeckhandEventsDelayed: () => {
    const { begun, hold, release } = givenHold();
    const beginOlder = onDb(async (db) => {
      const older = async (db: Db) => hold(await query(db, sql`select pg_current_xact_id()`));
      void Promise.allSettled([db.transaction().execute(older)]);
      await begun;
    });
    const delay = change(sql`update events set created_at = now() - interval '2 minutes'`);
    return { begin: [beginOlder, createCard, delay], end: [release, feedComplete] };
  },
  DeckhandWebhooksPaused: () => ({ begin: setState(sql`webhooks_paused_at = now()`), end: onDb(resumeWebhooks) }),
  DeckhandUpgradeUnfinished: () => ({ begin: setState(sql`level = level - 1`), end: onDb(finishUpgrade) }),
  DeckhandWebhooksLate: () => {
    const delay = change(sql`update events set created_at = now() - interval '10 minutes'`);
    return { begin: [addWebhook, createCard, delay], end: deliverDue(), isKept: true };
  },
  DeckhandWebhooksFailing: () => {
    const end = [change(sql`update webhooks set next_attempt_at = now()`), deliverDue()];
    return { begin: [addWebhook, createCard, deliverDue('The receiver is down.')], end, isKept: true };
  },
  DeckhandMailsLate: async () => {
    const { sendDue, close } = await givenMailServer();
    onTestFinished(close);
    const delay = change(sql`update mails set created_at = now() - interval '20 minutes'`);
    return { begin: [invite, delay], end: () => sendDue(), isKept: true };
  },
  DeckhandMailsFailed: async () => {
    const { behave, sendDue, close } = await givenMailServer();
    onTestFinished(close);
    return { begin: [() => behave('refuse'), invite, () => sendDue()] };
  },
  DeckhandKeysEnding: async () => {
    const { users, asMember } = await givenWorld();
    const [begun, ends] = [-20, 2].map((days) => new Date(Date.now() + days * 86_400_000)) as [Date, Date];
    const { id } = await givenKey(users.member, { created_at: begun });
    const begin = change(sql`update api_keys set expires_at = ${ends} where id = ${id}`);
    return { begin, end: () => asMember.rpc.keys.revoke.mutate({ id }), isKept: true };
  },
  DeckhandRemovalFailing: async () => {
    let looks = 0;
    const step = async () => (looks++ > 0 ? Promise.reject(new Error('The rows are locked.')) : { count: 0 });
    const database = await testDatabase();
    const look = () => startBackground(database, [{ table: 'groups', step }], log)();
    await look();
    return { begin: [look, look, look] };
  },
  DeckhandErasuresFileUnwritable: async () => {
    const directory = join(await givenDirectory(), 'erasures');
    await mkdir(directory);
    const settings = { ERASURES_FILE: join(directory, 'erasures.jsonl') };
    return { settings, begin: () => rm(directory, { recursive: true }), end: () => mkdir(directory) };
  },
  DeckhandPaymentNotificationsRefused: () => {
    const send: Work = ({ service }) => fetch(`${service.url}/webhooks/stripe`, { method: 'POST', body: '{}' });
    const settings = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1', TEST_CHECKOUT: 'off' };
    return { settings, begin: [send, send, send, send] };
  },
  DeckhandTemplateRunLong: async () => {
    const { begun, hold, release } = givenHold();
    const database = await testDatabase();
    const { board: board_id } = await givenMasterBoard();
    let run: Promise<unknown>;
    const sync: Work = ({ world }) => {
      run = world.asSuperadmin.rpc.masterBoards.sync.mutate({ board_id });
    };
    const services = { database: { ...database, bulkPace: { ...database.bulkPace, pause: () => hold() } } };
    return { services, begin: [sync, () => begun], end: [release, () => run] };
  },
  DeckhandRolloutStuck: async () => {
    const { id } = await givenRollout();
    const delay = change(sql`update rollouts set progressed_at = now() - interval '10 minutes' where id = ${id}`);
    // The failed step puts off the next one.
    const fail = () => expect(workOffRollouts()).rejects.toThrow();
    const end = [acceptCards, change(sql`update rollouts set next_at = now() where id = ${id}`), goOn];
    return { begin: [refuseCards('53100'), delay, fail], end, isKept: true };
  },
  DeckhandRolloutFailing: async () => {
    const { id, rollouts } = await givenRollout();
    const end = [acceptCards, () => rollouts.retryFailed.mutate({ id }), goOn];
    return { begin: [refuseCards('P0001'), goOn], end, isKept: true };
  },
  DeckhandRolloutWaiting: async () => {
    const { id, rollouts } = await givenRollout();
    const end = [() => rollouts.resume.mutate({ id }), goOn];
    return { begin: () => rollouts.pause.mutate({ id }), end, isKept: true };
  },
  // Another process, of another version.
  DeckhandSeveralVersions: () => {
    const another = { instance: 'another', version: '99.0.0' };
    const inject: Inject = (samples) =>
      samples.flatMap(({ labels, value }) => [labels, { ...labels, ...another }].map((labels) => ({ labels, value })));
    return { inject };
  },
};

/** The embedded database has a single connection, and no replicas. */
const OF_SERVER = ['DeckhandWaitingForDatabase', 'DeckhandReplicaLeftOut', 'DeckhandEventsDelayed'];

describe('an alert fires while its situation lasts, and ends afterwards', () => {
  afterEach(async () => {
    await acceptCards();
    await setState(sql`level = ${LATEST_LEVEL}, webhooks_paused_at = null, erasures_due_at = null`)();
    for (const rows of ['webhooks', 'mails', 'api_keys where expires_at is not null', 'rollouts'])
      await change(sql`delete from ${sql.raw(rows)}`)();
  });

  it('each one of the file', () => expect(Object.keys(SITUATIONS)).toEqual(rules.map(({ alert }) => alert)));

  for (const [alert, given] of Object.entries(SITUATIONS))
    it.skipIf(!databaseUrl && OF_SERVER.includes(alert))(alert, async () => {
      const rule = rules.find((rule) => rule.alert === alert)!;

      const seen = await observe(rule, await given());

      expect(seen).toEqual({ before: false, during: true, after: false });
    });
});

const STEPS = 5;

/** Scrapes a node before, during and after a situation, for the pretended time that the rule needs each time. */
async function observe(rule: Rule, { begin = [], during = [], end = [], inject, ...given }: Situation) {
  const node = await givenNode(given);
  const windows = [...rule.expr.matchAll(/\[(\w+)\]/g)].map(([, window]) => secondsOf(window!));
  const seconds = Math.max(60, secondsOf(rule.for ?? '') + Math.max(0, ...windows)) / STEPS;
  const multiplied = altered('deckhand_errors_total', (value) => value * (given.times ?? 1));
  const scrapes: Scrape[] = [];
  const run = async (works: Work | Work[]) => {
    for (const work of [works].flat()) await work(node);
  };
  const scrapeAll = async (works: Work | Work[] = [], injected: Inject = (samples) => samples) => {
    for (let count = 0; count <= STEPS; count++) {
      await run(works);
      scrapes.push({ seconds: scrapes.length * seconds, samples: injected(multiplied(await samplesOf(node))) });
    }
    return firing(rule, scrapes).slice(-1 - STEPS);
  };

  const before = await scrapeAll();
  await run(begin);
  if (given.isKept) await node.start();
  const lasting = await scrapeAll(during, inject);
  await run(end);
  if (given.isKept) await node.start();
  return { before: before.includes(true), during: lasting.includes(true), after: (await scrapeAll()).at(-1) };
}

async function givenNode({ settings, services }: Situation) {
  const open = async (more?: Situation['settings']) => {
    const service = await givenService({ ...settings, ...more }, services);
    onTestFinished(() => service.app.close());
    return { service, world: await givenWorld(service) };
  };
  const start = async (more?: Situation['settings']) => void Object.assign(node, await open(more));
  const node = { ...(await open()), start };
  return node;
}

async function samplesOf({ service }: Node): Promise<Sample[]> {
  const text = await scrape(service.url).catch(() => undefined);
  return parseSamples(text === undefined ? 'up 0' : `up 1\n${text}`, { job: 'deckhand', instance: 'one' });
}

const altered =
  (name: string, change: (value: number, labels: Sample['labels']) => number): Inject =>
  (samples) =>
    samples.map(({ labels, value }) => ({ labels, value: labels.__name__ === name ? change(value, labels) : value }));

const log = pino({ level: 'silent' });
const onDb = (work: (db: Db) => unknown) => async () => work(await testDb());
const change = (statement: RawBuilder<unknown>) => onDb((db) => query(db, statement));
const setState = (values: RawBuilder<unknown>) => change(sql`update database_state set ${values}`);

const listBoards: Work = ({ world }) => world.asViewer.post('/services/operations/v1/operations/boards/list');
const createCard: Work = ({ world }) =>
  world.asMember.post('/services/operations/v1/operations/cards/create', { title: 'A card' });
const invite: Work = ({ world }) =>
  world.asOwner.rpc.members.invite.mutate({ email: 'new@example.test', role: 'member' });
const addWebhook: Work = ({ world }) => givenWebhook(world.project, { types: ['card.created'] });
const goOn = () => workOffRollouts();

/** From then on, the database answers each write of a card with this error. */
const refuseCards = (code: string) =>
  change(sql`
    do $do$ begin
      create function refuse_cards() returns trigger language plpgsql as
        $$ begin raise exception 'Refused' using errcode = ${sql.lit(code)}; end $$;
      create trigger refuse_cards before insert or update on cards for each row execute function refuse_cards();
    end $do$`);
const acceptCards = change(sql`drop function if exists refuse_cards cascade`);

/** Work that lasts until it is released. */
function givenHold() {
  const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const release = () => released.resolve();
  onTestFinished(release);
  const hold = (_?: unknown) => {
    begun.resolve();
    return released.promise;
  };
  return { hold, begun: begun.promise, release };
}

/** A server that answers each command with nothing. */
async function givenRedis(): Promise<string> {
  const server = createServer((socket) =>
    socket.on('data', (sent) => socket.write('$-1\r\n'.repeat(`${sent}`.match(/^\*\d/gm)?.length ?? 0))),
  );
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => void server.close());
  return `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Delivers to webhooks as the background work does, to a receiver that answers like this. */
const deliverDue = (error?: string) => async () => {
  await feedComplete();
  const post = async () => ({ status: undefined, error, milliseconds: 1 });
  const delivering = { db: await testDb(), secretBox: makeSecretBox(['a secret']), log, outgoing: { post } };
  for (const webhook of (await claimWebhooks(delivering)).claimed) await deliver(delivering, webhook);
};

/** A rollout of a changed card to two projects, which has begun. */
async function givenRollout() {
  const template = await givenTemplate();
  await sync(template);
  const { masterCards, rollouts } = template.asSuperadmin.rpc;
  await masterCards.update.mutate({ id: template.cards[0], title: 'Uno' });
  const id = await plan(template);
  await rollouts.start.mutate({ id });
  return { id, rollouts };
}

describe('the evaluator of PromQL', () => {
  const scrapes = [
    'a{x="1"} 1\na{x="2"} 5',
    'a{x="1"} 4\na{x="2"} 6\nc 1\nh{le="1"} 0\nh{le="5"} 0\nh{le="+Inf"} 0',
    'a{x="1"} 2\na{x="2"} 6\nc 2\nh{le="1"} 1\nh{le="5"} 3\nh{le="+Inf"} 4',
  ].map((text, at) => ({ seconds: 60 * at, samples: parseSamples(text) }));

  it.each([
    ['a{x="1"} > 1', { 1: 2 }],
    ['a{x!~"1|3"} == 6', { 2: 6 }],
    ['increase(a[5m])', { 1: 5, 2: 1 }],
    ['increase(c[1m])', {}],
    ['rate(a{x="1"}[2m])', { 1: 2 / 120 }],
    ['changes(a[5m]) + a', { 1: 4, 2: 7 }],
    ['sum(a) / max(a)', { '': 8 / 6 }],
    ['min(a) / count(count by (x) (a)) < 2', { '': 1 }],
    ['sum(missing) == 0', {}],
    ['histogram_quantile(0.5, h)', { '': 3 }],
    ['histogram_quantile(0.95, sum by (le) (increase(h[5m])))', { '': 5 }],
  ])('%s', (expr, values) => {
    const found = evaluate(expr, scrapes).map(({ labels, value }) => [labels.x ?? '', value]);
    expect(Object.fromEntries(found)).toEqual(values);
  });

  it('an alert fires once its expression has a result for the time of `for`', () => {
    const rule = { expr: 'a{x="1"} > 1', for: '1m' };
    expect(firing(rule, scrapes)).toEqual([false, false, true]);
    expect(firing({ ...rule, for: '2m' }, scrapes)).toEqual([false, false, false]);
  });

  it.each(['abs(a)', 'a or c', 'sum without (x) (a)', 'a > on (x) c'])('refuses what it does not know: %s', (expr) =>
    expect(() => evaluate(expr, scrapes)).toThrow('does not know'),
  );
});
