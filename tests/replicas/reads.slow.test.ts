import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RestProcedure, restProcedures } from '../../server/api/procedures.ts';
import { callOnDatabase } from '../../server/cli/onDatabase.ts';
import { inputFor } from '../../server/contract/input.ts';
import { ServerClient } from '../../server/database/client.ts';
import { query } from '../../server/database/query.ts';
import { beginEpoch, storePosition } from '../../server/database/writePosition.ts';
import { givenReplica, type PrivateServer, type Replica } from '../faults/privateServer.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { onServer } from '../harness/server.ts';
import {
  databaseUrl,
  givenService,
  TEST_SECRET,
  type TestService,
  testDatabase,
  testService,
} from '../harness/service.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  testDb,
} from '../harness/world.ts';

const METRICS_TOKEN = 'a-token-for-prometheus';
const CARDS = '/services/operations/v1/operations/cards';

/** The queries that read themselves what their caller has access to. */
const ON_PRIMARY = new Set([
  'account.whoAmI',
  'account.listInvitations',
  'account.listIdentities',
  'account.showInvitation',
  'account.getExport',
  'projects.listOwn',
  'subscriptions.list',
  'themes.list',
  'themes.listVersions',
  'events.list',
  'keys.self',
]);

let replica: Replica;
let replicaUrl: string;
let nodes: [TestService, TestService];

beforeAll(async () => {
  await testDatabase();
  replica = await givenReplica({ url: databaseUrl } as PrivateServer);
  replicaUrl = ofDatabase(replica.url);
  nodes = [await givenNode(replicaUrl), await givenNode(replicaUrl)];
  await caughtUp();
});

afterAll(() => replica.remove());

/** A URL of a server, with the database of this worker. */
const ofDatabase = (url: string) => Object.assign(new URL(url), { pathname: new URL(databaseUrl!).pathname }).href;

const givenNode = (urls: string) => givenService({ DATABASE_REPLICA_URLS: urls, METRICS_TOKEN });

/** Waits until the replica has replayed everything, and the nodes use it. */
async function caughtUp(): Promise<void> {
  const [{ position }] = (await onServer<{ position: string }>(
    databaseUrl!,
    'select pg_current_wal_lsn() as position',
  )) as [{ position: string }];
  await vi.waitFor(async () => {
    const passed = `select pg_last_wal_replay_lsn() >= '${position}' as "isPassed"`;
    expect(await onServer(replica.url, passed)).toEqual([{ isPassed: true }]);
    for (const node of nodes) expect(await isUp(node)).toBe(true);
  });
}

async function measured({ url }: TestService, metric: string, label = ''): Promise<number> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  const lines = (await response.text()).split('\n');
  return Number(
    lines
      .find((line) => line.startsWith(metric) && line.includes(label))
      ?.split(' ')
      .at(-1) ?? 0,
  );
}

async function seriesOf({ url }: TestService, metric: string): Promise<string[]> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } });
  return (await response.text()).split('\n').filter((line) => line.startsWith(metric));
}

const isUp = async (node: TestService) => (await measured(node, 'deckhand_replica_up')) === 1;
/** How many reads a node has sent to the replica, and how many of these failed there. */
const readsOn = (node: TestService) => measured(node, 'deckhand_reads_total', new URL(replica.url).host);
const retriesOf = (node: TestService) => measured(node, 'deckhand_replica_retries_total');

/** Runs work while the replica receives changes without showing them. */
async function whilePaused<Result>(work: () => Promise<Result>): Promise<Result> {
  await caughtUp();
  await replica.pause();
  try {
    return await work();
  } finally {
    await replica.resume();
  }
}

/** The same caller on both nodes. */
const onBoth = ({ token }: TestCaller) => nodes.map(({ url }) => makeCaller(url, token)) as [TestCaller, TestCaller];

const titles = async (caller: TestCaller): Promise<string[]> =>
  (await caller.post(`${CARDS}/list`, {})).body.data.cards.map(({ title }: { title: string }) => title);

/** Waits until a caller sees these cards: a busy machine may not know the position of the replica for a moment. */
const sees = (caller: TestCaller, expected: string[]) =>
  vi.waitFor(async () => expect(await titles(caller)).toEqual(expected));

/** Waits until the read goes to the replica, which serves it. */
const usesReplica = (node: TestService, read: () => Promise<unknown>, name = '') =>
  vi.waitFor(async () => {
    const [reads, retries] = [await readsOn(node), await retriesOf(node)];
    await read();
    expect([await readsOn(node), await retriesOf(node)], name).toEqual([reads + 1, retries]);
  });

