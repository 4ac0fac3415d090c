import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../client/client.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenCluster, givenReplica, hasServerPrograms, type PrivateServer } from '../faults/privateServer.ts';
import type { TestCaller } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { givenDemoDirectory, removeProcesses, signIn } from '../harness/process.ts';
import { isNight } from '../harness/sample.ts';
import { onServer } from '../harness/server.ts';
import { startNode } from '../harness/usedService.ts';
import { givenWebhookReceiver } from '../harness/webhookReceiver.ts';

const run = promisify(execFile);
const JWT_SECRET = 'the secret of a service on two servers';
const METRICS_TOKEN = 'a-token-for-prometheus';
const hasTools =
  hasServerPrograms() &&
  (await run('pg_dump', ['--version']).then(
    () => true,
    () => false,
  ));
if (!hasTools)
  console.log('\nSKIPPED: restore and fail-over with events. They need the programs of a PostgreSQL server.\n');

type Received = { id: string; type: string; subject_id: number };

/** A receiver with several addresses, each for one webhook. Answers 500 at those that are out of order. */
async function givenReceiver() {
  const received = new Map<string, Received[]>();
  const broken = new Set<string>();
  const { host, remove } = await givenWebhookReceiver(({ path, body }, response) => {
    if (broken.has(path)) return response.writeHead(500).end();
    received.set(path, [...(received.get(path) ?? []), JSON.parse(body).data]);
    return response.writeHead(204).end();
  });
  opened.push({ close: remove });
  return { host, broken, at: (path: string) => received.get(path) ?? [], all: () => [...received] };
}

const opened: { close: () => unknown }[] = [];
afterAll(async () => {
  await Promise.all(opened.map(({ close }) => close()));
  await removeProcesses();
});

async function givenServer(make: Promise<PrivateServer | undefined>): Promise<PrivateServer> {
  const server = (await make)!;
  opened.push({ close: server.remove });
  return server;
}

const settingsOn = (DATABASE_URL: string, host: string) => ({
  ...{ DATABASE_URL, JWT_SECRET, METRICS_TOKEN, WEBHOOK_ALLOWED_HOSTS: host },
});

const command = async (words: string, settings: Record<string, string>) =>
  runCommandLine(words.split(' '), () => settings);

const createCards = async (caller: TestCaller, titles: string[]): Promise<number[]> => {
  const ids: number[] = [];
  for (const title of titles) ids.push((await caller.rpc.cards.create.mutate({ title })).card.id);
  return ids;
};
const titles = (count: number) => Array.from({ length: count }, (_, number) => `Card ${number}`);

/** The cards of events that were created. */
const createdIn = (events: { type: string; subject_id: number | null }[]) =>
  events.filter(({ type }) => type === 'card.created').map(({ subject_id }) => subject_id);

const latest = async (caller: TestCaller) => (await caller.rpc.events.list.query({ after: 'latest' })).cursor;

/** Transactions that the server counts, and nobody else sees. */
const burn = (url: string, count: number) =>
  onServer(
    url,
    `do $$ begin create temporary table burnt (id int) on commit drop; for i in 1..${count} loop begin insert into burnt values (i);
      raise exception 'undone'; exception when raise_exception then null; end; end loop; end $$`,
  );

async function metric(url: string, name: string): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(await response.text())?.[1]);
}

/** Follows in the background, until it is told that it may not go on. */
function follow(url: string, token: string, after: string) {
  const client = createClient({ url, token });
  const closing = new AbortController();
  opened.push({ close: () => closing.abort() });
  const seen: Received[] = [];
  const ended = (async () => {
    const stream = client.events.follow({ types: ['card.created'], after }, { signal: closing.signal });
    for await (const event of stream) seen.push(event as unknown as Received);
  })().then(
    () => undefined,
    (error) => error,
  );
  return { seen, ended };
}

