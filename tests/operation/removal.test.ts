import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { startBackground, workOff } from '../../server/database/background.ts';
import { type Db, query, transact } from '../../server/database/query.ts';
import { countDue, type Removal, removeSome, useIndexes } from '../../server/database/removal.ts';
import type { TableName } from '../../server/database/tables.ts';
import type { ProjectTable } from '../../server/domain/board/row.ts';
import { deletedRowRemovals } from '../../server/domain/removal/deletedRows.ts';
import { removalsOf } from '../../server/domain/removal/removals.ts';
import { databaseUrl, testDatabase } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenProject,
  givenTag,
  givenTrial,
  givenUser,
  givenWorld,
  insert,
  stored,
  testDb,
} from '../harness/world.ts';

/** Long ago, so that no rows of other suites are due. */
const NOW = new Date('2001-06-01T12:00:00Z');
const DAY = 24 * 3_600_000;
const HOUR = 3_600_000;
const SECOND = 1000;
const ago = (milliseconds: number) => new Date(NOW.getTime() - milliseconds);

const KEPT = {
  TEMPLATE_RUNS_KEPT_DAYS: 90,
  EVENTS_KEPT_DAYS: 30,
  AUDIT_KEPT_DAYS: 365,
  CHECKOUTS_KEPT_DAYS: 730,
  DELETED_ROWS_KEPT_DAYS: 30,
};

const removalsFrom = (...tables: TableName[]) => removalsOf(KEPT).filter(({ table }) => tables.includes(table));

const removeStep = (db: Db, removal: Removal, rows: number) =>
  removeSome(db, removal, { rows }, sql<Date>`${NOW}::timestamptz`);

/** Removes all that is due at `NOW`, in small steps. */
async function remove(removals: Removal[]): Promise<void> {
  const pace = { rows: 2, pauseMilliseconds: 0, isStopped: () => false };
  for (const removal of removals) {
    const step = (db: Db, limit: { rows: number; after?: string }) =>
      removeSome(db, removal, limit, sql<Date>`${NOW}::timestamptz`);
    await workOff(await testDb(), { table: removal.table, step }, pace);
  }
}

describe('sessions', () => {
  const [plain, remembered] = removalsFrom('sessions') as [Removal, Removal];

  const givenSession = (user_id: number, expired: number, secondFactor: number | null = null) =>
    insert('sessions', {
      user_id,
      expires_at: ago(expired),
      second_factor_at: secondFactor === null ? null : ago(secondFactor),
    });
  const sessionsOf = (user_id: number) =>
    testDb().then((db) => query(db, sql<{ id: string }>`select id from sessions where user_id = ${user_id}`));

  it('are removed when they have expired', async () => {
    const user = await givenUser();
    const kept = await givenSession(user.id, 0);
    for (let count = 0; count < 5; count++) await givenSession(user.id, SECOND);

    await remove([plain, remembered]);

    expect(await sessionsOf(user.id)).toEqual([{ id: kept }]);
  });

  it('of remembered devices are kept for 30 days from their second factor', async () => {
    const user = await givenUser();
    const kept = [await givenSession(user.id, 29 * DAY, 30 * DAY), await givenSession(user.id, -SECOND, 31 * DAY)];
    await givenSession(user.id, 29 * DAY, 30 * DAY + SECOND);

    await remove([plain, remembered]);

    expect((await sessionsOf(user.id)).map(({ id }) => id).toSorted()).toEqual(kept.toSorted());
  });
});

describe('idempotency keys', () => {
  const givenKey = async (user_id: number, age: number) => {
    const key = randomUUID();
    await insert('idempotency_keys', {
      user_id,
      procedure: 'cards.create',
      key,
      input_hash: 'x',
      created_at: ago(age),
    });
    return key;
  };

  it('are removed after 24 hours, and what they used after 25', async () => {
    const user = await givenUser();
    const kept = await givenKey(user.id, 24 * HOUR);
    await givenKey(user.id, 24 * HOUR + SECOND);
    for (const hour of [ago(25 * HOUR), ago(26 * HOUR)])
      await insert('idempotency_usage', { user_id: user.id, hour, keys: 1, answer_bytes: 1 });

    await remove(removalsFrom('idempotency_keys', 'idempotency_usage'));

    const db = await testDb();
    expect(await query(db, sql`select key from idempotency_keys where user_id = ${user.id}`)).toEqual([{ key: kept }]);
    expect(await query(db, sql`select hour from idempotency_usage where user_id = ${user.id}`)).toEqual([
      { hour: ago(25 * HOUR) },
    ]);
  });
});

