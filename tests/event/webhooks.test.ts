import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { sql } from 'kysely';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { query } from '../../server/database/query.ts';
import { claimWebhooks, type DeliveryLane, type Running } from '../../server/domain/event/webhookClaim.ts';
import { type Delivering, deliver } from '../../server/domain/event/webhookDelivery.ts';
import { endLease, renewLeases } from '../../server/domain/event/webhookLease.ts';
import { deliveryCounts, retrySeconds } from '../../server/domain/event/webhookRecord.ts';
import { startWebhooks } from '../../server/domain/event/webhookWork.ts';
import type { FindAddresses } from '../../server/security/hostAddresses.ts';
import { makeOutgoing, type Outgoing } from '../../server/security/outgoing.ts';
import { isPublicAddress } from '../../server/security/publicAddress.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { checkMessage } from '../harness/checkAnswers.ts';
import { CARD_DATA, feedComplete } from '../harness/events.ts';
import { pagesOf } from '../harness/pages.ts';
import { databaseUrl, givenService, TEST_SECRET, type TestService, withOwnDatabase } from '../harness/service.ts';
import { type Arrived, givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { givenWebhook, givenWorld, stored, testDb, type World } from '../harness/world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** It answers what its path says: `/200`, `/410`. */
let receiver: WebhookReceiver;
let host: string;
/** What has arrived in this test. */
let received: Arrived[] = [];
/** Answers by path, instead of what the path says. */
let answers: Record<string, number> = {};
let service: TestService;
let outgoing: Outgoing;

withOwnDatabase();
beforeAll(async () => {
  receiver = await givenWebhookReceiver(async (message, response) => {
    const { path, body } = message;
    received.push(message);
    await checkMessage(body);
    const status = answers[path] ?? Number(path.slice(1, 4));
    // A receiver that never answers.
    if (status === 0) return;
    response
      .writeHead(status, status === 302 ? { location: '/200' } : {})
      .end('x'.repeat(path === '/200/long' ? 100_000 : 10));
  });
  host = receiver.host;
  service = await givenService({ WEBHOOK_ALLOWED_HOSTS: host });
  outgoing = makeOutgoing({ allowedHosts: [host], timeoutMilliseconds: 60_000 });
});

afterAll(async () => {
  outgoing.close();
  receiver.remove();
  await service.app.close();
});

afterEach(async () => {
  await query(await testDb(), sql`delete from webhooks`);
});

const at = (path: string) => `http://${host}${path}`;

async function givenReceiver(world: World, path: string, more: { types?: 'card.created'[] } = {}) {
  const { webhook, secret } = await world.asOwner.rpc.webhooks.create.mutate({ url: at(path), ...more });
  received = [];
  answers = {};
  return { id: webhook.id, secret };
}

const world = () => givenWorld(service);
const createCard = async ({ asMember }: World) => (await asMember.rpc.cards.create.mutate({ title: 'A card' })).card.id;

const delivering = async (now = Date.now()): Promise<Delivering> => ({
  db: await testDb(),
  secretBox: makeSecretBox([TEST_SECRET]),
  log: pino({ level: 'silent' }),
  outgoing,
  now: sql<Date>`${new Date(now)}::timestamptz`,
  random: () => 0,
});

/** Delivers all that is due at a time, as the background work does. */
async function deliverDue(now?: number, more: Partial<Delivering> = {}): Promise<void> {
  await feedComplete();
  const context = { ...(await delivering(now)), ...more };
  const { claimed } = await claimWebhooks(context);
  await Promise.all(claimed.map((webhook) => deliver(context, webhook)));
}

const typesAt = (path: string) =>
  received.filter((message) => message.path === path).map(({ body }) => JSON.parse(body).type);
const idsAt = (path: string) =>
  received.filter((message) => message.path === path).map(({ headers }) => headers['webhook-id']);
const deliveriesOf = async ({ asOwner }: World, id: number) =>
  (await asOwner.rpc.webhooks.deliveries.query({ id })).deliveries;

describe('a webhook', () => {
  it('gets each event once, in order, signed as Standard Webhooks says, with what events.list answers', async () => {
    const given = await world();
    const { id, secret } = await givenReceiver(given, '/200/signed', { types: ['card.created'] });
    const cards = [await createCard(given), await createCard(given)];
    await given.asMember.rpc.cards.delete.mutate({ id: cards[0]! });

    const countBefore = deliveryCounts.get('delivered') ?? 0;
    await deliverDue();
    await deliverDue();

    expect(received).toHaveLength(2);
    expect(deliveryCounts.get('delivered')).toBe(countBefore + 2);
    const listed = await given.asOwner.post('/services/platforms/v1/events/list', {
      types: ['card.created'],
    });
    for (const [index, { headers, body }] of received.entries()) {
      const event = listed.body.data.events[index];
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual({
        type: 'card.created',
        timestamp: event.created_at,
        data: event,
      });
      expect(event.subject_id).toBe(cards[index]);
      expect(headers).toMatchObject({
        'webhook-id': event.id,
        'content-type': 'application/json',
        'user-agent': 'Deckhand-Webhooks/1',
      });
    }
    expect(() => new Webhook(secret).verify(`${received[0]!.body} `, received[0]!.headers as any)).toThrow();
    const attempt = { attempt: 1, status: 'delivered', response_status: 200, error: null, type: 'card.created' };
    expect(await deliveriesOf(given, id)).toMatchObject([
      { number: 2, event_id: listed.body.data.events[1].id, ...attempt },
      { number: 1, event_id: listed.body.data.events[0].id, ...attempt },
    ]);
  });

  it('gets events of a later version, with fields and types that this one does not know', async () => {
    const given = await world();
    await givenReceiver(given, '/200/later');
    await query(
      await testDb(),
      sql`insert into events (type, project_id, surface, subject_id, data)
        values ('card.archived', ${given.project.id}, 'telepathy', 1, '{"archive_id": 7}')`,
    );
    const card = await createCard(given);

    await deliverDue();

    const sent = received.filter(({ path }) => path === '/200/later').map(({ body }) => JSON.parse(body).data);
    expect(sent.slice(1)).toMatchObject([
      { type: 'card.archived', surface: 'telepathy', data: { archive_id: 7 } },
      { type: 'card.created', subject_id: card },
    ]);
  });

  it('gets no events of other projects', async () => {
    const [given, other] = [await world(), await world()];
    await givenReceiver(given, '/200/other', { types: ['card.created'] });
    await createCard(other);

    await deliverDue();

    expect(typesAt('/200/other')).toEqual([]);
  });

  it('has at most 1,000 deliveries', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/many', { types: ['card.created'] });
    const db = await testDb();
    await query(
      db,
      sql`insert into webhook_deliveries (webhook_id, number, type, attempt, status, milliseconds)
        select ${id}, n, 'card.created', 1, 'delivered', 1 from generate_series(1, 1000) as n`,
    );
    await query(db, sql`update webhooks set deliveries = 1000 where id = ${id}`);
    await createCard(given);

    await deliverDue();

    const found = sql<object>`select min(number) as first, max(number) as last from webhook_deliveries where webhook_id = ${id}`;
    expect(await query(db, found)).toEqual([{ first: 2, last: 1001 }]);
  });

  it('has each delivery once, newest first, on pages of any size', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/pages', { types: ['card.created'] });
    for (let card = 0; card < 5; card++) await createCard(given);
    await deliverDue();
    const { deliveries } = given.asOwner.rpc.webhooks;
    const newestFirst = idsAt('/200/pages').toReversed();

    for (const limit of [1, 2, 5]) {
      const pages = await pagesOf((cursor) => deliveries.query({ id, limit, cursor }));
      expect(pages.flatMap((page) => page.deliveries.map(({ event_id }) => event_id))).toEqual(newestFirst);
    }
  });

  it('gets an event soon, by itself, and a stopped node sends nothing more', async () => {
    const given = await world();
    await givenReceiver(given, '/200/soon', { types: ['card.created'] });
    const { now, ...context } = await delivering();
    const own = makeOutgoing({ allowedHosts: [host] });
    const work = startWebhooks({ ...context, outgoing: own }, 20);
    const first = createCard(given);

    await expect.poll(() => typesAt('/200/soon')).toEqual(['card.created']);
    await first;
    await work.stop();
    await createCard(given);
    work.wake();

    await new Promise((done) => setImmediate(done));
    expect(typesAt('/200/soon')).toEqual(['card.created']);
  });
});

