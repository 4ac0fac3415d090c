import { randomBytes } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PLANNED_EACH_TIME, statementNames } from '../../server/database/preparedStatements.ts';
import { type Db, query, transact } from '../../server/database/query.ts';
import { databaseUrl, givenDatabase } from '../harness/service.ts';
import { givenBoard, givenGroup, givenWorld, testDb } from '../harness/world.ts';

// The texts of all suites of this worker may have used up the names.
beforeEach(() => (statementNames as unknown as { names: Map<string, string> }).names.clear());

/** Not prepared the first time, prepared the second time, found prepared the third time. */
const THREE_TIMES = [1, 2, 3];

const uniqueName = () => `test_${randomBytes(6).toString('hex')}`;

/** A statement text that no test has sent before, so it is not prepared yet. */
const fresh = <Row>(statement: RawBuilder<Row>) => sql<Row>`${sql.raw(`/* ${uniqueName()} */`)} ${statement}`;

const created: RawBuilder<unknown>[] = [];
afterEach(async () => {
  const db = await testDb();
  for (const table of created.splice(0)) await query(db, sql`drop table ${table}`);
});

/** A new table, for tests that change it. */
async function givenTable(columns: string) {
  const table = sql.table(uniqueName());
  await query(await testDb(), sql`create table ${table} (${sql.raw(columns)})`);
  created.push(table);
  return table;
}

async function expectThreeTimes(statement: RawBuilder<unknown>, rows: unknown[]) {
  const db = await testDb();
  for (const _ of THREE_TIMES) expect(await query(db, statement)).toStrictEqual(rows);
}

describe('values are returned as they were sent, each time', () => {
  const moment = new Date('2026-01-31T09:30:00.500Z');
  const texts = [
    '',
    "O'Reilly said \"no\" \\ ; -- $1 'quoted'",
    'Zoë 日本語 🚢 \u{10ffff}',
    '\ufeffafter a byte order mark',
    ' \t\n',
    'null',
    'x'.repeat(100_000),
    '日'.repeat(20_000),
  ];

  it.each<[string, unknown]>([
    ['int', 0],
    ['int', -2_147_483_648],
    ['smallint', 7],
    ['double precision', 1.5],
    ['boolean', true],
    ['boolean', false],
    ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['timestamptz', moment],
    ['timestamptz', new Date('0001-01-01T00:00:00Z')],
    ['int[]', [1, 2, 3]],
    ['int[]', []],
    ['text[]', ['a', 'b"c', "d'e", '{f,g}', 'h\\i', '', 'null', '日本']],
    ['boolean[]', [true, false]],
    ...texts.map((text): [string, unknown] => ['text', text]),
  ])('%s: %j', async (type, value) => {
    await expectThreeTimes(fresh(sql`select ${value}::${sql.raw(type)} as value`), [{ value }]);
  });

  it('null of each type, and JSON', async () => {
    for (const type of ['int', 'bigint', 'text', 'boolean', 'timestamptz', 'jsonb', 'json', 'int[]', 'uuid'])
      await expectThreeTimes(fresh(sql`select ${null}::${sql.raw(type)} as value`), [{ value: null }]);
    const value = { text: 'Zoë "quoted" \\', list: [1, null, true, { deep: {} }], none: null };
    for (const type of ['json', 'jsonb'])
      await expectThreeTimes(fresh(sql`select ${JSON.stringify(value)}::${sql.raw(type)} as value`), [{ value }]);
  });

  it('a bigint, which a server returns as text', async () => {
    const [small, large] = databaseUrl ? ['5000000000', '9007199254740993'] : [5_000_000_000, 9_007_199_254_740_993n];

    const statement = fresh(sql`select ${'5000000000'}::bigint as small, ${9_007_199_254_740_993n}::bigint as large`);
    await expectThreeTimes(statement, [{ small, large }]);
  });

  it('dates without a time zone, intervals and decimals, as text', async () => {
    const statement = fresh(sql`
      select ${'2026-01-31'}::date as date, ${'2026-01-31 09:30'}::timestamp as timestamp,
        ${'90 minutes'}::interval as interval, ${'1.50'}::numeric as decimal`);

    const row = { date: '2026-01-31', timestamp: '2026-01-31 09:30:00', interval: '01:30:00', decimal: '1.50' };
    await expectThreeTimes(statement, [row]);
  });

  it('several columns, some of them null; or no rows', async () => {
    const statement = fresh(sql`select ${1}::int as a, ${null}::text as b, ${'c'}::text as c, null as d`);

    await expectThreeTimes(statement, [{ a: 1, b: null, c: 'c', d: null }]);
    await expectThreeTimes(fresh(sql`select id, name from users where id = ${-1}`), []);
  });

  it('many rows with long texts', async () => {
    const statement = fresh(sql`
      select n, repeat('日本' || n, 40) as text from generate_series(1, ${3000}::int) n order by n`);

    const rows = Array.from({ length: 3000 }, (_, at) => ({ n: at + 1, text: `日本${at + 1}`.repeat(40) }));
    await expectThreeTimes(statement, rows);
  });

  it('statements whose text depends on the number of values', async () => {
    const db = await testDb();

    for (const length of [1, 2, 3, 40, 2, 1]) {
      const values = Array.from({ length }, (_, at) => at);
      const statement = sql`select n from generate_series(0, ${99}::int) n where n in (${sql.join(values)}) order by n`;
      expect(await query(db, statement)).toEqual(values.map((n) => ({ n })));
    }
  });
});