describe('template runs', () => {
  const givenRun = async (board_id: number, state: object = {}) => {
    const old = ago(90 * DAY + SECOND);
    const row = { kind: 'sync', board_id, started_at: old, progressed_at: old, finished_at: old, ...state } as const;
    const run_id = await insert('template_runs', row);
    for (let count = 0; count < 3; count++) {
      const { id: project_id } = await givenProject();
      await insert('template_outcomes', { run_id, project_id, outcome: 'unchanged' });
    }
    return run_id;
  };
  const runsOf = async (board_id: number) => {
    const db = await testDb();
    return query(
      db,
      sql<{ id: number; outcomes: number }>`
        select id, (select count(*)::int from template_outcomes where run_id = r.id) as outcomes
        from template_runs r where board_id = ${board_id} order by id`,
    );
  };

  it('are removed with their outcomes after the days of the setting', async () => {
    const { board } = await givenMasterBoard();
    await givenRun(board);
    await givenRun(board, { finished_at: null, interrupted_at: ago(90 * DAY) });
    const young = await givenRun(board, { started_at: ago(90 * DAY) });
    const last = await givenRun(board, { started_at: ago(DAY) });

    await remove(removalsFrom('template_runs'));

    expect(await runsOf(board)).toEqual([
      { id: young, outcomes: 3 },
      { id: last, outcomes: 3 },
    ]);
  });

  it('stay while they make progress, and the last one of a board as long as the board', async () => {
    const [running, finished, deleted] = [await givenMasterBoard(), await givenMasterBoard(), await givenMasterBoard()];
    await givenRun(running.board, { finished_at: null, progressed_at: ago(SECOND) });
    for (const { board } of [running, finished, deleted]) await givenRun(board);
    await query(await testDb(), sql`update boards set deleted_at = ${ago(SECOND)} where id = ${deleted.board}`);

    await remove(removalsFrom('template_runs'));

    expect(await runsOf(running.board)).toHaveLength(2);
    expect(await runsOf(finished.board)).toHaveLength(1);
    expect(await runsOf(deleted.board)).toHaveLength(0);
  });
});

describe('checkouts', () => {
  const OLD = ago(730 * DAY + SECOND);
  const givenCheckouts = async (...states: object[]) => {
    const { id: subscription_id, product } = await givenTrial(await givenProject());
    const [plan] = await query(
      await testDb(),
      sql<{ id: number }>`select id from plans where product = ${product} and period = 'year'`,
    );
    const row = { subscription_id, plan_id: plan!.id, price_cents: 1, currency: 'EUR', provider: 'stripe' } as const;
    const ids: number[] = [];
    for (const state of states) ids.push(await insert('checkouts', { ...row, created_at: OLD, ...state }));
    return ids;
  };
  const left = async (ids: number[]) =>
    (
      await query(
        await testDb(),
        sql<{ id: number }>`
    select id from checkouts where id = any(${ids}::int[]) order by id`,
      )
    ).map(({ id }) => ids.indexOf(id));

  it('that nobody paid are removed after the days of the setting, unless the provider knows a subscription', async () => {
    const ids = await givenCheckouts(
      { status: 'expired' },
      { status: 'cancelled' },
      { status: 'open', expires_at: OLD },
      { status: 'expired', created_at: ago(730 * DAY) },
      { status: 'expired', provider_subscription_id: randomUUID() },
    );

    await remove(removalsFrom('checkouts'));

    expect(await left(ids)).toEqual([3, 4]);
  });

  it('that were paid stay until they end, and the last one for ever', async () => {
    const provider_subscription_id = () => randomUUID();
    const ids = await givenCheckouts(
      { status: 'paid', ended_at: OLD, provider_subscription_id: provider_subscription_id() },
      { status: 'paid', ended_at: ago(730 * DAY), provider_subscription_id: provider_subscription_id() },
      { status: 'paid' },
      { status: 'paid', is_past_due: true },
      { status: 'paid', ended_at: OLD },
      { status: 'expired', ended_at: OLD, provider_subscription_id: provider_subscription_id() },
    );

    await remove(removalsFrom('checkouts'));

    expect(await left(ids)).toEqual([1, 2, 3, 4]);
  });
});