describe('a failing receiver', () => {
  it('gets the same event again, later and later, and the following ones in order once it works', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/500/order', { types: ['card.created'] });
    await createCard(given);
    await createCard(given);
    const start = Date.now() + 1000;

    await deliverDue(start);
    await deliverDue(start + 4_999);
    await deliverDue(start + 5_000);
    await deliverDue(start + 19_999);
    await deliverDue(start + 20_000);

    expect(idsAt('/500/order')).toEqual(Array(3).fill(idsAt('/500/order')[0]));
    expect((await given.asOwner.rpc.webhooks.list.query({})).webhooks).toMatchObject([
      { failures: 3, first_failed_at: new Date(start), next_attempt_at: new Date(start + 50_000) },
    ]);

    answers = { '/500/order': 204 };
    await deliverDue(start + 50_000);

    const [first, second] = idsAt('/500/order').slice(-2);
    expect(first).toBe(idsAt('/500/order')[0]);
    expect(Number(second)).toBeGreaterThan(Number(first));
    expect((await deliveriesOf(given, id)).map(({ attempt, status, error }) => [attempt, status, error])).toEqual([
      [1, 'delivered', null],
      [4, 'delivered', null],
      ...[3, 2, 1].map((attempt) => [attempt, 'failed', 'It answered 500.']),
    ]);
    expect(await stored('webhooks', id)).toMatchObject({ failures: 0, first_failed_at: null, is_active: true });
  });

  it('is tried nine times in the first hour, 17 times until it is switched off, after pauses up to a tenth longer', () => {
    const pauses = Array.from({ length: 16 }, (_, failures) => retrySeconds(failures + 1, () => 0));
    const seconds = [5, 15, 30, 60];
    const minutes = [2, 5, 15, 30].map((count) => count * 60);
    const hours = [2, 5, 10, 14, 20, 24, 24, 24].map((count) => count * 3600);

    expect(pauses).toEqual([...seconds, ...minutes, ...hours]);
    expect(pauses.reduce((sum, pause) => sum + pause)).toBeGreaterThan((5 * DAY) / 1000);
    expect(retrySeconds(1, () => 1)).toBeCloseTo(5.5);
  });

  it('is switched off after five days, with an event, and goes on where it stopped once it is active again', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/500/days', { types: ['card.created'] });
    await createCard(given);
    const start = Date.now() + 1000;

    await deliverDue(start);
    await deliverDue(start + 5 * DAY - 1);
    expect(await stored('webhooks', id)).toMatchObject({ is_active: true, failures: 2 });
    await deliverDue(start + 6 * DAY);
    await deliverDue(start + 9 * DAY);

    expect(await stored('webhooks', id)).toMatchObject({ is_active: false, disabled_reason: 'failing', failures: 3 });
    await feedComplete();
    const { events } = await given.asOwner.rpc.events.list.query({ types: ['webhook.disabled'] });
    expect(events).toMatchObject([
      { subject_id: id, data: { reason: 'failing' }, user_id: null, surface: 'service', project_id: given.project.id },
    ]);
    const audited = sql`select type from audit_entries where project_id = ${given.project.id} order by id`;
    expect(await query(await testDb(), audited)).toEqual([{ type: 'webhook.created' }, { type: 'webhook.disabled' }]);

    answers = { '/500/days': 200 };
    await given.asOwner.rpc.webhooks.update.mutate({ id, is_active: true });
    await deliverDue();

    expect(new Set(idsAt('/500/days')).size).toBe(1);
    expect(await stored('webhooks', id)).toMatchObject({ is_active: true, disabled_reason: null, failures: 0 });
  });

  it('is switched off at once by a 410', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/410');
    await createCard(given);

    await deliverDue();

    expect(await stored('webhooks', id)).toMatchObject({ is_active: false, disabled_reason: 'gone' });
  });

  it('is not followed to where it redirects', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/302', { types: ['card.created'] });
    await createCard(given);

    await deliverDue();

    expect(received.map(({ path }) => path)).toEqual(['/302']);
    expect(await deliveriesOf(given, id)).toMatchObject([
      { status: 'failed', response_status: 302, error: 'It answered 302: redirects are not followed.' },
    ]);
  });

  it('that never answers does not hold up another one, and neither do many', async () => {
    const given = await world();
    await givenReceiver(given, '/000', { types: ['card.created'] });
    const dead = Array.from({ length: 12 }, () => givenWebhook(given.project, { url: at('/000'), failures: 1 }));
    await Promise.all(dead);
    await givenReceiver(given, '/200/alive', { types: ['card.created'] });
    await createCard(given);

    const done = deliverDue();
    await expect.poll(() => typesAt('/200/alive')).toEqual(['card.created']);

    await expect.poll(() => received.filter(({ path }) => path === '/000')).toHaveLength(11);
    // Calls that begin after the cut get an answer, so that no call waits for its timeout.
    answers = { '/000': 500 };
    receiver.cut();
    await done;
  });

  it('with a long body is cut off, and counts by its status', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/long', { types: ['card.created'] });
    await createCard(given);

    await deliverDue();

    expect(await deliveriesOf(given, id)).toMatchObject([{ status: 'delivered' }]);
  });

  it.each<[string, { url?: string; is_active?: boolean }, string[]]>([
    ['another address', { url: '/200/new' }, ['/200/old', '/200/new', '/200/new']],
    ['no further events', { is_active: false }, ['/200/old']],
  ])('that is changed during a delivery ends it: %s', async (_, { url, ...changes }, expected) => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/old', { types: ['card.created'] });
    await createCard(given);
    await createCard(given);
    const post: Outgoing['post'] = async (...call) => {
      const outcome = await outgoing.post(...call);
      if (received.length === 1)
        await given.asOwner.rpc.webhooks.update.mutate({ id, ...changes, ...(url && { url: at(url) }) });
      return outcome;
    };

    await deliverDue(undefined, { outgoing: { post } });
    await deliverDue(Date.now() + 1000);

    expect(received.map(({ path }) => path)).toEqual(expected);
  });

  it.each<[string, object, number]>([
    ['after ten seconds', {}, 10_000],
    ['after a minute, if it was of the version before', { kept_until: null }, MINUTE],
  ])('of a killed node is called by another one %s', async (_, state, milliseconds) => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/killed', { types: ['card.created'] });
    await createCard(given);
    const start = Date.now() + 1000;
    await feedComplete();
    expect((await claimWebhooks(await delivering(start))).claimed).toHaveLength(1);
    if ('kept_until' in state) await query(await testDb(), sql`update webhooks set kept_until = null where id = ${id}`);
    const other = { holder: 'another node' };

    const { dueInMilliseconds } = await claimWebhooks({ ...(await delivering(start + 1000)), ...other });
    expect(dueInMilliseconds).toBe(milliseconds - 1000);
    await deliverDue(start + milliseconds - 1, other);
    expect(typesAt('/200/killed')).toEqual([]);
    await deliverDue(start + milliseconds + 1, other);

    expect(typesAt('/200/killed')).toEqual(['card.created']);
  });

  it('of a living node stays with it, whose leases are renewed', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/living', { types: ['card.created'] });
    await createCard(given);
    const start = Date.now() + 1000;
    await feedComplete();
    await claimWebhooks(await delivering(start));

    await renewLeases(await delivering(start + 9000), [id]);
    await renewLeases({ ...(await delivering(start + 60_000)), holder: 'another node' }, [id]);
    await deliverDue(start + 18_000, { holder: 'another node' });
    expect(typesAt('/200/living')).toEqual([]);

    // Only its own node renews a lease: ten seconds after the last time, it is free.
    await deliverDue(start + 19_001, { holder: 'another node' });
    expect(typesAt('/200/living')).toEqual(['card.created']);
  });

  it('of a node that took it over stays with that one, although the first one is only late', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/late', { types: ['card.created'] });
    await createCard(given);
    const start = Date.now() + 1000;
    await feedComplete();
    const late = await delivering(start);
    await claimWebhooks(late);
    await claimWebhooks({ ...(await delivering(start + 11_000)), holder: 'another node' });
    const taken = await stored('webhooks', id);

    await renewLeases({ ...late, now: sql<Date>`${new Date(start + 12_000)}::timestamptz` }, [id]);
    await endLease(late, id);

    expect(taken).toMatchObject({ lease_holder: 'another node', leased_until: expect.any(Date) });
    expect(await stored('webhooks', id)).toEqual(taken);
  });

  it('is called once at a time, however often it is changed, and then with its new settings', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/first', { types: ['card.created'] });
    await createCard(given);
    let claims = 0;
    const post: Outgoing['post'] = async (...call) => {
      for (const change of [1, 2, 3]) {
        await given.asOwner.rpc.webhooks.update.mutate({ id, url: at(`/200/change/${change}`) });
        claims += (await claimWebhooks({ ...(await delivering()), holder: 'another node' })).claimed.length;
      }
      return outgoing.post(...call);
    };

    await deliverDue(undefined, { outgoing: { post } });
    expect(claims).toBe(0);
    await deliverDue();

    expect(received.map(({ path }) => path)).toEqual(['/200/first', '/200/change/3']);
  });
});

