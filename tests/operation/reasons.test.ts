import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findProcedure } from '../../server/api/procedures.ts';
import { query } from '../../server/database/query.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { givenProtectedUser } from '../harness/codes.ts';
import { givenService, testService, withOwnService } from '../harness/service.ts';
import { refusedByAll } from '../harness/surfaces.ts';
import {
  givenCard,
  givenProduct,
  givenThemeVersion,
  givenTrial,
  givenUser,
  givenWorld,
  PASSWORD,
  testDb,
} from '../harness/world.ts';

withOwnService();

type Refused = { by: TestCaller; call: string; input?: object };

const MISSING_ID = 2_147_483_647;
const nobody = async (settings?: Record<string, string>) =>
  makeCaller((settings ? await givenService(settings) : await testService()).url);

/** A sign-in after this many that failed. */
const signIn = async (input: object, { by = nobody(), failures = 0 } = {}): Promise<Refused> => {
  const caller = await by;
  for (let tries = 0; tries < failures; tries++) await caller.post('/v1/authenticate', input);
  return { by: caller, call: 'auth.authenticate', input };
};

/** An upgrade of a subscription with this status. */
async function upgradeOf(status: string): Promise<Refused> {
  const { asOwner, project } = await givenWorld();
  const { id, product } = await givenTrial(project);
  const plan_id = sql`(select min(id) from plans where product = ${product})`;
  await query(
    await testDb(),
    sql`update subscriptions set status = ${status}, plan_id = ${plan_id}, paid_at = now() where id = ${id}`,
  );
  return { by: asOwner, call: 'subscriptions.upgradeTrial', input: { product, plan: 'pro', period: 'month' } };
}

describe('the reason of a refused call, over REST and RPC', () => {
  it.each<[string, string, () => Promise<Refused>]>([
    ['401 wrong_credentials', 'an unknown user', () => signIn({ email: 'nobody@example.test', password: 'wrong' })],
    ['401 wrong_credentials', 'a wrong password', async () => signIn({ ...(await givenUser()), password: 'wrong' })],
    [
      '401 wrong_credentials',
      'a wrong password and code',
      async () => signIn({ ...(await givenProtectedUser()), password: 'wrong', code: '000000' }),
    ],
    ['401 code_required', 'no code', async () => signIn({ ...(await givenProtectedUser()), password: PASSWORD })],
    [
      '401 code_wrong',
      'a wrong code',
      async () => signIn({ ...(await givenProtectedUser()), password: PASSWORD, code: 'wrong' }),
    ],
    [
      '429 codes_blocked',
      'too many wrong codes',
      async () => signIn({ ...(await givenProtectedUser()), password: PASSWORD, code: 'wrong' }, { failures: 5 }),
    ],
    [
      '429 too_many_failures',
      'too many wrong passwords',
      async () => signIn({ ...(await givenUser()), password: 'wrong' }, { by: nobody({}), failures: 10 }),
    ],
    ['401 not_signed_in', 'no token', async () => ({ by: await nobody(), call: 'boards.list' })],
    [
      '403 role_missing',
      'a viewer',
      async () => ({ by: (await givenWorld()).asViewer, call: 'cards.create', input: { title: 'x' } }),
    ],
    [
      '403 not_a_superadmin',
      'an owner',
      async () => ({ by: (await givenWorld()).asOwner, call: 'masterBoards.sync', input: { board_id: 1 } }),
    ],
    [
      '403 no_project_access',
      'a project of others',
      async () => {
        const { asOwner, otherProject } = await givenWorld();
        return { by: asOwner.in(otherProject.id), call: 'boards.list' };
      },
    ],
    [
      '403 other_project',
      'a row of others',
      async () => {
        const { asMember, otherProject } = await givenWorld();
        return { by: asMember, call: 'cards.delete', input: { id: await givenCard(otherProject) } };
      },
    ],
    [
      '404 not_found',
      'an unknown row',
      async () => ({ by: (await givenWorld()).asMember, call: 'cards.delete', input: { id: MISSING_ID } }),
    ],
    [
      '422 unknown_reference',
      'an unknown tag',
      async () => ({
        by: (await givenWorld()).asMember,
        call: 'cards.create',
        input: { title: 'x', tag_id: MISSING_ID },
      }),
    ],
    [
      '422 invalid_input',
      'other fields',
      async () => ({ by: (await givenWorld()).asMember, call: 'cards.create', input: { title: '' } }),
    ],
    ['400 trial_already_paid', 'a paid subscription', () => upgradeOf('paid')],
    ['400 payment_due', 'a subscription that is past due', () => upgradeOf('past_due')],
    [
      '422 unknown_plan',
      'a plan that the product lacks',
      async () => ({
        by: (await givenWorld()).asOwner,
        call: 'subscriptions.upgradeTrial',
        input: { product: await givenProduct(), plan: 'none', period: 'month' },
      }),
    ],
    [
      '400 version_not_approved',
      'a version that waits for approval',
      async () => {
        const { asOwner, project } = await givenWorld();
        const version_id = await givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' });
        return { by: asOwner, call: 'themes.deprecateVersion', input: { version_id } };
      },
    ],
    [
      '429 over_rate_limit',
      'too many calls',
      async () => {
        const by = await nobody({ RATE_LIMIT_PER_MINUTE: '1' });
        await by.post('/spend-the-limit');
        return { by, call: 'boards.list' };
      },
    ],
  ])('%s for %s', async (expected, _, given) => {
    const { by, call, input } = await given();

    const { status, reason } = await refusedByAll(by, findProcedure(call)!, input);

    expect(`${status} ${reason}`).toBe(expected);
  });
});

