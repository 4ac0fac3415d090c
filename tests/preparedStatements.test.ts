import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Db, query, transact } from '../server/database/query.ts';
import { databaseUrl, givenDatabase, testDatabase } from './harness/service.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, testDb } from './harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';
const GET = '/services/operations/v1/operations/boards/get';

beforeAll(() => testDatabase());

describe('statements with values', () => {
  it.skipIf(!databaseUrl)('are prepared when they are repeated; those without values never', async () => {
    const { db, close } = await givenDatabase({ DATABASE_POOL_SIZE: '2' });

    for (let time = 1; time <= 3; time++) {
      await query(db, sql`select ${1}::int as "twice or more"`);
      await query(db, sql`select 1 as "without values"`);
    }
    await query(db, sql`select ${1}::int as "once"`);

    expect(await preparedTexts(db)).toEqual(['select $1::int as "twice or more"']);
    await close();
  });

  it.skipIf(!databaseUrl)('are not prepared when PREPARED_STATEMENTS is off', async () => {
    const { db, close } = await givenDatabase({ DATABASE_POOL_SIZE: '2', PREPARED_STATEMENTS: 'off' });

    for (let time = 1; time <= 3; time++) await query(db, sql`select ${1}::int as one`);

    expect(await preparedTexts(db)).toEqual([]);
    await close();
  });

  it.skipIf(!databaseUrl)('are prepared again after they were deallocated', async () => {
    const { db, close } = await givenDatabase({ DATABASE_POOL_SIZE: '2' });
    const read = () => query(db, sql`select ${1}::int as one`);
    for (let time = 1; time <= 3; time++) await read();

    await query(db, sql`deallocate all`);

    expect(await read()).toEqual([{ one: 1 }]);
    await query(db, sql`deallocate all`);
    expect(await transact(db, (db) => query(db, sql`select ${1}::int as one`))).toEqual([{ one: 1 }]);
    await close();
  });

  /** Those of the connection that was used last. */
  const preparedTexts = async (db: Db) => {
    const rows = await query(db, sql<{ statement: string }>`select statement from pg_prepared_statements`);
    return rows.map(({ statement }) => statement);
  };
});

describe('a migration by another node while this one runs', () => {
  const read = (db: Db) => query(db, sql`select * from changing where id = ${1}`);

  beforeAll(async () => {
    await query(await testDb(), sql`create table changing as select 1 as id, 'One' as title`);
  });
  afterAll(async () => {
    await query(await testDb(), sql`drop table changing`);
  });

  it('breaks no prepared statement, not even select *', async () => {
    const db = await testDb();
    for (let time = 1; time <= 3; time++) expect(await read(db)).toEqual([{ id: 1, title: 'One' }]);

    await query(db, sql`alter table changing add column added int`);

    for (let time = 1; time <= 3; time++) expect(await read(db)).toEqual([{ id: 1, title: 'One', added: null }]);
  });

  it('breaks no transaction: it is retried', async () => {
    const db = await testDb();
    const readTwice = () =>
      transact(db, async (db) => {
        await query(db, sql`select ${1}::int as one`);
        return read(db);
      });
    for (let time = 1; time <= 3; time++) expect(await readTwice()).toHaveLength(1);

    await query(db, sql`alter table changing add column once_more int`);

    expect(await readTwice()).toEqual([{ id: 1, title: 'One', added: null, once_more: null }]);
  });

  it('breaks no REST or RPC call', async () => {
    const { project, asMember } = await givenWorld();
    const board = await givenBoard(project);
    const group = await givenGroup(project, board);
    await givenCard(project, { group_id: group });
    const callAll = async () => [
      (await asMember.post(LIST)).status,
      (await asMember.post(GET, { id: board })).status,
      (await asMember.rpc.cards.create.mutate({ title: 'A card', group_id: group })).card.title,
      (await asMember.rpc.cards.list.query({ group_id: group })).cards[0]!.title,
      (await asMember.rpc.boards.update.mutate({ id: board, title: 'A board' })).board.title,
    ];
    const expected = [200, 200, 'A card', 'A card', 'A board'];
    const db = await testDb();
    for (let time = 1; time <= 3; time++) expect(await callAll()).toEqual(expected);

    try {
      for (const table of ['boards', 'groups', 'cards', 'users', 'sessions'])
        await query(db, sql`alter table ${sql.table(table)} add column later text`);

      expect(await callAll()).toEqual(expected);
    } finally {
      for (const table of ['boards', 'groups', 'cards', 'users', 'sessions'])
        await query(db, sql`alter table ${sql.table(table)} drop column later`);
    }
    expect(await callAll()).toEqual(expected);
  });
});