describe('places', () => {
  const claimedBy = async (running: Running[] = []) => {
    await feedComplete();
    return (await claimWebhooks(await delivering(Date.now() + 1000), running)).claimed;
  };
  const places = (project_id: number, lane: DeliveryLane, count: number): Running[] =>
    Array.from({ length: count }, (_, at) => ({ id: -at, project_id, lane, isTest: false }));

  it('are shared by projects: one with 20 receivers leaves room for others', async () => {
    const [many, one] = [await world(), await world()];
    for (let count = 0; count < 20; count++) await givenWebhook(many.project);
    await createCard(many);
    await givenWebhook(one.project);
    await createCard(one);

    const claimed = await claimedBy();

    expect(claimed.filter(({ project_id }) => project_id === many.project.id)).toHaveLength(10);
    expect(claimed.filter(({ project_id }) => project_id === one.project.id)).toHaveLength(1);
  });

  it('go to the project that has fewest', async () => {
    const [busy, idle] = [await world(), await world()];
    for (const { project } of [busy, idle]) for (const _ of [1, 2, 3]) await givenWebhook(project);
    await createCard(busy);
    await createCard(idle);

    const claimed = await claimedBy([
      ...places(busy.project.id, 'fast', 2),
      ...places(0, 'fast', 10),
      ...places(1, 'fast', 4),
    ]);

    expect(claimed.map(({ project_id }) => project_id).sort()).toEqual(
      [idle, idle, idle, busy].map(({ project }) => project.id).sort(),
    );
  });

  it('of slow receivers are others, and also shared: calls beyond the share of a project take none', async () => {
    const [slow, other] = [await world(), await world()];
    await givenWebhook(slow.project, { pace_milliseconds: 1001 });
    await givenWebhook(other.project, { pace_milliseconds: 14_000 });
    await givenWebhook(other.project, { pace_milliseconds: 1000, failures: 3 });
    await createCard(slow);
    await createCard(other);

    const claimed = await claimedBy([...places(slow.project.id, 'slow', 40), ...places(0, 'fast', 10)]);

    expect(claimed.map(({ project_id, lane }) => [project_id, lane]).sort()).toEqual([
      [other.project.id, 'fast'],
      [other.project.id, 'slow'],
    ]);
  });

  it('depend on the time that messages take: one long one counts, a slow one in between does not', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/pace', { types: ['card.created'] });
    const pace = async (milliseconds: number) => {
      await createCard(given);
      await deliverDue(undefined, {
        outgoing: { post: async () => ({ status: 200, error: undefined, milliseconds }) },
      });
      return (await stored('webhooks', id)).pace_milliseconds;
    };

    expect(await pace(14_000)).toBe(14_000);
    expect(await pace(0)).toBe(10_500);
    await query(await testDb(), sql`update webhooks set pace_milliseconds = 40 where id = ${id}`);
    expect(await pace(2000)).toBe(530);
  });

  it('are left after a time, with the next events in order', async () => {
    const given = await world();
    await givenReceiver(given, '/200/turn', { types: ['card.created'] });
    const cards = [await createCard(given), await createCard(given), await createCard(given)];
    let passed = 0;
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + passed);
    const post: Outgoing['post'] = (...call) => {
      passed += 2000;
      return outgoing.post(...call);
    };
    const sent = () => received.map(({ body }) => JSON.parse(body).data.subject_id);

    await deliverDue(undefined, { outgoing: { post } });
    expect(sent()).toEqual(cards.slice(0, 2));
    await deliverDue(undefined, { outgoing: { post } });
    vi.restoreAllMocks();

    expect(sent()).toEqual(cards);
  });

  it('of calls that last are free for others: a project whose receivers never answer delays nobody', async () => {
    const [hanging, other] = [await world(), await world()];
    for (let count = 0; count < 20; count++) await givenReceiver(hanging, `/000/${count}`, { types: ['card.created'] });
    await givenReceiver(other, '/200/neighbour', { types: ['card.created'] });
    const { now, ...context } = await delivering();
    const own = makeOutgoing({ allowedHosts: [host], timeoutMilliseconds: 60_000 });
    const work = startWebhooks({ ...context, outgoing: own });
    const wake = async (given: World) => {
      await createCard(given);
      work.wake();
    };

    await wake(hanging);
    await expect.poll(() => received.length).toBe(20);
    await wake(other);

    await expect.poll(() => typesAt('/200/neighbour')).toEqual(['card.created']);
    await work.stop();
  });
});