/** The statements during some work that contain this text. */
async function statementsWith(text: string, work: () => Promise<unknown>): Promise<string[]> {
  const sent = vi.spyOn(ServerClient.prototype, 'query');
  try {
    await work();
    return sent.mock.calls.map(([statement]) => String(statement)).filter((statement) => statement.includes(text));
  } finally {
    sent.mockRestore();
  }
}

describe('with a replica that is behind', () => {
  it('a user sees their own writes on every node, others the state before; all of them once it has caught up', async () => {
    const world = await givenWorld(nodes[0]);
    const [first, second] = onBoth(world.asMember);
    const [viewer] = onBoth(world.asViewer);

    await whilePaused(async () => {
      const { status } = await first.post(`${CARDS}/create`, { title: 'new' });

      expect(status).toBe(201);
      expect(await titles(first)).toEqual(['new']);
      expect(await titles(second)).toEqual(['new']);
      await sees(viewer, []);
    });

    await sees(viewer, ['new']);
    await usesReplica(nodes[1], async () => expect(await titles(second)).toEqual(['new']));
  });

  it('so do users with an idempotency key, after a failed mutation, and of a command', async () => {
    const world = await givenWorld(nodes[0]);
    const card = await givenCard(world.project, { title: 'old' });
    const [member, owner, other] = [onBoth(world.asMember)[0], onBoth(world.asOwner)[0], onBoth(world.asSuperadmin)[0]];

    await whilePaused(async () => {
      await sees(other.in(world.project.id), ['old']);
      const keyed = { 'Idempotency-Key': randomUUID() };
      for (const replayed of [null, 'true']) {
        const { headers } = await member.post(`${CARDS}/update`, { id: card, title: 'keyed' }, keyed);
        expect(headers.get('idempotent-replayed')).toBe(replayed);
      }
      expect(await titles(member)).toEqual(['keyed']);
      await sees(owner, ['old']);

      await owner.post(`${CARDS}/delete`, { id: 2_000_000_000 });
      expect(await titles(owner)).toEqual(['keyed']);

      const environment = () => ({
        DATABASE_URL: databaseUrl,
        DATABASE_REPLICA_URLS: replicaUrl,
        JWT_SECRET: TEST_SECRET,
      });
      const chosen = { as: world.users.superadmin.email, project: world.project.id };
      await callOnDatabase({ chosen, environment } as never, (call) =>
        call('cards.update', { id: card, title: 'by command' }),
      );
      expect(await titles(other.in(world.project.id))).toEqual(['by command']);
    });
  });

  it('what others changed is never older than in an earlier read of the same user', async () => {
    const world = await givenWorld(nodes[0]);
    const card = await givenCard(world.project, { title: 'old' });
    const [[member], [owner], [viewer]] = [onBoth(world.asMember), onBoth(world.asOwner), onBoth(world.asViewer)];
    await caughtUp();
    const isNotedFor = async (user: { id: number }, written: string) => {
      const stored = sql<{ isNoted: boolean }>`
        select position >= ${written}::pg_lsn as "isNoted" from write_positions where user_id = ${user.id}`;
      return (await query(await testDb(), stored))[0]?.isNoted;
    };

    await whilePaused(async () => {
      await member.post(`${CARDS}/update`, { id: card, title: 'by the member' });
      await owner.post(`${CARDS}/update`, { id: card, title: 'by the owner' });
      const created = await givenCard(world.project, { title: 'another' });
      const [{ written }] = (await onServer(databaseUrl!, 'select pg_current_wal_insert_lsn() as written')) as [
        { written: string },
      ];
      expect(await isNotedFor(world.users.member, written)).toBe(false);

      // The replica lacks their own write, or a row: both read on the primary.
      expect(await titles(member)).toContain('by the owner');
      expect((await viewer.post(`${CARDS}/get`, { id: created })).status).toBe(200);

      expect(await isNotedFor(world.users.member, written)).toBe(true);
      expect(await isNotedFor(world.users.viewer, written)).toBe(true);
    });
  });

  it('500 if a write is stored but its position is not; the repeat with the same key returns the first response', async () => {
    const world = await givenWorld(nodes[0]);
    const [member] = onBoth(world.asMember);
    const db = await testDb();
    const create = () => member.post(`${CARDS}/create`, { title: 'once' }, { 'Idempotency-Key': key });
    const key = randomUUID();

    await whilePaused(async () => {
      const refuse = sql`check (user_id <> ${sql.lit(world.users.member.id)}) not valid`;
      await query(db, sql`alter table write_positions add constraint refused ${refuse}`);
      const first = await create().finally(() => query(db, sql`alter table write_positions drop constraint refused`));
      const second = await create();

      expect(first.status).toBe(500);
      expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
      expect(await titles(member)).toEqual(['once']);
    });
  });

  it('a row that it does not have yet is found on the primary, and nothing goes there twice once it has it', async () => {
    const world = await givenWorld(nodes[0]);
    const [viewer] = onBoth(world.asViewer);
    const get = (id: number) => viewer.post(`${CARDS}/get`, { id });

    const card = await whilePaused(async () => {
      const card = await givenCard(world.project);
      expect(await get(card)).toMatchObject({ status: 200, body: { data: { card: { id: card } } } });
      return card;
    });

    await caughtUp();
    await usesReplica(nodes[0], async () => expect((await get(card)).status).toBe(200));
  });

  it.each<[string, (project: number, user: number) => RawBuilder<unknown>]>([
    [
      'who was removed',
      (project, user) => sql`delete from members where project_id = ${project} and user_id = ${user}`,
    ],
    ['whose project was deactivated', (project) => sql`update projects set is_active = false where id = ${project}`],
  ])('a member %s gets from no query what the primary refuses', async (_, change) => {
    const world = await givenWorld(nodes[0]);
    const user = await givenUser({ project: await givenProject(), role: 'owner' });
    await givenMember(user, world.project, 'owner');
    const token = await givenToken(user);
    const queries = restProcedures.filter(
      ({ type, access }) => type === 'query' && access !== 'superadmin' && access !== 'key',
    );
    const inputs = await Promise.all(queries.map((procedure) => givenInput(procedure, world)));
    // By a group of the other project, since the default project is the caller's own.
    const group_id = await givenGroup(world.project, await givenBoard(world.project));
    await givenCard(world.project, { group_id });
    inputs[queries.findIndex(({ name }) => name === 'cards.list')] = { group_id };
    const answersOf = ({ url }: TestService) =>
      Promise.all(
        queries.map(async ({ rest }, at) => {
          const { status, body } = await makeCaller(url, token).post(rest.path, inputs[at]);
          return { path: rest.path, status, body };
        }),
      );
    const onPrimary = await testService();
    expect((await answersOf(onPrimary)).filter(({ status }) => status !== 200)).toEqual([]);

    await whilePaused(async () => {
      await query(await testDb(), change(world.project.id, user.id));

      const answers = await answersOf(nodes[0]);

      expect(answers.some(({ status }) => status === 403)).toBe(true);
      expect(answers).toEqual(await answersOf(onPrimary));
    });
  });
});