describe('rows that were deleted long ago', () => {
  const deleted_at = ago(30 * DAY + SECOND);
  const removals = deletedRowRemovals(30);
  /** Of all the rows, those that are left. */
  const left = async (rows: Record<string, [ProjectTable, number]>) => {
    const found = await Promise.all(
      Object.entries(rows).map(async ([name, [table, id]]) => ((await stored(table, id)) ? [name] : [])),
    );
    return found.flat();
  };

  it('are not removed without the setting', () => {
    const tables = removalsOf({ ...KEPT, DELETED_ROWS_KEPT_DAYS: undefined }).map(({ table }) => table);

    expect(tables.filter((table) => ['boards', 'groups', 'cards', 'comments', 'tags'].includes(table))).toEqual([]);
  });

  it('go with what is in them: a board with its groups, their cards and all comments', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const tag = await givenTag(project, { deleted_at });
    const board = await givenBoard(project, { deleted_at });
    const group = await givenGroup(project, board, { deleted_at });
    const cards = [];
    for (let count = 0; count < 3; count++) {
      const card = await givenCard(project, { group_id: group, tag_id: tag, deleted_at });
      cards.push(card);
      const root = await givenComment(project, card, user);
      let parent = root;
      for (let depth = 1; depth < 5; depth++) {
        const below = { parent_comment_id: parent, root_comment_id: root, depth };
        parent = await givenComment(project, card, user, below);
      }
      await insert('tour_dismissals', { user_id: user.id, card_id: card });
    }

    await remove(removals);

    const [first, second, third] = cards as [number, number, number];
    const rows = { first: ['cards', first], second: ['cards', second], third: ['cards', third] } as const;
    const others = { tag: ['tags', tag], group: ['groups', group], board: ['boards', board] } as const;
    expect(await left({ ...rows, ...others } as never)).toEqual([]);
    expect(await query(await testDb(), sql`select from comments where project_id = ${project.id}`)).toEqual([]);
  });

  it('stay until the days of the setting are over', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const young = { deleted_at: ago(30 * DAY) };
    const board = await givenBoard(project, young);
    const group = await givenGroup(project, board, young);
    const card = await givenCard(project, { group_id: group, ...young });
    const comment = await givenComment(project, card, user, young);
    const tag = await givenTag(project, young);

    await remove(removals);

    const rows = { board: ['boards', board], group: ['groups', group], card: ['cards', card] } as const;
    const others = { comment: ['comments', comment], tag: ['tags', tag] } as const;
    expect(await left({ ...rows, ...others } as never)).toEqual(['board', 'group', 'card', 'comment', 'tag']);
  });

  it('go with the entry in the trash, which stays as long as its row', async () => {
    const project = await givenProject();
    const gone = await givenCard(project, { deleted_at });
    const kept = await givenCard(project, { deleted_at: NOW });
    const entry = { noun: 'card', project_id: project.id, deleted_at };
    const entries = [
      await insert('deletions', { ...entry, subject_id: gone }),
      await insert('deletions', { ...entry, subject_id: kept }),
    ];

    await remove(removals);

    const left = sql`select id from deletions where project_id = ${project.id}`;
    expect(await query(await testDb(), left)).toEqual([{ id: entries[1] }]);
  });

  it('stay as long as another row refers to them', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const tag = await givenTag(project, { deleted_at });
    const board = await givenBoard(project, { deleted_at });
    const group = await givenGroup(project, board, { deleted_at });
    const card = await givenCard(project, { group_id: group, tag_id: tag });
    const comment = await givenComment(project, card, user, { deleted_at });
    const below = { parent_comment_id: comment, root_comment_id: comment, depth: 1 };
    const reply = await givenComment(project, card, user, { ...below, deleted_at: NOW });

    await remove(removals);

    const rows = { board: ['boards', board], group: ['groups', group], tag: ['tags', tag] } as const;
    const others = { comment: ['comments', comment], reply: ['comments', reply] } as const;
    expect(await left({ ...rows, ...others } as never)).toEqual(['board', 'group', 'tag', 'comment', 'reply']);
  });

  describe('and are copies of a template', () => {
    const sync = '/services/operations/v1/admin/master-boards/sync';
    const BROUGHT = { brought: '{}' };

    const givenCopies = async (state: object) => {
      const project = await givenProject({ tools: [randomUUID()] });
      const [tool] = await query(
        await testDb(),
        sql<{ tool_key: string }>`select tool_key from project_tools where project_id = ${project.id}`,
      );
      const master = await givenMasterBoard({ board: tool! });
      const board = await givenBoard(project, { master_board_id: master.board, ...BROUGHT, ...state });
      const group = await givenGroup(project, board, { master_group_id: master.group, ...BROUGHT, ...state });
      const card = await givenCard(project, { master_card_id: master.card, group_id: group, ...state });
      const copies = { board: ['boards', board], group: ['groups', group], card: ['cards', card] } as const;
      const masters = {
        board: ['boards', master.board],
        group: ['groups', master.group],
        card: ['cards', master.card],
      } as const;
      return { project, master, copies: copies as never, masters: masters as never };
    };
    const deleteMaster = async ({ board, group, card }: { board: number; group: number; card: number }) => {
      const db = await testDb();
      await query(db, sql`update boards set deleted_at = ${deleted_at} where id = ${board}`);
      await query(db, sql`update groups set deleted_at = ${deleted_at} where id = ${group}`);
      await query(db, sql`update cards set deleted_at = ${deleted_at} where id = ${card}`);
    };

    it('stay while the template exists: a sync does not bring them back', async () => {
      const { asSuperadmin } = await givenWorld();
      const { project, master, copies } = await givenCopies({ deleted_at });

      await remove(removals);
      const answer = await asSuperadmin.post(sync, { board_id: master.board });

      expect(answer.status).toBe(200);
      expect(await left(copies)).toEqual(['board', 'group', 'card']);
      const found = await query(await testDb(), sql`select from cards where project_id = ${project.id}`);
      expect(found).toHaveLength(1);
    });

    it('go when the template was deleted long ago, and then the template', async () => {
      const { master, copies, masters } = await givenCopies({ deleted_at });
      await deleteMaster(master);

      await remove(removals);

      expect(await left(copies)).toEqual([]);
      expect(await left(masters)).toEqual([]);
    });

    it('stay until their own days are over, and keep the template', async () => {
      const { master, copies, masters } = await givenCopies({ deleted_at: ago(DAY) });
      await deleteMaster(master);

      await remove(removals);

      expect(await left(copies)).toEqual(['board', 'group', 'card']);
      expect(await left(masters)).toEqual(['board', 'group', 'card']);
    });

    it('keep the deleted template while one of them is live, and while a run names it', async () => {
      const { master, copies, masters } = await givenCopies({});
      await deleteMaster(master);
      const named = await givenCopies({ deleted_at });
      await deleteMaster(named.master);
      await insert('template_runs', { kind: 'push', board_id: named.master.board, card_id: named.master.card });

      await remove(removals);

      expect(await left(copies)).toEqual(['board', 'group', 'card']);
      expect(await left(masters)).toEqual(['board', 'group', 'card']);
      expect(await left(named.masters)).toEqual(['board', 'group', 'card']);
    });

    it('stay in a group of the project, which then stays, too', async () => {
      const { project, copies } = await givenCopies({});
      const board = await givenBoard(project, { deleted_at });
      const group = await givenGroup(project, board, { deleted_at });
      const [, card] = (copies as Record<string, [string, number]>).card!;
      await query(
        await testDb(),
        sql`update cards set group_id = ${group}, deleted_at = ${deleted_at} where id = ${card}`,
      );

      await remove(removals);

      const own = { board: ['boards', board], group: ['groups', group], card: ['cards', card] };
      expect(await left(own as never)).toEqual(['board', 'group', 'card']);
    });
  });
});

