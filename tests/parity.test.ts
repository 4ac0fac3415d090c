import { randomUUID } from 'node:crypto';
import { initTRPC } from '@trpc/server';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Procedure, procedures, proceduresOf, restProcedures } from '../server/api/procedures.ts';
import { kebab } from '../server/cli/options.ts';
import { entities } from '../server/database/entities.ts';
import { query, transact } from '../server/database/query.ts';
import { ACCESS } from '../server/domain/access/access.ts';
import { SENT_AS_TEXT } from '../shared/fields.ts';
import { changed, inputSchemaOf, validValue, wrongChange } from './harness/arbitrary.ts';
import type { TestCaller } from './harness/caller.ts';
import { databaseUrl, tokens } from './harness/service.ts';
import {
  allowedCaller,
  CALLERS,
  type Given,
  givenStartState,
  hasAccess,
  NO_CURSOR,
  startStates,
  withGiven,
} from './harness/startStates.ts';
import { givenWorld, testDb, type World } from './harness/world.ts';

/**
 * REST and RPC do and answer the same, for every documented procedure and random inputs made from its schema.
 * `FAST_CHECK_SEED` chooses other inputs, `FAST_CHECK_RUNS` more of them.
 */

type Outcome = { status?: number; reason?: string | null; message?: string; errors?: object; data?: unknown };
type Surface = (caller: TestCaller, procedure: Procedure, input: unknown) => Promise<Outcome>;

const overRest: Surface = async (caller, { rest, output }, input) => {
  // As the client does over RPC.
  const { status, body, headers } = await caller.post(rest!.path, input, { 'Idempotency-Key': randomUUID() });
  if (status >= 400)
    return { status, reason: headers.get('x-error-reason'), message: body.message, errors: body.errors };
  expect(status).toBe(rest!.status);
  return { data: asTyped(output, body.data) };
};

const overRpc: Surface = async (caller, { name, type }, input) => {
  const [router, procedure] = name.split('.') as [string, string];
  const call = (caller.rpc as any)[router][procedure][type === 'query' ? 'query' : 'mutate'];
  try {
    const result = await call(input);
    return { data: result === undefined ? [] : JSON.parse(JSON.stringify(result)) };
  } catch (error: any) {
    if (!error.data) throw error;
    return {
      status: error.data.httpStatus,
      reason: error.data.reason,
      message: error.message,
      errors: error.data.errors,
    };
  }
};

/** Parses what REST sends as JSON text. */
function asTyped(schema: z.ZodType, value: any): any {
  if (z.globalRegistry.get(schema)?.[SENT_AS_TEXT] !== undefined) return JSON.parse(value);
  if (schema instanceof z.ZodArray)
    return value.map((element: unknown) => asTyped(schema.element as z.ZodType, element));
  if (!(schema instanceof z.ZodObject)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, part]) => [field, asTyped(schema.shape[field], part)]));
}

/** All rows of the database, by table. */
type Contents = Record<string, object[]>;

/** Referenced tables come before those that refer to them. */
const tables = entities.map(({ meta: { tableName: name, properties } }) => {
  const hasSequence = 'id' in properties && properties.id.autoincrement;
  return { name, table: sql.table(name), hasSequence };
});

async function readContents(): Promise<Contents> {
  const parts = tables.map(
    ({ name, table }) => sql`${sql.lit(name)}, (select coalesce(json_agg(t), '[]') from ${table} t)`,
  );
  const [row] = await query(
    await testDb(),
    sql<{ contents: Contents }>`select json_build_object(${sql.join(parts)}) as contents`,
  );
  return row!.contents;
}

/** Replaces all rows of the database by these, and sets the sequences after them. */
async function replaceContents(contents: Contents): Promise<void> {
  await transact(await testDb(), async (db) => {
    for (const { table } of tables.toReversed()) await query(db, sql`delete from ${table}`);
    for (const { name, table } of tables) {
      if (!contents[name]?.length) continue;
      const rows = JSON.stringify(contents[name]);
      await query(db, sql`insert into ${table} select * from json_populate_recordset(null::${table}, ${rows})`);
    }
    const nextIds = tables.flatMap(({ name, table, hasSequence }) => {
      const sequence = sql`pg_get_serial_sequence(${name}, 'id')`;
      return hasSequence ? sql`(select setval(${sequence}, coalesce(max(id), 0) + 1, false) from ${table})` : [];
    });
    await query(db, sql`select ${sql.join(nextIds)}`);
  });
}

