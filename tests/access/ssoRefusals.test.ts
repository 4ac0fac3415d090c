import { createHmac, generateKeyPairSync } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { UNREACHABLE } from '../../server/security/identityProvider.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { type Forged, startForgedProvider } from '../harness/forgedProvider.ts';
import { givenService, type TestService } from '../harness/service.ts';
import { refusal, startSso } from '../harness/sso.ts';
import { givenToken, givenUser, insert, testDb } from '../harness/world.ts';

const FAULTY = ['long', 'moved', 'broken', 'page', 'another', 'slow', 'many-keys', 'inside'];

let forged: Forged;
let service: TestService;
let caller: TestCaller;
/** Begun first, since it takes seconds; and what is answered meanwhile. */
let waiting: ReturnType<typeof refusal>[];
let listed: { issuers: unknown[] };

beforeAll(async () => {
  forged = await startForgedProvider();
  const issuers = ['fine', ...FAULTY].map((name) => forged.settings(name, { sign_up: true }));
  service = await givenService({ SSO_ISSUERS: JSON.stringify(issuers) });
  caller = makeCaller(service.url);
  waiting = [1, 2, 3].map(() => refusal(startSso(makeCaller(service.url), { issuer: 'slow' })));
  listed = await caller.rpc.auth.listIssuers.query();
});
afterAll(async () => {
  await service.app.close();
  await forged.stop();
});

const now = () => Math.floor(Date.now() / 1000);
const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** Good claims, for the nonce of a sign-in. */
const claimsFor = (nonce: string, issuer = 'fine') => ({
  ...{ iss: `${forged.url}/${issuer}`, aud: 'deckhand', sub: `sub-${nonce}`, nonce },
  ...{ iat: now(), exp: now() + 300, email: `${nonce.toLowerCase()}@example.test` },
});
type Claims = Record<string, unknown>;

/** A sign-in whose provider answers with this token. */
async function signInWith(make: (claims: Claims) => Promise<string | undefined>, issuer = 'fine') {
  const flow = await startSso(caller, { issuer });
  const nonce = flow.url.searchParams.get('nonce') ?? '';
  forged.control.token = async () => {
    const id_token = await make(claimsFor(nonce, issuer));
    return { access_token: 'x', token_type: 'bearer', ...(id_token && { id_token }) };
  };
  return { ...flow, callback: `code=x&state=${flow.state}&iss=${forged.url}/${issuer}` };
}

const signed = (claims: Claims) => forged.sign(claims);
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** Signed with HMAC and the public key as its secret, which everybody knows. */
function signWithPublicKey(claims: Claims) {
  const content = `${encode({ alg: 'HS256', kid: 'real' })}.${encode(claims)}`;
  const key = JSON.stringify(forged.publicKey);
  return `${content}.${createHmac('sha256', key).update(content).digest('base64url')}`;
}

it('a token without a fault signs in', async () => {
  const { finish, callback } = await signInWith(signed);

  expect(await finish(callback)).toMatchObject({ purpose: 'sign_in', token: expect.any(String) });
});

it('a name is taken without characters that nobody types', async () => {
  const { finish, callback } = await signInWith((claims) =>
    signed({ ...claims, name: 'A\0nn\n\u001b[1m\ud800', sid: 'a\0' }),
  );

  expect(await finish(callback)).toMatchObject({ name: 'A nn [1m\ufffd' });
});