describe('due rows', () => {
  it('are found by an index', async () => {
    const scans = await transact(await testDb(), async (db) => {
      await useIndexes(db);
      const found: string[] = [];
      for (const { table, due, by, isFree = sql`true` } of removalsOf(KEPT)) {
        const statement = sql<{ 'QUERY PLAN': string }>`
          explain select ctid from ${sql.table(table)} t where ${due(sql`now()`)} and ${isFree}
          ${by ? sql`order by ${sql.ref(`t.${by}`)}` : sql``} limit 10`;
        const plan = await query(db, statement);
        found.push(...plan.map((line) => line['QUERY PLAN']).filter((line) => /Seq Scan|Sort/.test(line)));
      }
      return found;
    });

    expect(scans).toEqual([]);
  });
});

describe('a step', () => {
  const [removal] = removalsFrom('sessions') as [Removal];
  const givenExpired = async (count: number) => {
    const user = await givenUser();
    for (let each = 0; each < count; each++)
      await insert('sessions', { user_id: user.id, expires_at: ago((count - each) * SECOND) });
    return user;
  };

  const countSessions = (db: Db) => countDue(db, [removal], 'sessions', sql<Date>`${NOW}::timestamptz`);

  it('removes the oldest rows, and says how far it got', async () => {
    const db = await testDb();
    await remove([removal]);
    await givenExpired(3);

    expect(await countSessions(db)).toBe(3);
    const { count, last } = await removeStep(db, removal, 2);

    expect({ count, last: new Date(last!) }).toEqual({ count: 2, last: ago(2 * SECOND) });
    expect(await removeStep(db, removal, 2)).toMatchObject({ count: 1 });
    expect(await removeStep(db, removal, 2)).toEqual({ count: 0, last: null });
  });

  it.skipIf(!databaseUrl)('of one node leaves the rows of the other node alone, and does not wait for it', async () => {
    const db = await testDb();
    await remove([removal]);
    await givenExpired(5);

    const { one, other } = await transact(db, async (first) => ({
      one: await removeStep(first, removal, 2),
      other: await removeStep(db, removal, 10),
    }));

    expect([one.count, other.count]).toEqual([2, 3]);
    expect(await countSessions(db)).toBe(0);
  });

  it('that is rolled back removes nothing', async () => {
    const db = await testDb();
    await remove([removal]);
    await givenExpired(2);

    const killed = transact(db, async (db) => {
      await removeStep(db, removal, 2);
      throw new Error('killed');
    });

    await expect(killed).rejects.toThrow('killed');
    expect(await countSessions(db)).toBe(2);
  });
});