/** For comparing the results of two calls: hides new timestamps and random ids. */
function comparable(value: unknown, before: Contents): unknown {
  const known = JSON.stringify(before);
  const text = JSON.stringify(value, (key, part) => {
    if (typeof part !== 'string' || known.includes(part)) return part;
    if (key === 'token') return tokens.read(part);
    if (RANDOM.has(key)) return 'a new secret';
    return key.endsWith('_at')
      ? 'a new time'
      : part.replace(UUID, (uuid) => (known.includes(uuid) ? uuid : 'a new id'));
  });
  return JSON.parse(text);
}

/** What is stored for an idempotency key: random, or with new times. */
const OF_A_KEY = ['key', 'answer', 'held_until'];

/** Fields with new random values. */
const RANDOM = new Set([
  'password_hash',
  'secret',
  'secret_hash',
  'previous_hash',
  'otpauth_uri',
  'qr_svg',
  'totp_pending_secret',
  ...OF_A_KEY,
]);

const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;

/** Calls REST and RPC on the same database contents, and compares answers and written rows. */
async function mustDoTheSame(procedure: Procedure, made: unknown): Promise<void> {
  const world = await givenWorld();
  const input = withGiven(made, { ...NO_CURSOR, ...(await givenStartState(procedure, world)) });
  const before = await readContents();
  const callOver = async (surface: Surface) => {
    await replaceContents(before);
    const outcome = await surface(allowedCaller(world, procedure), procedure, input);
    const written = Object.entries(await readContents()).map(([table, rows]) => [
      table,
      rows.map((row) => JSON.stringify(comparable(row, before))).sort(),
    ]);
    return { outcome: comparable(outcome, before), written };
  };

  const rest = await callOver(overRest);
  const rpc = await callOver(overRpc);

  if (startStates.get(procedure.name)!.success !== 400) expect(rest.outcome).toHaveProperty('data');
  expect(rest).toEqual(rpc);
}

type Call = { caller: TestCaller; input: unknown };

/** Both surfaces refuse these calls with the same message, and write nothing. */
async function mustRefuseTheSame(procedure: Procedure, statuses: number[], calls: Call[]): Promise<void> {
  const before = await readContents();
  await Promise.all(
    calls.map(async ({ caller, input }) => {
      // Not in one batch: many large inputs would be too large for one request.
      const [rest, rpc] = await Promise.all([
        overRest(caller, procedure, input),
        overRpc(caller.alone(), procedure, input),
      ]);
      expect({ input, outcome: rest }).toEqual({ input, outcome: rpc });
      expect(statuses, JSON.stringify({ input, rest })).toContain(rest.status);
    }),
  );
  expect(await readContents()).toEqual(before);
}

/** The callers without access, or of another project. */
function refusedCallers(procedure: Procedure, world: World, given: Given, input: Given): TestCaller[] {
  const rule = ACCESS[procedure.access];
  if (!('role' in rule || 'right' in rule)) return rule.needsSignIn ? [world.asNobody] : [];
  const refused = CALLERS.filter((caller) => !hasAccess(caller, procedure.access));
  // Without a reference to an existing row, the call of an outsider acts in their own project and is allowed.
  const { required = [] } = inputSchemaOf(procedure);
  const isNamed = required.some((field) => field in given && JSON.stringify(input[field]) !== '[]');
  const outsider = isNamed ? [world.asOutsider] : [];
  return [...refused.map((caller) => world[`as${caller}`]), world.asOwner.in(world.otherProject.id), ...outsider];
}

const SEED = Number(process.env.FAST_CHECK_SEED);
const RUNS = Number(process.env.FAST_CHECK_RUNS ?? 1);

/** Without shrinking, which would need a new start state for each attempt. */
const holds = <Value>(arbitrary: fc.Arbitrary<Value>, check: (value: Value) => Promise<void>) =>
  fc.assert(fc.asyncProperty(arbitrary, check), {
    seed: SEED,
    numRuns: RUNS,
    endOnFailure: true,
  });

