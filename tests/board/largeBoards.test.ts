import { sql } from 'kysely';
import superjson from 'superjson';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { pagesOf } from '../harness/pages.ts';
import { countStatements, testService } from '../harness/service.ts';
import { givenBoard, givenMasterBoard, givenWorld, type TestProject, testDb } from '../harness/world.ts';

/** PostgreSQL writes a board of more than 128 KiB in pieces of about 32 KiB. */

const GET = '/api/services/operations/v1/operations/boards/get';
const MASTER_GET = '/api/services/operations/v1/admin/master-boards/get';
const ODD = 'Quotes ", \\ and \\", \u0007\b\f\n\r\t\u001f\u007f, ä 漢 😀\u2028';

/** Adds cards with odd texts, with and without each date: as many to each group of the board as its position says. */
async function addCards(board: number, description = ODD) {
  await query(
    await testDb(),
    sql`
      insert into cards (project_id, platform_id, is_master, group_id, title, description, due_date, snoozed_until, position, sort_order)
      select project_id, platform_id, is_master, id, n || ${ODD}, case when n % 3 > 0 then repeat(${description}, n % 7) end,
        case when n % 2 = 0 then timestamptz '2030-01-31 09:30:00.123Z' end,
        case when n % 5 = 0 then timestamptz '0999-12-31 23:59:59.999Z' end, -n, n
      from groups, generate_series(1, position) as n where board_id = ${board}`,
  );
}

/** A board with groups of so many cards, in ascending order. */
async function givenOddBoard(
  { id, platform_id }: TestProject,
  counts: number[],
  description?: string,
): Promise<number> {
  const board = await givenBoard({ id, platform_id }, { title: ODD });
  await query(
    await testDb(),
    sql`
      insert into groups (project_id, platform_id, board_id, title, position)
      select ${id}::int, ${platform_id}::int, ${board}::int, ${ODD}, count from unnest(${counts}::int[]) as count`,
  );
  await addCards(board, description);
  return board;
}

async function post(path: string, body: object, token: string | undefined, headers = {}) {
  const { url } = await testService();
  const sent = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers };
  const response = await fetch(url + path, { method: 'POST', headers: sent, body: JSON.stringify(body) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const IDENTITY = { 'accept-encoding': 'identity' };

describe('boards.get', () => {
  it.each<[string, number[], number]>([
    ['small', [0, 0, 3], 2],
    ['large, with empty groups', [0, 0, 1, 300], 3],
    ['large, of one group', [500], 3],
    ['large, of many small groups', Array(250).fill(1), 3],
    ['large, without cards', Array(400).fill(0), 3],
  ])('writes a %s board byte for byte as JSON.stringify would, on both surfaces', async (_, counts, statements) => {
    const { asViewer, project } = await givenWorld();
    const id = await givenOddBoard(project, counts);
    const { token } = asViewer;

    const rest = await post(GET, { id }, token, IDENTITY);
    const rpc = await post('/trpc/boards.get', { json: { id } }, token, IDENTITY);
    const batch = await post(
      '/trpc/boards.get,boards.get?batch=1',
      { 0: { json: { id } }, 1: { json: { id: 0 } } },
      token,
    );
    const compressed = await post(GET, { id }, token, { 'accept-encoding': 'gzip' });

    const { data } = JSON.parse(rpc.text).result;
    expect(rpc.text).toBe(JSON.stringify({ result: { data } }));
    const message = JSON.parse(rest.text).message;
    expect(rest.text).toBe(JSON.stringify({ error: false, message, data: { board: JSON.stringify(data.json.board) } }));
    expect(batch.text.startsWith(`[${rpc.text},{"error":`)).toBe(true);
    expect(batch.text).toBe(JSON.stringify(JSON.parse(batch.text)));
    expect(compressed.text).toBe(rest.text);
    for (const { headers, text } of [rest, rpc])
      expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));

    const { board } = superjson.deserialize<any>(data);
    expect(board).toMatchObject({ title: ODD, created_at: expect.any(Date) });
    expect(board.groups.map(({ cards }: { cards: unknown[] }) => cards.length)).toEqual(counts);
    const pages = await pagesOf((cursor) => asViewer.rpc.cards.list.query({ cursor, limit: 200 }));
    const listed = new Map(pages.flatMap((page) => page.cards).map((card) => [card.id, card]));
    for (const { id, title, cards } of board.groups) {
      expect(title).toBe(ODD);
      expect(cards.map(({ position }: { position: number }) => -position)).toEqual(
        Array.from({ length: cards.length }, (_, at) => cards.length - at),
      );
      for (const card of cards) expect(card).toMatchObject({ group_id: id, ...pickShared(card, listed.get(card.id)!) });
    }
    expect(await countStatements(() => asViewer.rpc.boards.get.query({ id }))).toBeLessThanOrEqual(statements);
  });

  const pickShared = (card: object, listed: object) =>
    Object.fromEntries(Object.entries(listed).filter(([name]) => name in card && name !== 'is_dismissed'));

  it('writes texts that are longer than a piece, and cuts no character', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenOddBoard(project, [7], `x${'😀"漢\u0001'.repeat(15_000)}`);

    const rest = await post(GET, { id }, asViewer.token, IDENTITY);
    const rpc = await post('/trpc/boards.get', { json: { id } }, asViewer.token, IDENTITY);

    expect(rest.text).toBe(JSON.stringify(JSON.parse(rest.text)));
    expect(rpc.text).toBe(JSON.stringify(JSON.parse(rpc.text)));
    expect(JSON.parse(rest.text).data.board).toBe(JSON.stringify(JSON.parse(rpc.text).result.data.json.board));
    expect(rpc.text).not.toContain('\ufffd');
  });

  it('404, 403 and 400 for large boards are as for small ones', async () => {
    const { asViewer, asOutsider, project } = await givenWorld();
    const id = await givenOddBoard(project, [300]);
    const escaped = await givenOddBoard(project, [14], '\u0001'.repeat(65_536));
    const get = (caller: typeof asViewer, id: number) => refusalOf(caller.rpc.boards.get.query({ id }));

    expect(await get(asOutsider, id)).toMatchObject({ status: 403 });
    expect(await get(asViewer, escaped)).toEqual({
      status: 400,
      message:
        'The board is too large for one answer. Read it page by page: groups.list and cards.list with its board_id.',
    });
    await query(await testDb(), sql`update boards set deleted_at = now() where id = ${id}`);
    expect(await get(asViewer, id)).toMatchObject({ status: 404 });
  });
});

describe('masterBoards.get', () => {
  it('writes a large master board on both surfaces', async () => {
    const { asSuperadmin } = await givenWorld();
    const { board: id, group } = await givenMasterBoard();
    await query(await testDb(), sql`update groups set position = 300 where id = ${group}`);
    await addCards(id);

    const rpc = await post('/trpc/masterBoards.get', { json: { id } }, asSuperadmin.token, IDENTITY);
    const rest = await post(MASTER_GET, { id }, asSuperadmin.token, IDENTITY);

    const { board } = JSON.parse(rpc.text).result.data.json;
    expect(rpc.text).toBe(JSON.stringify(JSON.parse(rpc.text)));
    expect(board.groups[0].cards.length).toBeGreaterThanOrEqual(300);
    const { message } = JSON.parse(rest.text);
    expect(rest.text).toBe(JSON.stringify({ error: false, message, data: { board } }));
  });
});