describe('background work', () => {
  const log = () => ({ debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() });

  it('goes on with the next table after a failure, and logs it', async () => {
    const step = vi.fn(async () => ({ count: 0 }));
    const failing = async () => Promise.reject(new Error('no space left'));
    const logged = log();

    const stop = startBackground(
      await testDatabase(),
      [
        { table: 'sessions', step: failing },
        { table: 'cards', step },
      ],
      logged,
    );
    await vi.waitFor(() => expect(step).toHaveBeenCalledOnce());
    await stop();

    expect(logged.warn).toHaveBeenCalledOnce();
    expect(logged.warn).toHaveBeenCalledWith(expect.any(Error), expect.stringContaining('sessions'));
  });

  it('ends with the step at which it is stopped', async () => {
    const steps: number[] = [];
    let stop: () => Promise<void> = async () => undefined;
    const stopped = Promise.withResolvers<void>();
    const step = async (_db: Db, { rows }: { rows: number }) => {
      steps.push(rows);
      if (steps.length === 2) stop().then(stopped.resolve);
      return { count: rows };
    };

    stop = startBackground(await testDatabase(), [{ table: 'cards', step }], log());
    await stopped.promise;

    expect(steps).toHaveLength(2);
  });

  it('is repeated until a pass finds nothing, each pass from the start', async () => {
    const found = [2, 2, 1, 2, 0, 0];
    const after: (string | undefined)[] = [];
    const step = async (_db: Db, limit: { after?: string }) => {
      after.push(limit.after);
      return { count: found.shift()!, last: String(after.length) };
    };

    await workOff(await testDb(), { table: 'cards', step }, { rows: 2, pauseMilliseconds: 0, isStopped: () => false });

    expect(after).toEqual([undefined, '1', '2', undefined, '4', undefined]);
  });
});
