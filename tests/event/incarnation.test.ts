import { sql } from 'kysely';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { adoptDatabase, beginRestored, CURRENT, FEED_END, ID_SHIFT } from '../../server/database/incarnation.ts';
import {
  endErasuresDue,
  LATEST_LEVEL,
  mayHaveErased,
  remindersOf,
  resumeWebhooks,
  stateOf,
} from '../../server/database/level.ts';
import { type Db, oneRow, query } from '../../server/database/query.ts';
import { latestPlace, readEvents, readPlace, toCursor } from '../../server/domain/event/feed.ts';
import { claimWebhooks } from '../../server/domain/event/webhookClaim.ts';
import { startWebhooks } from '../../server/domain/event/webhookWork.ts';
import { VERSION } from '../../server/runtime/version.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { toFailure } from '../../shared/errors.ts';
import { CARD_DATA, feedComplete } from '../harness/events.ts';
import { TEST_SECRET, testDatabase, withOwnDatabase } from '../harness/service.ts';
import { givenProject, givenUser, givenWebhook, givenWorld, insert, type TestProject } from '../harness/world.ts';

withOwnDatabase();

const secretBox = makeSecretBox([TEST_SECRET]);
const db = async () => (await testDatabase()).db;
const eventsKeptDays = 30;
const FAR = 5_000_000_000;

/** What another server has left: an event and the place of a webhook that this server reaches only in years. */
async function givenForeign(project: TestProject, transaction = FAR): Promise<number> {
  await query(
    await db(),
    sql`insert into events (transaction_id, type, project_id, surface, subject_id, data)
      values (${String(transaction)}::xid8, 'card.created', ${project.id}, 'rest', 1, ${CARD_DATA})`,
  );
  return givenWebhook(project, { after_transaction: String(transaction - 1) });
}

async function write({ id }: TestProject, subject: number): Promise<{ id: string; transaction: string }> {
  const written = await query(
    await db(),
    sql<{ id: string; transaction: string }>`
      insert into events (type, project_id, surface, subject_id, data) values ('card.moved', ${id}, 'rest', ${subject}, ${CARD_DATA})
      returning id::text as id, transaction_id::text as transaction`,
  );
  return oneRow(written);
}

const moveAway = async () => query(await db(), sql`update incarnations set server = 'another one'`);

async function subjectsOf({ id }: TestProject): Promise<(number | null)[]> {
  await feedComplete();
  const from = { place: { transaction: '0', id: '0', seconds: 0 }, limit: 100 };
  return (await readEvents(await db(), from, [id])).events.map(({ subject_id }) => subject_id);
}

const cursorNow = async () => toCursor(await latestPlace(await db()));
const refusalOf = async (cursor: string) =>
  toFailure(await readPlace({ db: await db(), services: { eventsKeptDays } }, cursor).catch((error) => error));

afterEach(async () => {
  await query(await db(), sql`delete from webhooks`);
  await query(await db(), sql`delete from events`);
  await adoptDatabase(await db());
  await resumeWebhooks(await db());
});