describe.each(restProcedures.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  beforeEach(() => replaceContents({}));

  const schema = inputSchemaOf(procedure);
  const isTaken = (input: unknown) => procedure.input === undefined || procedure.input.safeParse(input).success;
  const plain = validValue(schema);
  const odd = fc.tuple(plain, wrongChange(schema)).map(([made, change]) => changed(made, change));

  it('writes and answers the same on both surfaces', async () => {
    const taken = fc.oneof(plain, odd.filter(isTaken));

    await holds(taken, (made) => mustDoTheSame(procedure, made));
  });

  // One kind of database is enough, since refused calls hardly reach it.
  it.skipIf(databaseUrl || !procedure.input)('422 for the same inputs, with the same message', async () => {
    const world = await givenWorld();
    const caller = allowedCaller(world, procedure);
    const refused = odd.filter((input) => !isTaken(input));

    await holds(fc.array(refused, { minLength: 15, maxLength: 15 }), (inputs) =>
      mustRefuseTheSame(
        procedure,
        [422],
        inputs.map((input) => ({ caller, input })),
      ),
    );
  });

  it.skipIf(databaseUrl)('401, 403 or 404 for the same callers, with the same message', async () => {
    const world = await givenWorld();
    const given = await givenStartState(procedure, world);

    await holds(plain, (made) => {
      const input = withGiven(made, { ...NO_CURSOR, ...given }) as Given;
      const calls = refusedCallers(procedure, world, given, input).map((caller) => ({ caller, input }));
      return mustRefuseTheSame(procedure, [401, 403, 404], calls);
    });
  });
});

/** `cards.move` is `cards/move` below the segment of its area. */
function pathOf(name: string): string {
  const [noun, verb] = kebab(name).split('.') as [string, string];
  if (noun === 'account') return `/v1/account/${verb}`;
  if (noun === 'themes') {
    const isOfVersion = /-versions?$|^deprecate-|^undo-/.test(verb);
    return `/services/websites/v1/themes/${isOfVersion ? 'versions/' : ''}${verb.replace(/-versions?$/, '')}`;
  }
  if (/^(master-|template-runs)/.test(noun)) return `/services/operations/v1/admin/${noun}/${verb}`;
  const isOperation = ['boards', 'groups', 'cards', 'comments', 'tags', 'tour'].includes(noun);
  return `/services/${isOperation ? 'operations/v1/operations' : 'platforms/v1'}/${noun}/${verb}`;
}

describe('the router', () => {
  it('throws for a procedure without an access level', () => {
    const { router, procedure } = initTRPC.create();
    const withoutAccess = router({ tags: router({ list: procedure.query(() => []) }) });

    expect(() => proceduresOf(withoutAccess)).toThrow('tags.list has no access level');
  });

  it('throws for a procedure without a REST path that does not say why', () => {
    const { router, procedure } = initTRPC.meta<object>().create();
    const withMeta = (meta: object) =>
      router({ tags: router({ list: procedure.meta({ access: 'viewer', ...meta }).query(() => []) }) });

    expect(() => proceduresOf(withMeta({}))).toThrow('tags.list has no REST path');
    expect(proceduresOf(withMeta({ rpcOnly: 'It streams.' }))).toMatchObject([{ name: 'tags.list', rest: undefined }]);
  });

  it('has an output schema for each procedure', () => {
    expect(procedures.filter(({ output }) => output === undefined)).toEqual([]);
  });

  it('has each REST path once, in a documented area', () => {
    const paths = restProcedures.map(({ rest }) => rest.path);

    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths)
      expect(path).toMatch(
        /^\/v1\/(authenticate|account\/[a-z-]+)$|^\/services\/(operations|platforms|websites)\/v1\/[a-z/-]+$/,
      );
  });

  it('has paths beyond the specification that follow from the names of the procedures', () => {
    const others = restProcedures.filter(({ rest }) => !rest.isSpecified);

    expect(others.length).toBeGreaterThan(60);
    for (const { name, rest } of others) expect(rest.path, name).toBe(pathOf(name));
  });
});