const givenInput = async (procedure: RestProcedure, world: Awaited<ReturnType<typeof givenWorld>>) =>
  inputFor(procedure, await givenStartState(procedure, world));

describe('with a replica', () => {
  it('every query is served by it, or stays on the primary for its access', async () => {
    const world = await givenWorld(nodes[0]);
    // The identity providers are settings.
    const queries = restProcedures.filter(({ type, name }) => type === 'query' && name !== 'auth.listIssuers');
    const calls = [];
    for (const procedure of queries)
      calls.push({ procedure, input: await givenInput(procedure, world), caller: allowedCaller(world, procedure) });
    await caughtUp();

    for (const { procedure, input, caller } of calls) {
      const read = async () => {
        const { status, body } = await caller.post(procedure.rest.path, input);
        expect({ status, body }, procedure.name).toMatchObject({ status: 200 });
      };
      if (!ON_PRIMARY.has(procedure.name)) await usesReplica(nodes[0], read, procedure.name);
      else {
        const reads = await readsOn(nodes[0]);
        await read();
        expect(await readsOn(nodes[0]), procedure.name).toBe(reads);
      }
    }
  });

  it('a mutation stores how far its user has written; without replicas no statement is about that', async () => {
    const plain = await testService();
    const world = await givenWorld(plain);
    const create =
      ({ url }: TestService, { token }: TestCaller) =>
      () =>
        makeCaller(url, token).post(`${CARDS}/create`, { title: 'A card' });

    expect(await statementsWith('write_positions', create(plain, world.asMember))).toEqual([]);
    expect(await statementsWith('write_positions', create(nodes[0], world.asMember))).toEqual([
      expect.stringMatching(/select .*write_positions/s),
      expect.stringMatching(/insert into write_positions/),
    ]);
    const stored = sql`select from write_positions where user_id = ${world.users.member.id}`;
    expect(await query(await testDb(), stored)).toHaveLength(1);
  });

  it('a position never goes back, and one of another cluster is dropped with the next epoch', async () => {
    const db = await testDb();
    const { id } = await givenUser();
    const positions = () => query(db, sql`select position::text from write_positions where user_id = ${id}`);
    await query(db, sql`insert into write_positions (user_id, position) values (${id}, 'FFFFFFF/0')`);

    await storePosition(db, { userId: id });
    expect(await positions()).toEqual([{ position: 'FFFFFFF/0' }]);

    await beginEpoch(db);
    expect(await positions()).toEqual([]);
    await caughtUp();
  });

  it('no request fails while it is killed or frozen, and it is used again afterwards', async () => {
    const world = await givenWorld(nodes[0]);
    const callers = [...onBoth(world.asMember), ...onBoth(world.asViewer), ...onBoth(world.asOwner)];
    const failed: unknown[] = [];
    let isOver = false;
    const load = Promise.all(
      callers.map(async (caller) => {
        while (!isOver) {
          const { status, body } = await caller.post(`${CARDS}/list`, {});
          if (status !== 200) failed.push({ status, body });
        }
      }),
    );

    await replica.kill();
    await vi.waitFor(async () => expect(await isUp(nodes[0])).toBe(false));
    await replica.start();
    await caughtUp();
    replica.freeze();
    await vi.waitFor(async () => expect(await isUp(nodes[0])).toBe(false));
    replica.thaw();
    await caughtUp();
    isOver = true;
    await load;

    expect(failed).toEqual([]);
  });

  it('reads stay on the primary after a crash of it, which empties the unlogged tables, until the replica has passed that', async () => {
    const world = await givenWorld(nodes[0]);
    const [viewer] = onBoth(world.asViewer);
    const unlogged = sql`select relname::text as name from pg_class where relpersistence = 'u' and relkind = 'r' order by 1`;
    expect(await query(await testDb(), unlogged)).toEqual([{ name: 'write_epoch' }, { name: 'write_positions' }]);

    await whilePaused(async () => {
      await givenCard(world.project, { title: 'before the crash' });
      await sees(viewer, []);
      await query(await testDb(), sql`truncate write_epoch, write_positions`);
      expect(await titles(viewer)).toEqual(['before the crash']);

      const begun = async () => query(await testDb(), sql`select from write_epoch`);
      await vi.waitFor(async () => expect(await begun()).toHaveLength(1));
      expect(await titles(viewer)).toEqual(['before the crash']);
    });

    await usesReplica(nodes[0], async () => expect(await titles(viewer)).toEqual(['before the crash']));
  });

  it('one that is more than 10 seconds behind is left out until it has caught up', async () => {
    const now = performance.now.bind(performance);

    await whilePaused(async () => {
      await givenWorld(nodes[0]);
      await vi.waitFor(
        async () => expect(await measured(nodes[0], 'deckhand_replica_lag_seconds')).toBeGreaterThan(0),
        {
          timeout: 5000,
        },
      );
      expect(await isUp(nodes[0])).toBe(true);
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_000);
      try {
        await vi.waitFor(() =>
          expect(nodes[0].logged.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/it is too far behind/)),
        );
      } finally {
        clock.mockRestore();
      }
    });

    await caughtUp();
  });

  it.each([
    ['that is the primary itself', () => databaseUrl!, /it is a primary itself/],
    ['of a database of another service', () => replica.url, /relation "replicated_epoch" does not exist/],
    ['that is unreachable', () => 'postgresql://127.0.0.1:1/deckhand', /ECONNREFUSED/],
  ])('an address %s is left out with a line in the log', async (_, url, line) => {
    const node = await givenNode(url());
    const world = await givenWorld(node);

    await vi.waitFor(() => expect(node.logged.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(line)), {
      timeout: 5000,
    });
    expect((await world.asViewer.post(`${CARDS}/list`, {})).status).toBe(200);
    expect([await isUp(node), await measured(node, 'deckhand_reads_total', 'primary')]).toEqual([false, 1]);
  });

  it('the primary in both lists is no replica that is left out: no alert fires', async () => {
    const node = await givenNode(databaseUrl!);
    await vi.waitFor(
      () => expect(node.logged.map(({ msg }) => msg)).toContainEqual(expect.stringMatching(/primary itself/)),
      {
        timeout: 5000,
      },
    );

    expect(await seriesOf(node, 'deckhand_replica_')).toEqual(['deckhand_replica_retries_total 0']);
  });

  it('one that is unreachable is down, and its lag is unknown, not 0', async () => {
    const node = await givenNode('postgresql://127.0.0.1:1/deckhand');

    expect(await seriesOf(node, 'deckhand_replica_')).toEqual([
      'deckhand_replica_up{replica="127.0.0.1:1"} 0',
      'deckhand_replica_retries_total 0',
    ]);
  });
});
