import { randomUUID } from 'node:crypto';
import argon2 from 'argon2';
import sanitize from 'sanitize-html';
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { inputFor, inputSchemaOf } from '../../server/contract/input.ts';
import { testCheckout } from '../../server/payments/testCheckout.ts';
import { sampled } from '../harness/sample.ts';
import { givenService, type TestService } from '../harness/service.ts';
import { allowedCaller, givenStartState, startStates } from '../harness/startStates.ts';
import { givenMasterBoard, givenWorld, PASSWORD, testDb } from '../harness/world.ts';

/** What is slow, or outside of the database: each use, with the number of transactions that are open meanwhile. */
const uses: { what: string; transactions: number }[] = [];
let transactions = 0;
const use = (what: string) => uses.push({ what, transactions });

let service: TestService;
beforeAll(async () => {
  const open: typeof testCheckout.open = (order) => {
    use('open a checkout');
    return testCheckout.open(order);
  };
  service = await givenService({}, { payments: { ...testCheckout, open } });
});
// Spies end with each test.
beforeEach(async () => {
  const db = await testDb();
  const begin = db.transaction.bind(db);
  vi.spyOn(db, 'transaction').mockImplementation(() => {
    const builder = begin();
    const execute = builder.execute.bind(builder);
    const counted: typeof builder.execute = async (work) => {
      transactions++;
      return execute(work).finally(() => transactions--);
    };
    return Object.assign(builder, { execute: counted });
  });

  for (const name of ['hash', 'verify'] as const) {
    const original = argon2[name] as (...parts: unknown[]) => Promise<never>;
    vi.spyOn(argon2, name).mockImplementation((...parts: unknown[]) => {
      use(name);
      return original(...parts);
    });
  }
  const { defaults } = sanitize;
  vi.spyOn(sanitize, 'defaults', 'get').mockImplementation(() => {
    use('sanitise');
    return defaults;
  });
});

const usesIn = async (procedure: Procedure, headers: Record<string, string>) => {
  const world = await givenWorld(service);
  const input = inputFor(procedure, await givenStartState(procedure, world));
  const slow = {
    ...('description' in input && { description: '<b>Ready</b>' }),
    ...('password' in input && { password: PASSWORD }),
  };
  uses.length = 0;
  const { status } = await allowedCaller(world, procedure).post(procedure.rest!.path, { ...input, ...slow }, headers);
  return { status, uses: [...uses] };
};

const SLOW_STEPS: Record<string, string> = {
  'cards.update': 'sanitise',
  'masterCards.create': 'sanitise',
  'masterCards.update': 'sanitise',
  'users.create': 'hash',
  'users.update': 'hash',
  'account.changePassword': 'verify',
  'subscriptions.upgradeTrial': 'open a checkout',
};

describe('no transaction is open during the slow steps of a mutation', () => {
  /** The fields that are hashed, sanitised, or sent to the payment provider. */
  const SLOW = /^(description|comment|title|name|password|new_password|plan)$/;
  const mutations = procedures.filter(
    (procedure) =>
      procedure.isKeyed && Object.keys(inputSchemaOf(procedure).properties ?? {}).some((field) => SLOW.test(field)),
  );

  it.each(sampled(mutations).map((procedure) => [procedure.name, procedure] as const))(
    '%s, with and without an idempotency key',
    async (name, procedure) => {
      const expected = startStates.get(name)!.success ?? 200;

      const without = await usesIn(procedure, {});
      const withKey = await usesIn(procedure, { 'Idempotency-Key': randomUUID() });

      expect([without.status, withKey.status]).toEqual([expected, expected]);
      expect([...without.uses, ...withKey.uses].filter(({ transactions }) => transactions > 0)).toEqual([]);
      if (SLOW_STEPS[name]) expect(withKey.uses.map(({ what }) => what)).toContain(SLOW_STEPS[name]);
      // Whether the description of a card is HTML is known only in the transaction, so with a key it is always sanitised.
      if (name !== 'cards.update') expect(withKey.uses).toEqual(without.uses);
    },
  );
});

describe('a slow step that refuses', () => {
  it('422 with a key as without one, and the key is free', async () => {
    const { asSuperadmin } = await givenWorld(service);
    const { group: group_id } = await givenMasterBoard();
    const path = '/services/operations/v1/admin/master-cards/create';
    const headers = { 'Idempotency-Key': randomUUID() };
    const deep = { group_id, title: 'x', description: '<b>'.repeat(101) };

    const withKey = await asSuperadmin.post(path, deep, headers);

    expect(withKey).toMatchObject({ status: 422, body: { errors: { description: [expect.stringMatching(/nest/)] } } });
    expect((await asSuperadmin.post(path, deep)).body).toEqual(withKey.body);
    const fine = { ...deep, description: '<i>fine</i>' };
    expect((await asSuperadmin.post(path, fine, headers)).status).toBe(201);
  });
});