describe('looks for webhooks', () => {
  it('skip events of other types, until there are many of them', async () => {
    const given = await world();
    await givenReceiver(given, '/200/filtered', { types: ['card.created'] });
    const db = await testDb();
    const add = (count: number) =>
      query(
        db,
        sql`insert into events (type, project_id, surface, subject_id, data) select 'card.moved', ${given.project.id}::int, 'rest', 1, ${CARD_DATA} from generate_series(1, ${count}::int)`,
      );
    const claims = async () => {
      await feedComplete();
      return (await claimWebhooks(await delivering())).claimed.length;
    };

    await add(50);
    expect(await claims()).toBe(0);
    await add(50);

    expect(await claims()).toBe(1);
  });

  it('tell when the next attempt is due', async () => {
    const given = await world();
    await givenReceiver(given, '/500/due', { types: ['card.created'] });
    await createCard(given);
    const start = Date.now() + 1000;

    await deliverDue(start);

    expect(await claimWebhooks(await delivering(start + 1000))).toEqual({
      claimed: [],
      isWaiting: false,
      dueInMilliseconds: 4000,
      seen: 0,
      isAdopted: true,
    });
  });

  it.skipIf(!databaseUrl)('tell that an event waits for an older transaction', async () => {
    const given = await world();
    await givenReceiver(given, '/200/waits', { types: ['card.created'] });

    const looked = await (await testDb()).transaction().execute(async (db) => {
      await query(db, sql`select pg_current_xact_id()`);
      await createCard(given);
      return claimWebhooks(await delivering());
    });

    expect(looked).toMatchObject({ claimed: [], isWaiting: true });
  });

  it('find nothing while an operator keeps webhooks paused', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/paused', { types: ['card.created'] });
    await createCard(given);
    await given.asOwner.rpc.webhooks.sendTest.mutate({ id });
    const db = await testDb();
    const pause = (at: Date | null) => sql`
      insert into database_state (id, webhooks_paused_at) values (1, ${at}) on conflict (id) do update set webhooks_paused_at = ${at}`;

    await query(db, pause(new Date()));
    await deliverDue();
    await query(db, pause(null));

    expect(received).toEqual([]);
  });
});