describe('a database that was restored on another server', () => {
  it('keeps its events in order, and new ones follow them, behind the places of webhooks', async () => {
    const project = await givenProject();
    await givenForeign(project);
    await moveAway();

    expect(await adoptDatabase(await db())).toBe('restored');
    const { transaction, id } = await write(project, 2);

    expect(await subjectsOf(project)).toEqual([1, 2]);
    expect(Number(transaction)).toBeGreaterThan(FAR);
    expect(Number(id)).toBeGreaterThan((Date.now() - 60_000) * 1000);
    expect(Number.isSafeInteger(Number(id))).toBe(true);
    expect(await adoptDatabase(await db())).toBeUndefined();
  });

  it('sends nothing to receivers until an operator says so, and is at the latest level', async () => {
    const project = await givenProject();
    const webhook = await givenForeign(project);
    await query(await db(), sql`update database_state set level = 0`);
    await moveAway();
    await adoptDatabase(await db());
    await write(project, 2);
    await feedComplete();

    expect((await claimWebhooks({ db: await db() })).claimed).toEqual([]);
    expect(await stateOf(await db())).toEqual({
      level: LATEST_LEVEL,
      webhooks_paused_at: expect.any(Date),
      erasures_due_at: null,
    });
    expect(await query(await db(), sql`select version from database_state`)).toEqual([{ version: VERSION }]);
    expect(await remindersOf(await db())).toEqual([expect.stringMatching(/^Webhooks have been paused since 20/)]);
    expect([await resumeWebhooks(await db()), await resumeWebhooks(await db())]).toEqual([true, false]);
    expect((await claimWebhooks({ db: await db() })).claimed).toMatchObject([
      { id: webhook, transaction: String(FAR - 1) },
    ]);
    expect(await remindersOf(await db())).toEqual([]);
  });

  it('puts new events behind the place of a webhook that is ahead of all events', async () => {
    const project = await givenProject();
    const end = await query(await db(), sql<{ place: string }>`select feed_next::text as place from (${CURRENT}) as c`);
    const ahead = Number(oneRow(end).place) + FAR;
    const webhook = await givenWebhook(project, { after_transaction: String(ahead) });
    await moveAway();
    await adoptDatabase(await db());
    await resumeWebhooks(await db());

    const { transaction } = await write(project, 1);
    await feedComplete();

    expect(Number(transaction)).toBeGreaterThan(ahead);
    expect((await claimWebhooks({ db: await db() })).claimed).toMatchObject([{ id: webhook }]);
  });

  it('refuses cursors of before, named or not, and accepts those of now', async () => {
    const project = await givenProject();
    await write(project, 1);
    await feedComplete();
    const place = await latestPlace(await db());
    const cursors = [toCursor(place), toCursor({ ...place, incarnation: null })];
    await readPlace({ db: await db(), services: { eventsKeptDays } }, cursors[0]!);
    await moveAway();
    await adoptDatabase(await db());

    for (const cursor of cursors)
      expect(await refusalOf(cursor)).toMatchObject({
        reason: 'cursor_too_old',
        errors: { after: [expect.stringMatching(/^after is of another state of the database.*: read the rows again/)] },
      });
    await readPlace({ db: await db(), services: { eventsKeptDays } }, await cursorNow());
    await expect(readEvents(await db(), { place, limit: 5 }, 'all')).rejects.toThrow();
  });

  it('is as before if its adoption was interrupted, and the next start repeats it', async () => {
    const project = await givenProject();
    await givenForeign(project);
    await moveAway();
    const numbers = async () => query(await db(), sql`select number, server from incarnations order by number`);
    const before = await numbers();
    const killed = (await db()).transaction().execute(async (db) => {
      expect(await adoptDatabase(db)).toBe('restored');
      throw new Error('killed');
    });
    await expect(killed).rejects.toThrow('killed');

    expect(await numbers()).toEqual(before);
    expect(await adoptDatabase(await db())).toBe('restored');
    await write(project, 2);
    expect(await subjectsOf(project)).toEqual([1, 2]);
  });

  it('is adopted once by nodes that start at the same time', async () => {
    const project = await givenProject();
    await givenForeign(project);
    await moveAway();
    const connected = await db();

    const begun = await Promise.all([1, 2, 3].map(() => adoptDatabase(connected)));

    expect(begun.filter((kind) => kind !== undefined)).toEqual(['restored']);
  });

  it('shows nothing, and delivers nothing, before its adoption, even to nodes that ran meanwhile', async () => {
    const project = await givenProject();
    await write(project, 1);
    await givenWebhook(project);
    await feedComplete();
    await query(await db(), sql`update incarnations set relation = 1`);

    expect(await query(await db(), sql`select ${FEED_END} as end`)).toEqual([{ end: null }]);
    expect((await claimWebhooks({ db: await db() })).claimed).toEqual([]);
    expect(await subjectsOfAll(await db())).toContain(1);
    expect(await stateOf(await db())).toMatchObject({ webhooks_paused_at: expect.any(Date) });
  });
});

const subjectsOfAll = async (db: Db) => {
  const { events } = await readEvents(db, { place: { transaction: '0', id: '0', seconds: 0 }, limit: 100 }, 'all');
  return events.map(({ subject_id }) => subject_id);
};

describe('a server that hides who it is', () => {
  it('notices a restore by a place that it has not reached: of an event, and of a webhook', async () => {
    const project = await givenProject();
    const end = await query(await db(), sql<{ place: string }>`select feed_next::text as place from (${CURRENT}) as c`);
    const ahead = Number(oneRow(end).place) + FAR;
    await givenForeign(project, ahead);
    expect(await adoptDatabase(await db())).toBe('restored');
    expect(await adoptDatabase(await db())).toBeUndefined();

    await givenWebhook(project, { after_transaction: String(ahead + FAR) });
    expect(await adoptDatabase(await db())).toBe('restored');
    await write(project, 2);
    expect(await subjectsOf(project)).toEqual([1, 2]);
  });
});

it('a running node notices a restore although nobody reads events, says so, and delivers nothing', async () => {
  await givenWebhook(await givenProject());
  await query(await db(), sql`update incarnations set relation = 0`);
  const logged: unknown[] = [];
  const log = { debug: () => undefined, info: () => undefined, error: () => undefined };
  const outgoing = { post: () => Promise.reject(new Error('called')), close: () => undefined };
  const work = startWebhooks(
    { db: await db(), secretBox, outgoing, log: { ...log, warn: (_: unknown, line = _) => logged.push(line) } },
    20,
  );

  await vi.waitFor(() =>
    expect(logged).toEqual([expect.stringMatching(/^This database was restored .* paused since/)]),
  );

  await work.stop();
});

