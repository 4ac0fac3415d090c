import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query, transact } from '../server/database/query.ts';
import { IS_OVERDUE } from '../server/domain/board/card.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, stored, testDb } from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';

/** With the clock of the database, so that no midnight can come in between. */
const TODAY = sql`date_trunc('day', now(), 'UTC')`;

describe('a due date', () => {
  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z', false],
    ['2026-01-31T00:00:00Z', '2026-01-31T00:00:00.000Z', true],
    ['1960-01-31t01:00:00.000+01:00', '1960-01-31T00:00:00.000Z', true],
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z', false],
    ['2026-01-31T00:00:00.001Z', '2026-01-31T00:00:00.001Z', false],
    [' 0001-01-01 ', '0001-01-01T00:00:00.000Z', false],
    ['', null, false],
  ])('%s is answered as %s; that midnight is a time is %s', async (due_date, answered, is_due_at_midnight) => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project, { due_date: new Date('2020-01-01'), is_due_at_midnight: !is_due_at_midnight });

    const created = await asMember.post(CREATE, { title: 'x', due_date });
    const { card: updated } = await asMember.rpc.cards.update.mutate({ id, due_date });

    expect(created).toMatchObject({ status: 201, body: { data: { card: { due_date: answered } } } });
    expect(updated.due_date?.toISOString() ?? null).toBe(answered);
    for (const card of [created.body.data.card.id, id])
      expect(await stored('cards', card)).toMatchObject({ is_due_at_midnight });
  });

  it('that is not sent does not change, nor does what midnight means', async () => {
    const { asMember, project } = await givenWorld();
    const due = { due_date: new Date('2026-01-31'), is_due_at_midnight: true };
    const id = await givenCard(project, due);

    await asMember.rpc.cards.update.mutate({ id, title: 'After' });

    expect(await stored('cards', id)).toMatchObject(due);
  });

  it('that is null is cleared', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project, { due_date: new Date('2026-01-31'), is_due_at_midnight: true });

    await asMember.rpc.cards.update.mutate({ id, due_date: null });

    expect(await stored('cards', id)).toMatchObject({ due_date: null, is_due_at_midnight: false });
  });
});

describe('a card is overdue', () => {
  it.each(['UTC', 'America/New_York', 'Asia/Tokyo'])(
    'from the next day in UTC on, with the time zone %s',
    async (zone) => {
      const isOverdue = async (due: ReturnType<typeof sql>, is_due_at_midnight = false, status = 'open') =>
        transact(await testDb(), async (db) => {
          await query(db, sql`select set_config('timezone', ${zone}, true)`);
          const [card] = await query(
            db,
            sql<{ is_overdue: boolean }>`
            select ${IS_OVERDUE} as is_overdue
            from (select ${due} as due_date, ${is_due_at_midnight}::boolean as is_due_at_midnight, ${status} as status) as card`,
          );
          return card!.is_overdue;
        });

      expect(await isOverdue(TODAY)).toBe(false);
      expect(await isOverdue(sql`${TODAY} - interval '24 hours'`)).toBe(true);
      expect(await isOverdue(sql`${TODAY} - interval '24 hours'`, false, 'closed')).toBe(false);
      expect(await isOverdue(TODAY, true)).toBe(true);
      expect(await isOverdue(sql`now() - interval '0.001 seconds'`)).toBe(true);
      expect(await isOverdue(sql`now()`)).toBe(false);
      expect(await isOverdue(sql`null::timestamptz`)).toBe(false);
    },
  );

  it('in boards/get, cards.get and cards.list alike', async () => {
    const { asViewer, project } = await givenWorld();
    const board = await givenBoard(project);
    const group_id = await givenGroup(project, board);
    const id = await givenCard(project, { group_id });
    const answers = async () => {
      const { groups } = (await asViewer.rpc.boards.get.query({ id: board })).board;
      const { card } = await asViewer.rpc.cards.get.query({ id });
      const { cards } = await asViewer.rpc.cards.list.query({ is_overdue: true });
      return [groups[0]!.cards[0]!.is_overdue, card.is_overdue, cards.length === 1];
    };
    const change = async (due: ReturnType<typeof sql>) =>
      query(await testDb(), sql`update cards set due_date = ${due} where id = ${id}`);

    await change(sql`${TODAY} - interval '24 hours'`);
    expect(await answers()).toEqual([true, true, true]);
    await change(sql`${TODAY} + interval '24 hours'`);
    expect(await answers()).toEqual([false, false, false]);
  });
});