describe('403 sso_refused for a token', () => {
  it.each<[string, (claims: Claims) => Promise<string | undefined>, RegExp]>([
    ['of another issuer', (claims) => signed({ ...claims, iss: 'https://evil.example' }), /iss is wrong/],
    ['for another client', (claims) => signed({ ...claims, aud: 'another' }), /aud is wrong/],
    [
      'for another party of several',
      (claims) => signed({ ...claims, aud: ['deckhand', 'b'], azp: 'b' }),
      /azp is wrong/,
    ],
    ['of another sign-in', (claims) => signed({ ...claims, nonce: 'another' }), /nonce is wrong/],
    ['without a nonce', ({ nonce: _, ...claims }) => signed(claims), /nonce is missing/],
    [
      'that has expired',
      (claims) => signed({ ...claims, iat: now() - 900, exp: now() - 600 }),
      /expired, or the clocks/,
    ],
    ['that is not valid yet', (claims) => signed({ ...claims, nbf: now() + 600 }), /expired, or the clocks/],
    ['of a shifted clock', (claims) => signed({ ...claims, iat: now() + 3600, exp: now() + 7200 }), /from the future/],
    ['with alg none', async (claims) => `${encode({ alg: 'none' })}.${encode(claims)}.`, /not signed in a way/],
    [
      'without a signature',
      async (claims) => `${encode({ alg: 'RS256', kid: 'real' })}.${encode(claims)}.`,
      /not signed with one/,
    ],
    ['signed with the public key', async (claims) => signWithPublicKey(claims), /not signed in a way/],
    ['of a swapped key', (claims) => forged.sign(claims, { key: other.privateKey }), /not signed with one/],
    [
      'of an unknown key',
      (claims) => forged.sign(claims, { key: other.privateKey, kid: 'new' }),
      /not signed with one/,
    ],
    [
      'that was changed',
      async (claims) => (await signed(claims)).replace(/\.[^.]+/, `.${encode({ ...claims, sub: 'b' })}`),
      /not signed with one/,
    ],
    ['without a subject', ({ sub: _, ...claims }) => signed(claims), /sub is missing/],
    ['with an endless subject', (claims) => signed({ ...claims, sub: 'x'.repeat(300) }), /incomplete/],
    ['with a subject that can not be stored', (claims) => signed({ ...claims, sub: 'a\0' }), /incomplete/],
    ['with an address that can not be stored', (claims) => signed({ ...claims, email: 'a\0@b.test' }), /no e-mail/],
    ['that is missing', async () => undefined, /incomplete/],
    ['that is no token', async () => 'not.a.token', /incomplete/],
    ['that the provider refuses', () => Promise.reject(new Error()), /invalid_grant|incomplete/],
  ])('%s', async (_, make, text) => {
    const { finish, callback } = await signInWith(make);

    const answer = await refusal(finish(callback));

    expect(answer).toMatchObject({ status: 403, reason: 'sso_refused', message: expect.stringMatching(text) });
  });
});

describe('a callback is refused', () => {
  it.each<[string, (state: string) => string, RegExp]>([
    ['of another issuer (mix-up)', (state) => `code=x&state=${state}&iss=https://evil.example`, /./],
    ['without the issuer, which always names itself', (state) => `code=x&state=${state}`, /./],
    ['with the state of another sign-in', () => `code=x&state=another&iss=${forged.url}/fine`, /./],
    ['without a code', (state) => `state=${state}&iss=${forged.url}/fine`, /./],
    [
      'of a person who declined',
      (state) => `error=access_denied&state=${state}&iss=${forged.url}/fine`,
      /access_denied/,
    ],
  ])('%s', async (_, callback, text) => {
    const { finish, state } = await signInWith(signed);

    const answer = await refusal(finish(callback(state)));

    expect(answer).toMatchObject({ status: 403, reason: 'sso_refused', message: expect.stringMatching(text) });
  });

  it('in another browser, with another verifier or state; the right one still works', async () => {
    const mine = await signInWith(signed);
    const attacker = await startSso(caller, { issuer: 'fine' });

    const refusals = [
      await refusal(mine.finish(mine.callback, { verifier: attacker.verifier })),
      await refusal(attacker.finish(mine.callback, { state: mine.state })),
      await refusal(mine.finish(mine.callback, { state: 'x'.repeat(43) })),
    ];

    expect(refusals).toEqual(Array(3).fill(expect.objectContaining({ status: 400, reason: 'sso_expired' })));
    expect(await refusal(attacker.finish(mine.callback))).toMatchObject({ status: 403, reason: 'sso_refused' });
    expect(await refusal(mine.finish(mine.callback))).toBeUndefined();
  });

  it('of a sign-in that was finished, at once or later', async () => {
    const { finish, callback } = await signInWith(signed);

    const answers = await Promise.all([1, 2, 3].map(() => refusal(finish(callback))));

    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
    expect(await refusal(finish(callback))).toMatchObject({ status: 400, reason: 'sso_expired' });
  });

  it('of a sign-in that has expired', async () => {
    const { finish, callback } = await signInWith(signed);
    await query(await testDb(), sql`update sso_flows set expires_at = now()`);

    expect(await refusal(finish(callback))).toMatchObject({ status: 400, reason: 'sso_expired' });
  });
});