describe('a database that went back in time', () => {
  it('begins anew without a pause if there is nothing to pause, or if it takes the place of the other one', async () => {
    await beginRestored(await db());
    expect(await stateOf(await db())).toMatchObject({ webhooks_paused_at: null });

    await givenWebhook(await givenProject());
    await beginRestored(await db(), { keepsWebhooks: true });
    expect(await stateOf(await db())).toMatchObject({ webhooks_paused_at: null });

    await query(await db(), sql`delete from webhooks`);
    await insert('mails', { kind: 'invitation', email: 'ann@example.com' });
    await beginRestored(await db());
    expect(await stateOf(await db())).toMatchObject({ webhooks_paused_at: expect.any(Date) });
  });

  it('waits to be told of erasures if there are users, and never after a fail-over', async () => {
    await givenUser();
    await beginRestored(await db());
    expect(await remindersOf(await db())).toContainEqual(expect.stringMatching(/^This database .* no call is served/));
    expect([await endErasuresDue(await db()), await endErasuresDue(await db())]).toEqual([true, false]);

    await query(await db(), sql`update incarnations set timeline = timeline - 1`);
    expect(await adoptDatabase(await db())).toBe('failed over');
    expect(await mayHaveErased(await db())).toBe(false);
  });

  it('gives no id again that it gave after fail-overs, which count the ids ahead of their sequence', async () => {
    const project = await givenProject();
    await beginRestored(await db());
    const FAIL_OVERS = 5;
    await query(await db(), sql`update incarnations set first_timeline = first_timeline - ${FAIL_OVERS}::int`);
    const [last] = await query(
      await db(),
      sql<{ id: string }>`select (last_value + ${ID_SHIFT})::text as id from events_id_seq`,
    );

    await beginRestored(await db());

    expect(Number((await write(project, 1)).id)).toBeGreaterThan(Number(last!.id));
  });

  it('gives no id again if a backup that was made soon after a restore is restored twice', async () => {
    const project = await givenProject();
    await beginRestored(await db());
    const [backup] = await query(await db(), sql<{ id: string }>`select last_value::text as id from events_id_seq`);
    const restoreBackup = async () => {
      await query(await db(), sql`select setval('events_id_seq', ${backup!.id}::bigint)`);
      await beginRestored(await db());
    };

    await restoreBackup();
    const { id: lost } = await write(project, 1);
    await restoreBackup();

    expect((await write(project, 1)).id).not.toBe(lost);
  });

  it('gives no id of the audit trail again, and its pages go on', async () => {
    await beginRestored(await db());
    const { asOwner, project } = await givenWorld();
    for (const url of ['https://a.example.com', 'https://b.example.com', 'https://c.example.com'])
      await asOwner.rpc.webhooks.create.mutate({ project_id: project.id, url });

    const first = await asOwner.rpc.audit.list.query({ limit: 2 });
    const second = await asOwner.rpc.audit.list.query({ limit: 2, cursor: first.next_cursor });

    const ids = [...first.entries, ...second.entries].map(({ id }) => Number(id));
    expect(ids).toEqual([ids[0]!, ids[0]! - 1, ids[0]! - 2]);
    expect(ids[2]).toBeGreaterThan((Date.now() - 60_000) * 1000);
  });
});

describe('a database of an earlier version', () => {
  /** As after its migrations, with nodes of that version beside this one. */
  async function givenEarlier(): Promise<void> {
    await query(await db(), sql`delete from incarnations`);
    await query(await db(), sql`update database_state set level = 0, erasures_due_at = null`);
    await query(await db(), sql`alter table events alter column transaction_id set default pg_current_xact_id()`);
  }

  it('keeps plain transactions and cursors until its upgrade is finished, and they stay good after that', async () => {
    await givenEarlier();
    const project = await givenProject();
    await write(project, 1);

    expect(await adoptDatabase(await db())).toBe('first');
    await feedComplete();
    const place = await latestPlace(await db());
    expect(place.incarnation).toBeNull();
    expect(await remindersOf(await db())).toEqual([expect.stringMatching(/^The upgrade is not finished: .* level 0/)]);
    await query(await db(), sql`update database_state set level = 1`);
    expect(await adoptDatabase(await db())).toBe('timelines counted');

    await write(project, 2);
    await feedComplete();
    const from = await readPlace({ db: await db(), services: { eventsKeptDays } }, toCursor(place));
    expect((await readEvents(await db(), { place: from, limit: 5 }, 'all')).events).toMatchObject([{ subject_id: 2 }]);
    expect((await latestPlace(await db())).incarnation).toMatch(/^[\w-]{12}$/);
  });

  it('was restored if it has transactions that this server has not reached', async () => {
    await givenEarlier();
    const project = await givenProject();
    await givenForeign(project);

    expect(await adoptDatabase(await db())).toBe('restored');

    await write(project, 2);
    expect(await subjectsOf(project)).toEqual([1, 2]);
  });

  it('was restored if it has transactions from before its tables were created here, as on the server of the other one', async () => {
    await givenEarlier();
    await givenForeign(await givenProject(), 5);

    expect(await adoptDatabase(await db())).toBe('restored');
  });

  it('was not restored if the version before has noticed that already', async () => {
    await givenEarlier();
    await givenForeign(await givenProject(), 3);

    expect(await adoptDatabase(await db())).toBe('first');
  });
});