describe.skipIf(!hasTools || !isNight)(
  'a restore into a younger server, with 10 webhooks and 3 followers',
  { timeout: 120_000 },
  () => {
    const PATHS = Array.from({ length: 10 }, (_, number) => `/${number}`);

    it('loses nothing, calls nobody by itself, and gives no id twice', async () => {
      const [older, younger] = await Promise.all([givenServer(givenCluster()), givenServer(givenCluster())]);
      const receiver = await givenReceiver();
      const settings = settingsOn(older.url, receiver.host);
      await command('demo', settings);
      await burn(older.url, 5000);
      const before = await startNode(settings);
      const owner = await signIn(before.url, 'owner@demo.test');
      for (const path of PATHS)
        await owner.rpc.webhooks.create.mutate({
          project_id: 1,
          url: `http://${receiver.host}${path}`,
          types: ['card.created'],
        });
      const member = await signIn(before.url);
      const first = await createCards(member, titles(3));
      await vi.waitFor(() => PATHS.map((path) => expect(createdIn(receiver.at(path))).toEqual(first)));
      // Half of the receivers fail from here on.
      for (const path of PATHS.slice(5)) receiver.broken.add(path);
      const cursors = [await latest(member), await latest(owner), await latest(member)];
      const second = await createCards(member, titles(2));
      await vi.waitFor(() => PATHS.slice(0, 5).map((path) => expect(receiver.at(path)).toHaveLength(5)));

      const dump = await run('pg_dump', ['--format=plain', older.url], { maxBuffer: 1 << 28 });
      // Lost: written and delivered after the backup.
      await createCards(member, titles(40));
      await vi.waitFor(() => expect(receiver.at('/0')).toHaveLength(45));
      await before.stop();
      const restoring = run('psql', ['--quiet', '--set=ON_ERROR_STOP=1', '--single-transaction', younger.url]);
      restoring.child.stdin!.end(dump.stdout);
      await restoring;

      const moved = settingsOn(younger.url, receiver.host);
      await command('erasures none', moved);
      const service = await startNode(moved);
      opened.push({ close: () => service.stop() });
      const known = new Set(receiver.all().flatMap(([, events]) => events.map(({ id }) => id)));
      const sent = receiver.all().flatMap(([, events]) => events).length;
      const reader = await signIn(service.url);
      for (const after of cursors)
        expect(await errorOf(reader.rpc.events.list.query({ after }))).toMatchObject({
          status: 422,
          reason: 'cursor_too_old',
        });
      const refused = follow(service.url, reader.token!, cursors[0]!);
      const fresh = await latest(reader);
      const followers = [1, 2, 3].map(() => follow(service.url, reader.token!, fresh));
      const third = await createCards(reader, titles(5));

      expect(await refused.ended).toMatchObject({ reason: 'cursor_too_old' });
      await vi.waitFor(() => followers.map(({ seen }) => expect(createdIn(seen)).toEqual(third)));
      expect(receiver.all().flatMap(([, events]) => events)).toHaveLength(sent);
      expect(await metric(service.url, 'deckhand_webhooks_paused')).toBe(1);

      receiver.broken.clear();
      await onServer(younger.url, 'update webhooks set next_attempt_at = now()');
      expect(await command('webhooks resume', moved)).toMatchObject({
        exitCode: 0,
        printed: expect.stringMatching(/^Webhooks go on/),
      });

      await vi.waitFor(
        () =>
          PATHS.map((path) =>
            expect(createdIn(receiver.at(path).filter(isKept))).toEqual([...first, ...second, ...third]),
          ),
        { timeout: 30_000 },
      );
      for (const path of PATHS) {
        const ids = receiver.at(path).map(({ id }) => id);
        expect(new Set(ids).size).toBe(ids.length);
      }
      const events = (await reader.rpc.events.list.query({ after: fresh, types: ['card.created'] })).events;
      expect(createdIn(events)).toEqual(third);
      expect(events.filter(({ id }) => known.has(id))).toEqual([]);
      expect(await metric(service.url, 'deckhand_webhooks_paused')).toBe(0);

      // The counter passes the old places: their cursors stay refused.
      await burn(younger.url, 10_000);
      expect(await errorOf(reader.rpc.events.list.query({ after: cursors[0] }))).toMatchObject({
        reason: 'cursor_too_old',
      });
      expect(await command('database verify', moved)).toMatchObject({
        exitCode: 0,
        printed: expect.stringMatching(/^Nothing wrong/),
      });

      /** Whether the card was in the backup, or is new: ids of lost cards are given out again. */
      function isKept({ id, subject_id }: Received): boolean {
        return !known.has(id) || [...first, ...second].includes(subject_id);
      }
    });
  },
);