describe('a provider', () => {
  it.each([
    ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'ECONNREFUSED', 'ENOTFOUND'],
  ])('can not be reached: %s', (code) => expect(code).toMatch(UNREACHABLE));

  it.each([
    ['long', 400, 'sso_unavailable', /more than 262144 bytes/],
    ['moved', 400, 'sso_unavailable', /redirects are not followed/],
    ['broken', 400, 'sso_unavailable', /reached/],
    ['page', 400, 'sso_unavailable', /reached/],
    ['another', 403, 'sso_refused', /another address/],
  ])('%s: its discovery is refused with %i %s', async (issuer, status, reason, text) => {
    const answer = await refusal(startSso(caller, { issuer }));

    expect(answer).toMatchObject({ status, reason, message: expect.stringMatching(text) });
  });

  it.each([
    ['many-keys', /more than 262144 bytes/],
    ['inside', /must start with https/],
  ])('%s: its keys are refused with 400 sso_unavailable', async (issuer, text) => {
    const { finish, callback } = await signInWith(signed, issuer);

    const answer = await refusal(finish(callback));

    expect(answer).toMatchObject({ status: 400, reason: 'sso_unavailable', message: expect.stringMatching(text) });
  });

  it('slow: 400 sso_unavailable after the time limit, for all who wait, and other calls are answered meanwhile', async () => {
    expect(listed.issuers).toHaveLength(FAULTY.length + 1);
    const expected = { status: 400, reason: 'sso_unavailable', message: expect.stringMatching(/no answer in time/) };
    expect(await Promise.all(waiting)).toEqual([expected, expected, expected]);
  });

  it('400 sso_unknown_issuer for one that the settings do not name', async () => {
    expect(await refusal(startSso(caller, { issuer: 'nobody' }))).toMatchObject({
      ...{ status: 400, reason: 'sso_unknown_issuer' },
    });
  });
});

describe('403 sso_refused for a proof', () => {
  it.each([
    ['without auth_time', undefined],
    ['by a sign-in of before', -120],
  ])('%s', async (_, age) => {
    const user = await givenUser();
    await insert('identities', { user_id: user.id, issuer: `${forged.url}/fine`, subject: `prover-${user.id}` });
    const signedIn = makeCaller(service.url, await givenToken(user, { proven_at: null }));
    const { url, state, finish } = await startSso(signedIn, { issuer: 'fine', purpose: 'prove' });
    const auth_time = age === undefined ? {} : { auth_time: now() + age };
    const claims = { ...claimsFor(url.searchParams.get('nonce') ?? ''), sub: `prover-${user.id}`, ...auth_time };
    forged.control.token = async () => ({ access_token: 'x', token_type: 'bearer', id_token: await signed(claims) });

    const answer = await refusal(finish(`code=x&state=${state}&iss=${forged.url}/fine`));

    expect(answer).toMatchObject({ status: 403, reason: 'sso_refused', message: expect.stringMatching(/auth_time/) });
  });
});
