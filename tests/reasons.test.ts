import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { DeckhandError } from '../client/client.ts';
import { query } from '../server/database/query.ts';
import { type Answer, makeCaller } from './harness/caller.ts';
import { errorOf } from './harness/client.ts';
import { givenProtectedUser } from './harness/codes.ts';
import { givenService, testService } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenProduct,
  givenThemeVersion,
  givenTrial,
  givenUser,
  givenWorld,
  PASSWORD,
  testDb,
} from './harness/world.ts';

const AUTHENTICATE = '/v1/authenticate';
const OPERATIONS = '/services/operations/v1/operations';
const SYNC = '/services/operations/v1/admin/master-boards/sync';
const UPGRADE = '/services/platforms/v1/subscriptions/upgrade-trial';
const DEPRECATE = '/services/websites/v1/themes/versions/deprecate';
const MISSING_ID = 2_147_483_647;

const nobody = async () => makeCaller((await testService()).url);

/** The status and reason of an error over REST, which must be the same over RPC. */
function sameRefusal({ status, headers }: Answer, error: DeckhandError): [number, string | null] {
  const refused: [number, string | null] = [status, headers.get('x-error-reason')];
  expect([error.status, error.reason]).toEqual(refused);
  expect(error.data?.reason).toBe(error.reason);
  return refused;
}

describe('the reason of a refused sign-in', () => {
  const signIn = async (input: { email: string; password: string; code?: string }, caller = nobody()) =>
    sameRefusal(
      await (await caller).post(AUTHENTICATE, input),
      await errorOf((await caller).rpc.auth.authenticate.mutate(input)),
    );

  it('401 wrong_credentials for a wrong password and for an unknown user', async () => {
    const { email } = await givenUser();

    expect(await signIn({ email, password: 'wrong' })).toEqual([401, 'wrong_credentials']);
    expect(await signIn({ email: 'nobody@example.test', password: 'wrong' })).toEqual([401, 'wrong_credentials']);
  });

  it('401 wrong_credentials for a wrong password of a user with a second factor', async () => {
    const { email } = await givenProtectedUser();

    expect(await signIn({ email, password: 'wrong', code: '000000' })).toEqual([401, 'wrong_credentials']);
  });

  it('401 code_required without a code, code_wrong with a wrong one', async () => {
    const { email } = await givenProtectedUser();

    expect(await signIn({ email, password: PASSWORD })).toEqual([401, 'code_required']);
    expect(await signIn({ email, password: PASSWORD, code: 'wrong' })).toEqual([401, 'code_wrong']);
  });

  it('429 codes_blocked after too many wrong codes', async () => {
    const { email } = await givenProtectedUser();
    const sent = { email, password: PASSWORD, code: 'wrong' };
    for (let tries = 0; tries < 5; tries++) await (await nobody()).post(AUTHENTICATE, sent);

    expect(await signIn(sent)).toEqual([429, 'codes_blocked']);
  });

  it('429 too_many_failures after too many wrong passwords', async () => {
    const { url } = await givenService();
    const { email } = await givenUser();
    const sent = { email, password: 'wrong' };
    for (let tries = 0; tries < 10; tries++) await makeCaller(url).post(AUTHENTICATE, sent);

    expect(await signIn(sent, Promise.resolve(makeCaller(url)))).toEqual([429, 'too_many_failures']);
  });
});