describe('a node with WEBHOOKS=off', () => {
  it('delivers nothing, and the next node without it does', async () => {
    const givenNode = async (WEBHOOKS: string) => {
      const receiver = await givenReceiver();
      const settings = { DATA_DIR: await givenDemoDirectory(), WEBHOOK_ALLOWED_HOSTS: receiver.host };
      const node = await startNode({ ...settings, WEBHOOKS });
      const owner = await signIn(node.url, 'owner@demo.test');
      await owner.rpc.webhooks.create.mutate({ project_id: 1, url: `http://${receiver.host}/` });
      await createCards(await signIn(node.url), ['One']);
      return { ...node, receiver, settings };
    };
    const { receiver, settings, ...off } = await givenNode('off');
    // Gets its card later, and delivers it.
    const other = await givenNode('on');
    await vi.waitFor(() => expect(createdIn(other.receiver.at('/'))).toHaveLength(1));
    await other.stop();
    await off.stop();
    expect(receiver.all()).toEqual([]);

    const on = await startNode(settings);
    opened.push({ close: () => on.stop() });

    await vi.waitFor(() => expect(createdIn(receiver.at('/'))).toHaveLength(1));
  });
});

describe.skipIf(!hasTools)('a fail-over that loses transactions', { timeout: 120_000 }, () => {
  let primary: PrivateServer;
  let standby: Awaited<ReturnType<typeof givenReplica>>;
  beforeAll(async () => {
    primary = await givenServer(givenCluster());
    standby = await givenReplica(primary);
    opened.push({ close: standby.remove });
  });

  it('keeps cursors up to the last event that both servers have, pauses nothing, and gives no id twice', async () => {
    const receiver = await givenReceiver();
    const hosts = [primary, standby].map(({ url }) => new URL(url).host);
    const settings = settingsOn(
      `postgresql://postgres@${hosts}/postgres?target_session_attrs=read-write`,
      receiver.host,
    );
    await command('demo', settings);
    const service = await startNode(settings);
    opened.push({ close: () => service.stop() });
    const [owner, member] = [await signIn(service.url, 'owner@demo.test'), await signIn(service.url)];
    await owner.rpc.webhooks.create.mutate({ project_id: 1, url: `http://${receiver.host}/`, types: ['card.created'] });
    const follower = follow(service.url, member.token!, await latest(member));
    const shared = await createCards(member, titles(3));
    await vi.waitFor(() => expect(createdIn(receiver.at('/'))).toEqual(shared));
    await vi.waitFor(() => expect(createdIn(follower.seen)).toEqual(shared));
    const good = await latest(member);
    await untilReplayed();
    await onServer(standby.url, "alter system set primary_conninfo = ''");
    await onServer(standby.url, 'select pg_reload_conf()');
    await vi.waitFor(async () => expect(await onServer(primary.url, 'select 1 from pg_stat_replication')).toEqual([]));

    await createCards(member, titles(40));
    await vi.waitFor(() => expect(receiver.at('/')).toHaveLength(43));
    const lost = await latest(member);
    const known = new Set(receiver.at('/').map(({ id }) => id));
    await primary.kill();
    await standby.promote();
    const created = await vi.waitFor(() => createCards(member, ['After']), { interval: 200 });
    const next = [...created, ...(await createCards(member, titles(3)))];

    const { events } = await vi.waitFor(async () => {
      const page = await member.rpc.events.list.query({ after: good, types: ['card.created'] });
      expect(createdIn(page.events)).toEqual(next);
      return page;
    });
    expect(events.filter(({ id }) => known.has(id))).toEqual([]);
    expect(await errorOf(member.rpc.events.list.query({ after: lost }))).toMatchObject({
      status: 422,
      reason: 'cursor_too_old',
    });
    expect(await follower.ended).toMatchObject({ reason: 'cursor_too_old' });
    await vi.waitFor(() => expect(createdIn(receiver.at('/').filter(({ id }) => !known.has(id)))).toEqual(next), {
      timeout: 90_000,
    });
    expect(await metric(service.url, 'deckhand_webhooks_paused')).toBe(0);
    expect(await command('database verify', settings)).toMatchObject({ exitCode: 0 });
  });

  /** Until the standby shows all that was written. */
  async function untilReplayed(): Promise<void> {
    const [{ position }] = (await onServer(primary.url, 'select pg_current_wal_lsn()::text as position')) as [
      { position: string },
    ];
    const isReplayed = `select pg_last_wal_replay_lsn() >= '${position}' as done`;
    await vi.waitFor(async () => expect(await onServer(standby.url, isReplayed)).toEqual([{ done: true }]));
  }
});