describe('writes', () => {
  it('return the number of affected rows', async () => {
    const db = await testDb();
    const table = await givenTable('id int, name text');
    const affected = async (statement: RawBuilder<unknown>) => (await statement.execute(db)).numAffectedRows;

    for (const _ of THREE_TIMES) {
      expect(await affected(sql`insert into ${table} select n, ${'x'} from generate_series(1, 3) n`)).toBe(3n);
      expect(await affected(sql`update ${table} set name = ${'y'} where id < 3`)).toBe(2n);
      expect(await affected(sql`delete from ${table} where id = ${0}`)).toBe(0n);
      expect(await affected(sql`delete from ${table} where id > ${0}`)).toBe(3n);
    }
  });

  it('return the inserted rows', async () => {
    const table = await givenTable('id int generated always as identity, name text');
    const db = await testDb();

    for (const id of THREE_TIMES) {
      const rows = await query(db, sql`insert into ${table} (name) values (${`name ${id}`}) returning *`);
      expect(rows).toEqual([{ id, name: `name ${id}` }]);
    }
  });
});

describe('errors are the same each time, and the next statement works', () => {
  const failing = async (statement: RawBuilder<unknown>, error: object) => {
    const db = await testDb();
    for (const _ of THREE_TIMES) {
      await expect(query(db, statement)).rejects.toMatchObject(error);
      expect(await query(db, sql`select ${1}::int as one`)).toEqual([{ one: 1 }]);
    }
  };

  it('a violated constraint, with its name', async () => {
    const table = await givenTable('id int constraint only_once unique, parent int');
    await query(await testDb(), sql`insert into ${table} values (1)`);

    await failing(sql`insert into ${table} (id) values (${1})`, {
      code: '23505',
      constraint: 'only_once',
      message: 'duplicate key value violates unique constraint "only_once"',
      detail: 'Key (id)=(1) already exists.',
    });
  });

  it('a violated deferred constraint', async () => {
    const table = await givenTable('id int constraint only_once unique deferrable initially deferred');
    await query(await testDb(), sql`insert into ${table} values (1)`);

    await failing(sql`insert into ${table} (id) values (${1})`, { code: '23505', constraint: 'only_once' });
    expect(await query(await testDb(), sql`select * from ${table}`)).toEqual([{ id: 1 }]);
  });

  it.each([
    [
      'a value out of range',
      fresh(sql`select ${'2147483648'}::int as value`),
      { code: '22003', message: 'value "2147483648" is out of range for type integer' },
    ],
    ['a text with a zero byte', fresh(sql`select ${'a\0b'}::text as value`), { code: '22021' }],
    [
      'a division by zero in the second row',
      fresh(sql`select ${1}::int / (2 - n) as value from generate_series(1, 2) n`),
      { code: '22012', message: 'division by zero' },
    ],
    [
      'a table that does not exist',
      sql`select * from nothing_of_this_name where id = ${1}`,
      { code: '42P01', message: 'relation "nothing_of_this_name" does not exist' },
    ],
    ['invalid SQL', fresh(sql`selec ${1}`), { code: '42601' }],
  ])('%s', (_, statement, error) => failing(statement, error));
});