describe('the reason of a request that reaches no procedure', () => {
  const JSON_TYPE = 'application/json';
  const send = async (path: string, { method = 'POST', type = JSON_TYPE, body = '{}' } = {}) => {
    const content = method === 'GET' ? {} : { headers: { 'content-type': type }, body };
    return fetch((await testService()).url + path, { method, ...content });
  };

  it.each([
    [400, 'body_not_json', 'a broken body', { body: '{' }],
    [400, 'body_not_json', 'another content type', { type: 'text/plain' }],
    [400, 'body_too_large', 'a large body', { body: JSON.stringify('x'.repeat(1024 * 1024)) }],
    [400, 'body_too_large', 'a deep body', { body: '['.repeat(100) + ']'.repeat(100) }],
    [405, 'wrong_method', 'GET', { method: 'GET' }],
  ])('%i %s for %s, on both surfaces', async (status, reason, _, request) => {
    const rest = await send('/api/v1/authenticate', request);
    const rpc = await send('/trpc/auth.authenticate', request);

    expect([rest.status, rest.headers.get('x-error-reason')]).toEqual([status, reason]);
    expect([rpc.status, (await rpc.json()).error.json.data.reason]).toEqual([status, reason]);
  });

  it('400 body_not_object for a list', async () => {
    const { status, headers } = await send('/api/v1/authenticate', { body: '[]' });

    expect([status, headers.get('x-error-reason')]).toEqual([400, 'body_not_object']);
  });

  it.each(['/api/nothing', '/nothing'])('404 unknown_path for %s', async (path) => {
    const { status, headers } = await send(path);

    expect([status, headers.get('x-error-reason')]).toEqual([404, 'unknown_path']);
  });

  it('404 unknown_procedure', async () => {
    const answer = await send('/trpc/cards.conjure');

    expect(answer.status).toBe(404);
    expect((await answer.json()).error.json.data).toMatchObject({ httpStatus: 404, reason: 'unknown_procedure' });
  });

  it('404 not_found for the page of an unknown checkout', async () => {
    const { status, headers } = await send('/checkout/nothing', { method: 'GET' });

    expect([status, headers.get('x-error-reason')]).toEqual([404, 'not_found']);
  });
});