describe('the log', () => {
  it('has a line when a receiver begins to fail, works again and is switched off, without the path of its address', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/500/token-in-path', { types: ['card.created'] });
    await createCard(given);
    const lines: Record<string, unknown>[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const start = Date.now() + 1000;

    await deliverDue(start, { log });
    await deliverDue(start + 5000, { log });
    answers = { '/500/token-in-path': 200 };
    await deliverDue(start + HOUR, { log });
    answers = { '/500/token-in-path': 410 };
    await createCard(given);
    await deliverDue(start + 2 * HOUR, { log });

    const receiver = { webhook: id, project: given.project.id, host };
    expect(lines).toMatchObject([
      { ...receiver, msg: 'A webhook receiver fails: it is tried again.', error: 'It answered 500.' },
      { ...receiver, msg: 'A webhook receiver works again.' },
      { ...receiver, msg: 'A webhook was switched off.', error: 'It answered 410.', reason: 'gone' },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/token-in-path|whsec/);
  });
});

describe('webhooks.rotateSecret', () => {
  it('signs with both secrets for a day, then with the new one', async () => {
    const given = await world();
    const { id, secret: old } = await givenReceiver(given, '/200/rotated', { types: ['card.created'] });
    const { secret } = await given.asOwner.rpc.webhooks.rotateSecret.mutate({ id });
    expect(secret).toMatch(/^whsec_[\w+/]{43}=$/);
    expect(secret).not.toBe(old);

    await createCard(given);
    await deliverDue();
    const { body, headers } = received[0]!;
    for (const known of [old, secret]) new Webhook(known).verify(body, headers as Record<string, string>);

    await createCard(given);
    await deliverDue(Date.now() + DAY + MINUTE);
    const later = received[1]!;
    new Webhook(secret).verify(later.body, later.headers as Record<string, string>);
    expect(() => new Webhook(old).verify(later.body, later.headers as Record<string, string>)).toThrow();
    expect(JSON.stringify(await stored('webhooks', id))).not.toContain(secret);
  });
});

describe('webhooks.redeliver', () => {
  it('sends an event and all later ones again, in order and with the same ids', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/again', { types: ['card.created'] });
    for (let card = 0; card < 3; card++) await createCard(given);
    await deliverDue();
    const [, second, third] = idsAt('/200/again') as string[];

    await given.asOwner.rpc.webhooks.redeliver.mutate({ id, event_id: second! });
    await deliverDue();

    expect(idsAt('/200/again').slice(3)).toEqual([second, third]);
  });

  it('422 for an event of another project', async () => {
    const [given, other] = [await world(), await world()];
    const { id } = await givenReceiver(given, '/200/foreign');
    await createCard(other);
    await feedComplete();
    const { events } = await other.asOwner.rpc.events.list.query({});

    const response = await given.asOwner.post('/services/platforms/v1/webhooks/redeliver', {
      id,
      event_id: events[0]!.id,
    });

    expect(response.status).toBe(422);
  });
});