describe('transactions', () => {
  const names = async (table: RawBuilder<unknown>) =>
    (await query(await testDb(), sql<{ name: string }>`select name from ${table} order by name`)).map(
      ({ name }) => name,
    );
  const add = (db: Db, table: RawBuilder<unknown>, name: string) =>
    query(db, sql`insert into ${table} (name) values (${name})`);

  it('commit everything or nothing', async () => {
    const db = await testDb();
    const table = await givenTable('name text');

    for (const time of THREE_TIMES) {
      await transact(db, (db) => add(db, table, `kept ${time}`));
      const undone = transact(db, async (db) => {
        await add(db, table, 'undone');
        throw new Error('changed my mind');
      });
      await expect(undone).rejects.toThrow('changed my mind');
    }

    expect(await names(table)).toEqual(['kept 1', 'kept 2', 'kept 3']);
  });

  it('refuse further statements after one failed, unless they continue from a savepoint', async () => {
    const db = await testDb();
    const table = await givenTable('name text unique');
    for (const time of THREE_TIMES) await add(db, table, `before ${time}`);

    const failed = transact(db, async (db) => {
      await add(db, table, 'undone');
      await expect(add(db, table, 'before 1')).rejects.toMatchObject({ code: '23505' });
      await add(db, table, 'too late');
    });
    await expect(failed).rejects.toMatchObject({ code: '25P02' });
    const transaction = await db.startTransaction().execute();
    const saved = await transaction.savepoint('here').execute();
    await expect(add(saved, table, 'before 1')).rejects.toMatchObject({ code: '23505' });
    await saved.rollbackToSavepoint('here').execute();
    await add(saved, table, 'after');
    await saved.commit().execute();

    expect(await names(table)).toEqual(['after', 'before 1', 'before 2', 'before 3']);
  });

  it('fail at commit if a deferred constraint is violated', async () => {
    const db = await testDb();
    const table = await givenTable('name text constraint only_once unique deferrable initially deferred');
    await add(db, table, 'once');

    const failed = transact(db, async (db) => {
      await add(db, table, 'once');
      await add(db, table, 'another');
    });

    await expect(failed).rejects.toMatchObject({ code: '23505', constraint: 'only_once' });
    expect(await names(table)).toEqual(['once']);
  });

  it('are isolated from concurrent statements', async () => {
    const db = await testDb();
    const table = await givenTable('name text');
    const others: Promise<unknown>[] = [];

    const undone = transact(db, async (db) => {
      for (let at = 0; at < 5; at++) {
        others.push(
          add(await testDb(), table, `other ${at}`),
          transact(await testDb(), (db) => add(db, table, `set ${at}`)),
        );
        await add(db, table, 'undone');
      }
      throw new Error('changed my mind');
    });
    await expect(undone).rejects.toThrow('changed my mind');
    await Promise.all(others);

    expect(await names(table)).toEqual(
      [0, 1, 2, 3, 4].map((at) => `other ${at}`).concat([0, 1, 2, 3, 4].map((at) => `set ${at}`)),
    );
  });
});

describe('prepared statements keep working when their table', () => {
  async function givenPrepared(columns = 'id int, name text') {
    const db = await testDb();
    const table = await givenTable(columns);
    await query(db, sql`insert into ${table} values (1, 'one')`);
    const read = (db: Db) => query(db, sql<Record<string, unknown>>`select * from ${table} where id = ${1}`);
    for (const _ of THREE_TIMES) expect(await read(db)).toHaveLength(1);
    return { db, table, read };
  }

  it('gets a new column, which is then returned', async () => {
    const { db, table, read } = await givenPrepared();

    await query(db, sql`alter table ${table} add column added timestamptz default '2026-01-31T09:30:00Z'`);

    for (const _ of THREE_TIMES)
      expect(await read(db)).toEqual([{ id: 1, name: 'one', added: new Date('2026-01-31T09:30:00Z') }]);
  });

  it('loses a column, or changes its type', async () => {
    const { db, table, read } = await givenPrepared('id int, name text, extra int default 5');

    await query(db, sql`alter table ${table} alter column extra type text using extra::text`);
    for (const _ of THREE_TIMES) expect(await read(db)).toEqual([{ id: 1, name: 'one', extra: '5' }]);
    await query(db, sql`alter table ${table} drop column extra`);
    for (const _ of THREE_TIMES) expect(await read(db)).toEqual([{ id: 1, name: 'one' }]);
  });

  it('changes before a transaction, which is retried', async () => {
    const { db, table, read } = await givenPrepared();
    await query(db, sql`alter table ${table} add column added int default 2`);
    let attempts = 0;

    const rows = await transact(db, async (db) => {
      attempts++;
      await query(db, sql`update ${table} set name = name || ${'!'}`);
      return read(db);
    });

    expect(rows).toEqual([{ id: 1, name: 'one!', added: 2 }]);
    expect(attempts).toBe(2);
  });

  it('is dropped and created again', async () => {
    const { db, table, read } = await givenPrepared();

    await query(db, sql`drop table ${table}`);
    await expect(read(db)).rejects.toMatchObject({ code: '42P01' });
    await query(db, sql`create table ${table} (id int, name int)`);
    await query(db, sql`insert into ${table} values (1, 1)`);

    for (const _ of THREE_TIMES) expect(await read(db)).toEqual([{ id: 1, name: 1 }]);
  });
});