describe('the reason of a refused call', () => {
  it('401 not_signed_in without a token', async () => {
    const asNobody = await nobody();

    const rest = await asNobody.post(`${OPERATIONS}/boards/list`);
    const rpc = await errorOf(asNobody.rpc.boards.list.query());

    expect(sameRefusal(rest, rpc)).toEqual([401, 'not_signed_in']);
  });

  it('403 role_missing for a viewer, not_a_superadmin for an owner', async () => {
    const { asViewer, asOwner } = await givenWorld();
    const [card, board] = [{ title: 'A card' }, { board_id: 1 }];

    expect(
      sameRefusal(
        await asViewer.post(`${OPERATIONS}/cards/create`, card),
        await errorOf(asViewer.rpc.cards.create.mutate(card)),
      ),
    ).toEqual([403, 'role_missing']);
    expect(
      sameRefusal(await asOwner.post(SYNC, board), await errorOf(asOwner.rpc.masterBoards.sync.mutate(board))),
    ).toEqual([403, 'not_a_superadmin']);
  });

  it('403 no_project_access in a project of others', async () => {
    const { asOwner, otherProject } = await givenWorld();
    const elsewhere = asOwner.in(otherProject.id);

    const rest = await elsewhere.post(`${OPERATIONS}/boards/list`);
    const rpc = await errorOf(elsewhere.rpc.boards.list.query());

    expect(sameRefusal(rest, rpc)).toEqual([403, 'no_project_access']);
  });

  it('403 other_project for a row of others, 404 not_found for an unknown one', async () => {
    const { asMember, otherProject } = await givenWorld();
    const remove = async (id: number) =>
      sameRefusal(
        await asMember.post(`${OPERATIONS}/cards/delete`, { id }),
        await errorOf(asMember.rpc.cards.delete.mutate({ id })),
      );

    expect(await remove(await givenCard(otherProject))).toEqual([403, 'other_project']);
    expect(await remove(MISSING_ID)).toEqual([404, 'not_found']);
  });

  it('422 unknown_reference for an unknown tag, invalid_input for other fields', async () => {
    const { asMember } = await givenWorld();
    const create = async (input: { title: string; tag_id?: number }) =>
      sameRefusal(
        await asMember.post(`${OPERATIONS}/cards/create`, input),
        await errorOf(asMember.rpc.cards.create.mutate(input)),
      );

    expect(await create({ title: 'A card', tag_id: MISSING_ID })).toEqual([422, 'unknown_reference']);
    expect(await create({ title: '' })).toEqual([422, 'invalid_input']);
  });

  it.each([
    ['paid', 'trial_already_paid'],
    ['past_due', 'payment_due'],
  ])('400 for upgrading a subscription that is %s: %s', async (status, reason) => {
    const { asOwner, project } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const plan_id = sql`(select min(id) from plans where product = ${product})`;
    await query(
      await testDb(),
      sql`update subscriptions set status = ${status}, plan_id = ${plan_id}, paid_at = now() where id = ${id}`,
    );
    const choice = { product, plan: 'pro', period: 'month' } as const;

    const rest = await asOwner.post(UPGRADE, choice);
    const rpc = await errorOf(asOwner.rpc.subscriptions.upgradeTrial.mutate(choice));

    expect(sameRefusal(rest, rpc)).toEqual([400, reason]);
  });

  it('422 unknown_plan for a plan that the product lacks', async () => {
    const { asOwner } = await givenWorld();
    const choice = { product: await givenProduct(), plan: 'none', period: 'month' } as const;

    const rest = await asOwner.post(UPGRADE, choice);
    const rpc = await errorOf(asOwner.rpc.subscriptions.upgradeTrial.mutate(choice));

    expect(sameRefusal(rest, rpc)).toEqual([422, 'unknown_plan']);
  });

  it('400 version_not_approved for a version that waits for approval', async () => {
    const { asOwner, project } = await givenWorld();
    const version_id = await givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' });

    const rest = await asOwner.post(DEPRECATE, { version_id });
    const rpc = await errorOf(asOwner.rpc.themes.deprecateVersion.mutate({ version_id }));

    expect(sameRefusal(rest, rpc)).toEqual([400, 'version_not_approved']);
  });

  it('429 over_rate_limit', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '1' });
    const asNobody = makeCaller(url);
    await asNobody.post(`${OPERATIONS}/boards/list`);

    const rest = await asNobody.post(`${OPERATIONS}/boards/list`);
    const rpc = await errorOf(asNobody.rpc.boards.list.query());

    expect(sameRefusal(rest, rpc)).toEqual([429, 'over_rate_limit']);
  });

  it('200 has no reason', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenBoard(project);

    const { status, headers } = await asMember.post(`${OPERATIONS}/boards/get`, { id });

    expect(status).toBe(200);
    expect(headers.has('x-error-reason')).toBe(false);
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