describe('webhooks.sendTest', () => {
  it('sends a test to this receiver alone, which is in no log and counts as no failure', async () => {
    const given = await world();
    const { id, secret } = await givenReceiver(given, '/500/test', { types: ['card.created'] });
    await givenReceiver(given, '/200/untested', { types: ['card.created'] });

    await given.asOwner.rpc.webhooks.sendTest.mutate({ id });
    await deliverDue();
    await deliverDue();

    expect(received).toHaveLength(1);
    const { body, headers } = received[0]!;
    expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
      type: 'webhook.test',
      data: { webhook_id: id },
    });
    expect(await deliveriesOf(given, id)).toMatchObject([{ type: 'webhook.test', event_id: null, status: 'failed' }]);
    expect(await stored('webhooks', id)).toMatchObject({ failures: 0, is_active: true });
  });

  it('does not hold up events, and one is sent at a time', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/both', { types: ['card.created'] });
    await given.asOwner.rpc.webhooks.sendTest.mutate({ id });
    await createCard(given);
    const [claims, posts] = [Promise.withResolvers<number>(), [] as string[]];
    const post: Outgoing['post'] = async (...call) => {
      posts.push(call[0]);
      if (posts.length === 2) {
        // Both are under way: there is nothing else to claim, also not another test.
        await given.asOwner.rpc.webhooks.sendTest.mutate({ id });
        const { claimed } = await claimWebhooks({ ...(await delivering()), holder: 'another node' });
        claims.resolve(claimed.length);
      }
      await claims.promise;
      return outgoing.post(...call);
    };
    await feedComplete();
    const context = { ...(await delivering()), outgoing: { post } };
    const [test, events] = [await claimWebhooks(context), await claimWebhooks(context)];

    await Promise.all([...test.claimed, ...events.claimed].map((webhook) => deliver(context, webhook)));

    expect(typesAt('/200/both').sort()).toEqual(['card.created', 'webhook.test']);
    expect(await claims.promise).toBe(0);
  });
});