describe('a migration by another node while this one runs', () => {
  it('breaks no REST or RPC call', async () => {
    const { project, asMember } = await givenWorld();
    const { boards, cards } = asMember.rpc;
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    const callAll = async () => [
      (await asMember.post('/services/operations/v1/operations/boards/list')).status,
      (await boards.get.query({ id })).board.id,
      (await cards.create.mutate({ title: 'A card', group_id })).card.title,
      (await cards.list.query({ group_id })).cards[0]!.title,
      (await boards.update.mutate({ id, title: 'A board' })).board.title,
    ];
    const expected = [200, id, 'A card', 'A card', 'A board'];
    const changeAll = async (change: string) => {
      for (const table of ['boards', 'groups', 'cards', 'users', 'sessions'])
        await query(await testDb(), sql`alter table ${sql.table(table)} ${sql.raw(change)}`);
    };
    for (const _ of THREE_TIMES) expect(await callAll()).toEqual(expected);

    await changeAll('add column later text');
    const answered = await callAll().finally(() => changeAll('drop column later'));

    expect(answered).toEqual(expected);
    expect(await callAll()).toEqual(expected);
  });
});

describe('a statement is prepared', () => {
  const preparedIn = async (db: Db, part: string) => {
    const rows = await query(
      db,
      sql`select from pg_prepared_statements where strpos(statement, ${part}) > 0
        and strpos(statement, 'pg_prepared_statements') = 0`,
    );
    return rows.length;
  };
  /** With one name for all statements of a test, on one connection. */
  async function givenConnection(settings: Record<string, string> = {}) {
    const { db, close } = databaseUrl
      ? await givenDatabase({ DATABASE_POOL_SIZE: '2', ...settings })
      : { db: await testDb(), close: async () => {} };
    const name = uniqueName();
    return { db, close, name, read: (n: number) => query(db, sql`select ${n}::int as ${sql.id(name)}`) };
  }

  it('once, when it is repeated; never without values, or if it is marked as planned each time', async () => {
    const { db, close, name, read } = await givenConnection();
    const counts = [];
    for (const n of THREE_TIMES) {
      await read(n);
      await query(db, sql`select 1 as ${sql.id(`${name}_without`)}`);
      await query(db, sql`${sql.raw(PLANNED_EACH_TIME)} select ${n}::int as ${sql.id(name)}`);
      counts.push(await preparedIn(db, name));
    }
    await close();

    expect(counts).toEqual([0, 1, 1]);
  });

  it.skipIf(!databaseUrl)('never if PREPARED_STATEMENTS is off', async () => {
    const { db, close, name, read } = await givenConnection({ PREPARED_STATEMENTS: 'off' });
    for (const n of THREE_TIMES) await read(n);

    expect(await preparedIn(db, name)).toBe(0);
    await close();
  });

  it.skipIf(!databaseUrl)('again after it was deallocated, in a transaction, too', async () => {
    const { db, close, name, read } = await givenConnection();
    for (const n of THREE_TIMES) await read(n);

    await query(db, sql`deallocate all`);
    expect(await read(1)).toEqual([{ [name]: 1 }]);
    await query(db, sql`deallocate all`);
    expect(await transact(db, (db) => query(db, sql`select ${1}::int as ${sql.id(name)}`))).toEqual([{ [name]: 1 }]);
    await close();
  });
});
