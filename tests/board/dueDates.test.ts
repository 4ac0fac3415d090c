import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query, transact } from '../../server/database/query.ts';
import { IS_OVERDUE } from '../../server/domain/board/card.ts';
import { CardCreate } from '../../shared/card.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, stored, testDb } from '../harness/world.ts';

/** With the clock of the database, so that no midnight can come in between. */
const TODAY = sql`date_trunc('day', now(), 'UTC')`;

describe('a due date', () => {
  it.each([
    'tomorrow',
    '2026-02-30',
    '2026-13-01',
    '2026-01-31T10:00:00',
    '2026-01-31T10:00Z',
    '2026-01-31 10:00:00Z',
    '2026-01-31T24:00:00Z',
    '0000-01-01',
    '9999-12-31T23:59:59-12:00',
    '0001-01-01T00:00:00+14:00',
    'infinity',
    '1e3',
    1_700_000_000,
  ])('422 for %s', (due_date) => {
    const { error } = CardCreate.safeParse({ title: 'x', due_date });

    expect(error?.issues).toMatchObject([{ path: ['due_date'], message: expect.stringMatching(/^must be /) }]);
  });

  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z', false],
    ['2026-01-31T00:00:00Z', '2026-01-31T00:00:00.000Z', true],
    ['1960-01-31t01:00:00.000+01:00', '1960-01-31T00:00:00.000Z', true],
    ['2024-02-29T23:59:59.999999-11:30', '2024-03-01T11:29:59.999Z', false],
    ['2026-01-31T00:00:00.001Z', '2026-01-31T00:00:00.001Z', false],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z', false],
    [' 0001-01-01 ', '0001-01-01T00:00:00.000Z', false],
    ['', null, false],
    [null, null, false],
  ])('%s is answered as %s; that midnight is a time is %s', async (due_date, answered, is_due_at_midnight) => {
    const { asMember, project } = await givenWorld();
    const { cards } = asMember.rpc;
    const id = await givenCard(project, { due_date: new Date('2020-01-01'), is_due_at_midnight: !is_due_at_midnight });

    const { card: created } = await cards.create.mutate({ title: 'x', due_date });
    const { card: updated } = await cards.update.mutate({ id, due_date });
    await cards.update.mutate({ id, title: 'Another title changes nothing of it' });

    for (const card of [created, updated]) {
      expect(card.due_date?.toISOString() ?? null).toBe(answered);
      expect(await stored('cards', card.id)).toMatchObject({ due_date: card.due_date, is_due_at_midnight });
    }
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

  it.each([
    [true, sql`${TODAY} - interval '24 hours'`],
    [false, sql`${TODAY} + interval '24 hours'`],
  ])('in boards/get, cards.get and cards.list alike: %s', async (expected, due) => {
    const { asViewer, project } = await givenWorld();
    const { boards, cards } = asViewer.rpc;
    const board = await givenBoard(project);
    const id = await givenCard(project, { group_id: await givenGroup(project, board) });
    await query(await testDb(), sql`update cards set due_date = ${due} where id = ${id}`);

    const { groups } = (await boards.get.query({ id: board })).board;
    const { card } = await cards.get.query({ id });
    const listed = await cards.list.query({ is_overdue: true });

    expect([groups[0]!.cards[0]!.is_overdue, card.is_overdue, listed.cards.length === 1]).toEqual(
      Array(3).fill(expected),
    );
  });
});