describe('webhooks.resend', () => {
  it('sends one event again with its id, beside the others and a test, each once', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/resent', { types: ['card.created'] });
    for (let card = 0; card < 3; card++) await createCard(given);
    await deliverDue();
    const [first, second] = idsAt('/200/resent') as string[];
    const { resend, sendTest, deliveries } = given.asOwner.rpc.webhooks;
    received = [];

    await sendTest.mutate({ id });
    await resend.mutate({ id, event_id: second! });
    await resend.mutate({ id, event_id: first! });
    await createCard(given);
    for (let look = 0; look < 5; look++) await deliverDue(Date.now() + 1000);

    expect(idsAt('/200/resent')).toEqual(
      expect.arrayContaining([expect.stringMatching(/^test-/), second, first, expect.stringMatching(/^\d+$/)]),
    );
    expect(received).toHaveLength(4);
    const resent = (await deliveries.query({ id })).deliveries.filter(({ event_id }) => event_id === second);
    expect(resent).toMatchObject([
      { status: 'delivered', type: 'card.created', attempt: 1 },
      { status: 'delivered', type: 'card.created', attempt: 1 },
    ]);
    expect(await stored('webhooks', id)).toMatchObject({ test_requested_at: null, resend_events: null });
  });

  it('sends each event although a node was so late that another one has taken over', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/aside', { types: ['card.created'] });
    for (let card = 0; card < 2; card++) await createCard(given);
    await deliverDue();
    const [first, second] = idsAt('/200/aside') as string[];
    for (const event_id of [first!, second!]) await given.asOwner.rpc.webhooks.resend.mutate({ id, event_id });
    received = [];
    const start = Date.now() + 1000;
    const late = await delivering(start);
    const next = { ...(await delivering(start + MINUTE + 1000)), holder: 'another node' };

    const [ofLate, ofNext] = [await claimWebhooks(late), await claimWebhooks(next)];
    for (const webhook of ofLate.claimed) await deliver(late, webhook);
    for (const webhook of ofNext.claimed) await deliver(next, webhook);
    await deliverDue(start + 2 * MINUTE);

    expect(idsAt('/200/aside')).toEqual([first, first, second]);
    expect(await stored('webhooks', id)).toMatchObject({ test_requested_at: null, resend_events: null });
  });

  it('is tried once, and not at all once the webhook is paused', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/once', { types: ['card.created'] });
    await createCard(given);
    await deliverDue();
    const [event_id] = idsAt('/200/once') as string[];
    const resend = () => given.asOwner.rpc.webhooks.resend.mutate({ id, event_id: event_id! });
    answers = { '/200/once': 500 };

    await resend();
    for (let look = 0; look < 2; look++) await deliverDue(Date.now() + 1000);
    await resend();
    await given.asOwner.rpc.webhooks.update.mutate({ id, is_active: false });
    await deliverDue(Date.now() + 1000);

    expect(idsAt('/200/once')).toEqual([event_id, event_id]);
    expect((await deliveriesOf(given, id)).map(({ error }) => error)).toEqual([
      'The event is not kept any more, or the webhook is not active.',
      'It answered 500.',
      null,
    ]);
    expect(await stored('webhooks', id)).toMatchObject({ failures: 0, resend_events: null });
  });
});

describe('a webhook whose maker has lost the right to it', () => {
  it('gets no event, however that happened, and is paused', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/lost', { types: ['card.created'] });
    await createCard(given);
    await query(await testDb(), sql`update members set role = 'member' where user_id = ${given.users.owner.id}`);

    await deliverDue();

    expect(typesAt('/200/lost')).toEqual([]);
    const paused = { is_active: false, leased_until: null, right_lost_at: expect.any(Date) };
    expect(await stored('webhooks', id)).toMatchObject(paused);
  });
});

describe('a webhook of a project that is deactivated', () => {
  const setActive = ({ asSuperadmin, project }: World, is_active: boolean) =>
    asSuperadmin.rpc.projects.update.mutate({ id: project.id, is_active });

  it('gets neither events nor a test until it is active again', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/inactive', { types: ['card.created'] });
    await createCard(given);
    await given.asOwner.rpc.webhooks.sendTest.mutate({ id });

    await setActive(given, false);
    for (let look = 0; look < 2; look++) await deliverDue(Date.now() + 1000);
    expect(typesAt('/200/inactive')).toEqual([]);

    await setActive(given, true);
    for (let look = 0; look < 2; look++) await deliverDue(Date.now() + 1000);
    expect(typesAt('/200/inactive').toSorted()).toEqual(['card.created', 'webhook.test']);
  });

  it('gets no further event of a delivery under way, and those that are left once it is active again', async () => {
    const given = await world();
    await givenReceiver(given, '/200/under-way', { types: ['card.created'] });
    await createCard(given);
    await createCard(given);
    const post: Outgoing['post'] = async (...call) => {
      const outcome = await outgoing.post(...call);
      await setActive(given, false);
      return outcome;
    };

    await deliverDue(undefined, { outgoing: { post } });
    const [first, ...others] = idsAt('/200/under-way');
    expect(others).toEqual([]);

    await setActive(given, true);
    await deliverDue(Date.now() + 1000);
    // The project was not active any more when the first one had arrived: it is sent again.
    expect(idsAt('/200/under-way')).toEqual([first, first, expect.not.stringMatching(`^${first}$`)]);
  });
});

describe('who may handle webhooks', () => {
  it('403 for members and for owners of other projects', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/owned');
    const list = (who: 'asMember' | 'asOutsider') =>
      given[who].post('/services/platforms/v1/webhooks/deliveries', { id });

    expect([(await list('asMember')).status, (await list('asOutsider')).status]).toEqual([403, 403]);
  });

  it('400 for the 21st webhook of a project', async () => {
    const given = await world();
    for (let count = 0; count < 20; count++) await givenWebhook(given.project, { is_active: false });

    const response = await given.asOwner.post('/services/platforms/v1/webhooks/create', { url: at('/200') });

    expect(response.status).toBe(400);
  });

  it('writes an event and an audit entry for each change, and none for a change of nothing', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/changes');
    const { update, rotateSecret, delete: remove } = given.asOwner.rpc.webhooks;

    await update.mutate({ id, types: ['card.moved', 'card.created'] });
    await update.mutate({ id, types: ['card.created', 'card.moved', 'card.moved'] });
    await rotateSecret.mutate({ id });
    await remove.mutate({ id });

    await feedComplete();
    const { events } = await given.asOwner.rpc.events.list.query({});
    expect(events.map(({ type, subject_id, data }) => [type, subject_id, data])).toEqual([
      ['webhook.created', id, {}],
      ['webhook.updated', id, { fields: ['types'] }],
      ['webhook.rotated', id, {}],
      ['webhook.deleted', id, {}],
    ]);
    const audited = sql`select count(*)::int as count from audit_entries where project_id = ${given.project.id}`;
    expect(await query(await testDb(), audited)).toEqual([{ count: 4 }]);
  });
});

