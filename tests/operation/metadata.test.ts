import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Deprecation } from '../../server/api/deprecation.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { procedures, proceduresOf } from '../../server/api/procedures.ts';
import { appRouter } from '../../server/api/routers/app.ts';
import { anyoneProcedure, type Meta, router } from '../../server/api/trpc.ts';
import { manyRows } from '../../shared/rows.ts';

/** Every field of a schema, in any depth, of one type if that is given. */
function fieldsOf(schema: z.ZodType, type?: string): string[] {
  const names = new Set<string>();
  z.toJSONSchema(schema, {
    unrepresentable: 'any',
    override: ({ zodSchema, path }) => {
      const name = path.findLast((_, index) => path[index - 1] === 'properties');
      if (name !== undefined && (!type || zodSchema._zod.def.type === type)) names.add(String(name));
    },
  });
  return [...names];
}

describe('timestamps in inputs', () => {
  /** By their format, or since a field of this name is answered as a `Date`. */
  const answered = new Set(procedures.flatMap(({ output }) => fieldsOf(output, 'date')));
  const timestamps = procedures.flatMap(({ name, input: whole }) => {
    const input = whole && (manyRows.get(whole)?.row ?? whole);
    const { properties = {} } = input ? (z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema) : {};
    return Object.entries(properties)
      .filter(([field, schema]) => answered.has(field) || JSON.stringify(schema).includes('"date-time"'))
      .map(([field]) => ({ name: `${name} ${field}`, schema: (input as z.ZodObject).shape[field] as z.ZodType }));
  });

  it('are taken as a Date, and as text', () => {
    const date = new Date('2030-01-31T09:30:00Z');

    expect(timestamps.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'cards.create due_date',
        'cards.update due_date',
        'cards.createMany due_date',
        'cards.snooze until',
      ]),
    );
    expect(timestamps.map(({ name }) => name)).toContain('keys.create expires_at');
    for (const { name, schema } of timestamps) {
      expect([schema.parse(date), schema.parse(date.toISOString())], name).toEqual([date, date]);
      expect(schema.safeParse(new Date(Number.NaN)).success, name).toBe(false);
    }
  });
});

describe('the answer of a mutation with an idempotency key', () => {
  /** Names of fields that are shown once, and may not be stored in plain text. */
  const SECRET =
    /^(?!has_)(token|secret|key|password|recovery_codes|otpauth_uri|qr_svg)$|^(?!has_).*_(token|secret|password)$/;
  const metaOf = (name: string) =>
    (appRouter._def.procedures as unknown as Record<string, { _def: { meta: Meta } }>)[name]!._def.meta;

  it('is stored unless it has a secret', () => {
    // The answer of `account.prove` is empty; its effect ends with the session, so that a repeat has to prove again. Each sign-in
    // at an identity provider is another one.
    const others = ['account.prove', 'auth.startSso'];
    const mutations = procedures.filter(({ type, name }) => type === 'mutation' && !others.includes(name));
    const secret = mutations.filter(({ output }) => fieldsOf(output).some((field) => SECRET.test(field)));
    const unstored = mutations.filter(({ name }) => ['secret', 'never'].includes(metaOf(name).idempotency ?? ''));
    // Without a sign-in, there is nobody to store an answer for.
    const ofNobody = ['account.requestPasswordReset', 'account.resetPassword'];

    expect([...secret.map(({ name }) => name), ...ofNobody].sort()).toEqual(unstored.map(({ name }) => name).sort());
    expect(secret.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['auth.authenticate', 'account.changePassword', 'account.renewRecoveryCodes']),
    );
  });
});

describe('a deprecated procedure', () => {
  const routerWith = (deprecated: Deprecation) =>
    router({
      cards: router({
        push: anyoneProcedure.meta({ rpcOnly: 'A test.', deprecated }).query(() => undefined),
        moveTo: anyoneProcedure.meta({ rpcOnly: 'A test.' }).query(() => undefined),
      }),
    });
  const VALID = { since: '2026-11-30', sunset: '2027-05-30', use: 'cards.moveTo' };

  it('has the notice of its meta, and others have none', () => {
    const [push, moveTo] = proceduresOf(routerWith(VALID));

    expect(push).toMatchObject({ name: 'cards.push', deprecated: VALID });
    expect(moveTo).toMatchObject({ name: 'cards.moveTo', deprecated: undefined });
  });

  it.each<[Partial<Deprecation>, string]>([
    [{ since: 'soon' }, 'cards.push is deprecated with soon: write a date as 2026-11-16.'],
    [{ sunset: '2027-06-01T00:00Z' }, 'write a date as 2026-11-16.'],
    [{ sunset: '2027-02-31' }, 'write a date as 2026-11-16.'],
    [{ sunset: '2027-05-29' }, 'cards.push must work for 6 months after the notice: its sunset is too early.'],
    [{ use: 'cards.moveIt' }, 'cards.push is deprecated for cards.moveIt, which is no other procedure.'],
    [{ use: 'cards.push' }, 'which is no other procedure.'],
  ])('throws at the start with %o', (change, message) => {
    expect(() => proceduresOf(routerWith({ ...VALID, ...change }))).toThrow(message);
  });
});