describe('addresses', () => {
  it.each([
    'http://example.com/hook',
    'ftp://example.com/hook',
    'nonsense',
    'https://user:password@example.com/hook',
    'https://127.0.0.1/hook',
    'https://2130706433/hook',
    'https://0x7f.1/hook',
    'https://[::1]/hook',
    'https://[::ffff:10.0.0.1]/hook',
    'https://169.254.169.254/latest/meta-data',
  ])('422 for %s', async (url) => {
    const given = await world();

    const response = await given.asOwner.post('/services/platforms/v1/webhooks/create', { url });

    expect(response.status).toBe(422);
    expect(response.body.errors).toHaveProperty('url');
  });

  it('are checked in a change, too, and nothing changes', async () => {
    const given = await world();
    const { id } = await givenReceiver(given, '/200/kept');

    for (const url of ['https://169.254.169.254/latest/meta-data', 'https://[::1]/hook', 'http://example.com/hook']) {
      const response = await given.asOwner.post('/services/platforms/v1/webhooks/update', { id, url });
      expect(response.status, url).toBe(422);
      expect(response.body.errors).toHaveProperty('url');
    }
    expect((await given.asOwner.rpc.webhooks.list.query({})).webhooks).toMatchObject([{ id, url: at('/200/kept') }]);
  });

  it.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.0.1', '192.168.0.1', '224.0.0.1'],
    ...['255.255.255.255', '::', '::1', '::ffff:8.8.8.8', '::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1'],
    ...['64:ff9b:1::1', 'fd00:ec2::254', 'fc00::1', 'fe80::1', 'fe80::1%eth0', 'fec0::1', 'ff02::1', '2002:7f00:1::'],
    ...['2001::1', '2001:db8::1', 'localhost', ''],
  ])('%s is not on the internet', (address) => expect(isPublicAddress(address)).toBe(false));

  it.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450:4001::1'])(
    '%s is on the internet',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  /** A name that has these addresses, and how often it was asked for. */
  function named(...addresses: string[]) {
    const asked: string[] = [];
    const findAddresses: FindAddresses = async (hostname) => {
      asked.push(hostname);
      return addresses;
    };
    return { findAddresses, asked };
  }

  it.each([[['127.0.0.1']], [['8.8.8.8', '127.0.0.1']], [['::1']], [['64:ff9b::7f00:1']], [[]]])(
    'of names are checked when connecting: %j',
    async (addresses) => {
      const { findAddresses, asked } = named(...addresses);
      const strict = makeOutgoing({ allowedHosts: [], findAddresses });
      const port = Number(new URL(receiver.url).port);
      received = [];

      const outcome = await strict.post(`https://rebound.example.com:${port}/200`, {}, '{}');

      expect(outcome).toMatchObject({ status: undefined, error: 'The address must be on the internet.' });
      expect(asked).toEqual(['rebound.example.com']);
      expect(received).toEqual([]);
      strict.close();
    },
  );

  it('of allowed hosts may be private, on the allowed port alone', async () => {
    const port = Number(new URL(receiver.url).port);
    const { findAddresses } = named('127.0.0.1');
    const allowing = makeOutgoing({ allowedHosts: [`crm.internal:${port}`], findAddresses });

    const outcomes = [
      await allowing.post(`http://crm.internal:${port}/200`, {}, '{}'),
      await allowing.post(`https://crm.internal:${port + 1}/200`, {}, '{}'),
      await allowing.post(`http://crm.internal:${port + 1}/200`, {}, '{}'),
    ];

    expect(outcomes.map(({ status, error }) => status ?? error)).toEqual([
      200,
      'The address must be on the internet.',
      'The address must start with https://.',
    ]);
    allowing.close();
  });

  it('that answer with another protocol have failed', async () => {
    const other = createTcpServer((socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'));
    });
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const there = `127.0.0.1:${(other.address() as AddressInfo).port}`;
    const allowing = makeOutgoing({ allowedHosts: [there] });

    expect(await allowing.post(`http://${there}/`, {}, '{}')).toMatchObject({ status: 101, error: 'It answered 101.' });
    allowing.close();
    other.close();
  });

  it('that do not answer end in time', async () => {
    const hasty = makeOutgoing({ allowedHosts: [host], timeoutMilliseconds: 500 });
    const outcome = await hasty.post(at('/000'), {}, '{}');
    hasty.close();

    expect(outcome).toMatchObject({ status: undefined, error: 'There was no answer in time.' });
  });
});
