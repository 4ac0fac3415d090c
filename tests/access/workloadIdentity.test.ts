import type { ServerResponse } from 'node:http';
import { SignJWT } from 'jose';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { createClient } from '../../client/client.ts';
import { query } from '../../server/database/query.ts';
import { removeSome } from '../../server/database/removal.ts';
import { IDENTITY_REMOVALS } from '../../server/domain/account/exchange.ts';
import { makeGuardedFetch } from '../../server/security/guardedFetch.ts';
import { makeKeySets } from '../../server/security/keySets.ts';
import { makeCaller } from '../harness/caller.ts';
import { errorOf, givenClient } from '../harness/client.ts';
import { eventsOf } from '../harness/events.ts';
import {
  AUDIENCE,
  givenFixedIssuer,
  givenRule,
  givenServedIssuer,
  makeIssuerKey,
  SUBJECT,
  signToken,
} from '../harness/issuer.ts';
import { givenService, testService } from '../harness/service.ts';
import {
  givenCard,
  givenProject,
  givenServiceAccount,
  givenUser,
  givenWorld,
  insert,
  stored,
  testDb,
} from '../harness/world.ts';

/** With its reason. */
const refusalOf = (call: Promise<unknown>) =>
  call.then(
    () => 'not refused',
    ({ message, data }) => ({ message, status: data.httpStatus, reason: data.reason, errors: data.errors }),
  );

const now = () => Math.floor(Date.now() / 1000);
const exchangeAt = async (url: string, token: string, rule_id?: number) =>
  makeCaller(url).rpc.auth.exchange.mutate({ token, rule_id });
const exchange = async (token: string, rule_id?: number) => exchangeAt((await testService()).url, token, rule_id);

/** Each refusal from a network of its own, so that they do not count together. */
let networks = 0;
async function refusedWith(token: string, url?: string) {
  const service = url ?? (await givenTrustingService()).url;
  const response = await fetch(`${service}/api/v1/auth/exchange`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': `198.51.100.${++networks % 250}` },
    body: JSON.stringify({ token }),
  });
  const { message } = (await response.json()) as { message: string };
  return `${response.status} ${message.replace('The token was refused. ', '')}`;
}
let trusting: ReturnType<typeof givenService> | undefined;
const givenTrustingService = () => (trusting ??= givenService({ TRUST_PROXY: '1' }));

describe('auth.exchange', () => {
  it('200 with a credential that acts as the service, in its project and with its scopes, until it ends', async () => {
    const { project, otherProject } = await givenWorld();
    const [card, other] = [await givenCard(project), await givenCard(otherProject)];
    const { id, sign } = await givenFixedIssuer();
    const user = await givenServiceAccount({ project, name: 'Deployer' });
    const rule = await givenRule(id, { user_id: user.id, project_id: project.id, scopes: ['cards:read'] });

    const given = await exchange(await sign());

    expect(given).toMatchObject({
      ...{ user: { id: user.id, name: 'Deployer' }, scopes: ['cards:read'], project_id: project.id, rule_id: rule },
      expires_in_seconds: 900,
    });
    const { rpc } = makeCaller((await testService()).url, given.token);
    expect(await rpc.cards.get.query({ id: card })).toMatchObject({ card: { id: card } });
    expect(await refusalOf(rpc.cards.get.query({ id: other }))).toMatchObject({ status: 403 });
    expect(await refusalOf(rpc.boards.list.query())).toMatchObject({ reason: 'scope_missing' });
    expect(await rpc.keys.self.query()).toMatchObject({ user: { kind: 'service' }, key: { name: 'A rule' } });
    expect(await refusalOf(rpc.keys.rotateSelf.mutate())).toMatchObject({ status: 403, reason: 'key_not_allowed' });

    await query(await testDb(), sql`update api_keys set expires_at = now() where rule_id = ${rule}`);
    expect(await refusalOf(rpc.cards.get.query({ id: card }))).toMatchObject({ status: 401, reason: 'key_ended' });
  });

  it('is audited, and hidden from the keys of the service', async () => {
    const { asSuperadmin } = await givenWorld();
    const { id, sign } = await givenFixedIssuer();
    const user = await givenServiceAccount();
    const rule_id = await givenRule(id, { user_id: user.id });
    const token = await sign();

    const events = await eventsOf(() => exchange(token));

    expect(events).toMatchObject([{ type: 'key.exchanged', user_id: user.id, data: { rule_id, user_id: user.id } }]);
    const key_id = events[0]!.subject_id!;
    const { entries } = await asSuperadmin.rpc.audit.list.query({ user_id: user.id });
    expect(entries).toMatchObject([{ type: 'key.exchanged', subject_id: key_id }]);
    expect(await asSuperadmin.rpc.keys.list.query({ user_id: user.id })).toMatchObject({ keys: [] });
    expect(await refusalOf(asSuperadmin.rpc.keys.revoke.mutate({ id: key_id }))).toMatchObject({ status: 404 });
  });

  it('accepts each algorithm of public keys, an audience among several, and clocks that differ by a minute', async () => {
    const keys = await Promise.all(['RS256', 'PS512', 'ES384', 'EdDSA'].map((alg) => makeIssuerKey(alg)));
    const issuer = `https://several-${now()}.example`;
    const jwks = JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
    const rule_id = await givenRule(await insert('identity_issuers', { issuer, jwks: jwks as never }));
    const claims = { aud: ['https://other.test', AUDIENCE], iat: now() + 50, nbf: now() + 50 };

    for (const key of keys)
      expect(await exchange(await signToken(issuer, key, claims, { typ: 'JWT' }))).toMatchObject({ rule_id });
  });
});

describe('401 with its reason for a token that', () => {
  type Issuer = Awaited<ReturnType<typeof givenFixedIssuer>>;
  const text = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const noRule = (aud: string, sub = SUBJECT) =>
    `401 No rule accepts it. Its aud is ${JSON.stringify([aud])}, its sub ${JSON.stringify(sub)}: compare them, and its other claims, with the rule.`;
  const withClaims = [{ name: 'repository_id', value: '74' }];

  const NO_TOKEN = '401 It is not a JSON Web Token.';
  const UNKNOWN = '401 Its issuer (iss) is not known here: a superadmin adds it.';
  const NO_ISSUER = '401 It has no iss, the issuer.';
  const NO_SUBJECT = '401 Its sub must be text.';
  const SIGNATURE = '401 Its signature is wrong.';
  const KEY = '401 Its key (kid) is not one of its issuer.';
  const ALGORITHM =
    '401 Its algorithm (alg) is not accepted. Accepted are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519.';
  const UNUSABLE = '401 It, or the key of its issuer, can not be used.';
  const TOO_LONG = '401 It is valid for longer than 24 hours (exp - iat): have it issued for less.';
  const future = (claim: string) => `401 Its ${claim} is in the future: check the clock of its issuer.`;

  /** Parts of a token of the issuer, and of another one. */
  const mixed = async ({ sign }: Issuer, mix: (one: string[], other: string[]) => (string | undefined)[]) =>
    mix((await sign()).split('.'), (await sign({ exp: now() + 3000 })).split('.')).join('.');
  const kidOf = async ({ id }: Issuer) => (await stored('identity_issuers', id)).jwks.keys[0].kid;
  const withSharedSecret = async (issuer: Issuer) => {
    const { jwks } = await stored('identity_issuers', issuer.id);
    const secret = new TextEncoder().encode(JSON.stringify(jwks.keys[0]));
    const claims = { iss: issuer.issuer, aud: AUDIENCE, sub: SUBJECT, iat: now(), exp: now() + 60 };
    return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: jwks.keys[0].kid }).sign(secret);
  };
  const withOwnKey = async (issuer: string, header: (key: Awaited<ReturnType<typeof makeIssuerKey>>) => object) => {
    const key = await makeIssuerKey();
    return signToken(issuer, key, {}, header(key));
  };

  const BAD: [string, (issuer: Issuer) => string | Promise<string>, string][] = [
    ['is no token', () => 'nonsense', NO_TOKEN],
    ['has four parts', async ({ sign }) => `${await sign()}.x`, NO_TOKEN],
    ['has no issuer', ({ sign }) => sign({ iss: undefined }), NO_ISSUER],
    ['is of an unknown issuer', ({ sign }) => sign({ iss: 'https://unknown.example' }), UNKNOWN],
    ['has an issuer that can not be stored', ({ sign }) => sign({ iss: 'https://a\0.example' }), NO_ISSUER],
    ['names its issuer with a slash', ({ sign, issuer }) => sign({ iss: `${issuer}/` }), UNKNOWN],
    [
      'was changed',
      (issuer) => mixed(issuer, ([header, , signed], [, payload]) => [header, payload, signed]),
      SIGNATURE,
    ],
    ['has no signature', (issuer) => mixed(issuer, ([header, payload]) => [header, payload, '']), SIGNATURE],
    [
      'is signed with another key of the same name',
      async (issuer) => signToken(issuer.issuer, { ...(await makeIssuerKey()), kid: await kidOf(issuer) }),
      SIGNATURE,
    ],
    ['is signed with an unknown key', ({ issuer }) => withOwnKey(issuer, () => ({})), KEY],
    ['brings its own key', ({ issuer }) => withOwnKey(issuer, ({ jwk }) => ({ jwk })), KEY],
    ['has alg none', (issuer) => mixed(issuer, ([, payload]) => [text({ alg: 'none' }), payload, '']), ALGORITHM],
    ['is signed with the public key as a shared secret', withSharedSecret, ALGORITHM],
    [
      'has critical extensions',
      (issuer) => mixed(issuer, ([, ...rest]) => [text({ alg: 'ES256', crit: ['x'], x: 1 }), ...rest]),
      UNUSABLE,
    ],
    ['is of another type', ({ sign }) => sign({}, { typ: 'logout+jwt' }), '401 Its typ must be JWT.'],
    ['has expired', ({ sign }) => sign({ iat: now() - 400, exp: now() - 61 }), '401 It has expired.'],
    ['never expires', ({ sign }) => sign({ exp: undefined }), '401 It has no exp.'],
    ['expires at a text', ({ sign }) => sign({ exp: '2099-01-01' }), '401 Its exp must be a number.'],
    ['does not say when it was issued', ({ sign }) => sign({ iat: undefined }), '401 It has no iat.'],
    ['lasts too long', ({ sign }) => sign({ exp: now() + 86_460 }), TOO_LONG],
    ['lasts for ever', ({ sign }) => sign({ iat: 0, exp: 1e300 }), '401 It was issued more than 24 hours ago.'],
    ['was issued in the future', ({ sign }) => sign({ iat: now() + 90, exp: now() + 300 }), future('iat')],
    ['is not valid yet', ({ sign }) => sign({ nbf: now() + 90 }), future('nbf')],
    ['has no audience', ({ sign }) => sign({ aud: undefined }), '401 It has no aud.'],
    ['is for another audience', ({ sign }) => sign({ aud: 'https://other.test' }), noRule('https://other.test')],
    ['is for a longer audience', ({ sign }) => sign({ aud: `${AUDIENCE}/x` }), noRule(`${AUDIENCE}/x`)],
    ['is for a shorter audience', ({ sign }) => sign({ aud: 'https://deckhand' }), noRule('https://deckhand')],
    ['has no subject', ({ sign }) => sign({ sub: undefined }), '401 It has no sub.'],
    ['has a subject that is no text', ({ sign }) => sign({ sub: 7 }), NO_SUBJECT],
    ['has a subject that can not be stored', ({ sign }) => sign({ sub: 'a\0' }), NO_SUBJECT],
    ['is of another subject', ({ sign }) => sign({ sub: 'repo:acme/b' }), noRule(AUDIENCE, 'repo:acme/b')],
    ['is of a subject with a wildcard', ({ sign }) => sign({ sub: 'repo:acme/*' }), noRule(AUDIENCE, 'repo:acme/*')],
    ['lacks a claim', ({ sign }) => sign(), noRule(AUDIENCE)],
    ['has another value of a claim', ({ sign }) => sign({ repository_id: '75' }), noRule(AUDIENCE)],
    ['has a claim of another type', ({ sign }) => sign({ repository_id: 74 }), noRule(AUDIENCE)],
    ['has a claim in a list', ({ sign }) => sign({ repository_id: ['74'] }), noRule(AUDIENCE)],
    ['is too long', ({ sign }) => sign({ x: 'x'.repeat(20_000) }), '422 token must be at most 16384 characters.'],
  ];

  it.each(BAD)('%s', async (_, makeToken, expected) => {
    const issuer = await givenFixedIssuer();
    await givenRule(issuer.id, { claims: JSON.stringify(withClaims) as never });

    expect(await refusedWith(await makeToken(issuer))).toBe(expected);
    expect(await exchange(await issuer.sign({ repository_id: '74' }))).toHaveProperty('token');
  });

  it('is right, for a rule that is switched off, deleted, or of a deactivated service, or for several', async () => {
    const { id, sign } = await givenFixedIssuer();
    const user = await givenServiceAccount();
    const rule = await givenRule(id, { user_id: user.id });
    const change = async (statement: ReturnType<typeof sql>) => query(await testDb(), statement);

    await change(sql`update users set is_active = false where id = ${user.id}`);
    expect(await refusedWith(await sign())).toBe(`401 The service account of rule ${rule} is deactivated.`);
    await change(sql`update identity_rules set is_active = false where id = ${rule}`);
    expect(await refusedWith(await sign())).toBe(noRule(AUDIENCE));
    await change(sql`delete from identity_rules where id = ${rule}`);
    expect(await refusedWith(await sign())).toBe(noRule(AUDIENCE));
    const [one, other] = [await givenRule(id), await givenRule(id)];
    expect(await refusedWith(await sign())).toBe(
      `401 Several rules accept it (${one}, ${other}): name one of them as rule_id.`,
    );
    expect(await exchange(await sign(), other)).toMatchObject({ rule_id: other });
    expect(await refusalOf(exchange(await sign(), rule))).toMatchObject({ reason: 'identity_token_invalid' });
  });

  it('was exchanged before, where each works once: also with another signature, and with two calls at once', async () => {
    const { id, sign } = await givenFixedIssuer();
    await givenRule(id, { single_use: true });
    const again = '401 It was exchanged before, and its rule accepts each token once: get another one.';
    const token = await sign();

    const both = await Promise.allSettled([exchange(token), exchange(token)]);

    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await refusedWith(token)).toBe(again);
    expect(await refusedWith(withOtherSignature(token))).toBe(again);
    expect(await exchange(await sign())).toHaveProperty('token');
  });

  /** Of ES256, (r, -s) is a signature of the same text. */
  function withOtherSignature(token: string): string {
    const [header, payload, signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const s = (order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)).toString(16).padStart(64, '0');
    const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s, 'hex')]).toString('base64url');
    return [header, payload, other].join('.');
  }
});

describe('the keys of an issuer', () => {
  const givenIssuerAndService = async () => {
    const issuer = await givenServedIssuer();
    await givenRule(issuer.id);
    return { ...issuer, ...(await givenService({ IDENTITY_ALLOWED_HOSTS: issuer.host, TRUST_PROXY: '1' })) };
  };
  const REDIRECTED = 'It answered 302: redirects are not followed.';
  const unreadable = (why: string) => `401 The keys of the token's issuer could not be read: ${why} Try again later.`;

  it('are fetched once for many calls, and again for a new key, but not for each unknown one', async () => {
    const { state, issuer, sign, url } = await givenIssuerAndService();
    await Promise.all(Array.from({ length: 5 }, async () => exchangeAt(url, await sign())));
    expect(state.asked).toEqual(['/.well-known/openid-configuration', '/jwks']);

    const unknown = await makeIssuerKey();
    for (let tries = 0; tries < 3; tries++)
      expect(await refusedWith(await signToken(issuer, unknown), url)).toBe(
        '401 Its key (kid) is not one of its issuer.',
      );
    expect(state.asked).toHaveLength(2);

    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 });
    try {
      state.keys = [unknown];
      expect(await exchangeAt(url, await sign())).toHaveProperty('token');
      expect(state.asked).toHaveLength(4);
    } finally {
      vi.useRealTimers();
    }
  });

  it('are used while the issuer is down, for a day, and it is not asked all the time', async () => {
    const { state, sign, url } = await givenIssuerAndService();
    await exchangeAt(url, await sign());
    state.instead = { '': (response) => response.writeHead(503).end() };
    try {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
      for (let tries = 0; tries < 3; tries++) expect(await exchangeAt(url, await sign())).toHaveProperty('token');
      expect(state.asked).toHaveLength(3);

      vi.setSystemTime(Date.now() + 86_400_000);
      expect(await refusedWith(await sign(), url)).toBe(unreadable('It answered 503.'));
      state.instead = {};
      vi.setSystemTime(Date.now() + 11_000);
      expect(await exchangeAt(url, await sign())).toHaveProperty('token');
    } finally {
      vi.useRealTimers();
    }
  });

  const many = JSON.stringify({ keys: Array.from({ length: 101 }, (_, at) => ({ kty: 'EC', kid: `${at}` })) });
  type Answer = (response: ServerResponse) => unknown;
  it.each<[string, Answer | Record<string, string>, string]>([
    ['in a set of 300 kB', (to) => to.end(`{"x":"${'x'.repeat(300_000)}"}`), 'Its answer has more than 262144 bytes.'],
    ['in a set of 101', (to) => to.end(many), 'Its key set must have a list of at most 100 keys.'],
    ['in no list', (to) => to.end('{"keys":{}}'), 'Its key set must have a list of at most 100 keys.'],
    ['behind a redirect', (to) => to.writeHead(302, { location: '/x' }).end(), REDIRECTED],
    ['that are no JSON', (to) => to.end('<html>'), 'The connection failed, or it sent no JSON.'],
    ['of another issuer', { issuer: 'https://other.test' }, 'Its discovery document names another issuer.'],
    ['at an inner address', { jwks_uri: 'https://169.254.169.254/x' }, 'The address must be on the internet.'],
    ['at an address without TLS', { jwks_uri: 'http://example.com/x' }, 'The address must start with https://.'],
  ])('are refused %s', async (_, answer, why) => {
    const { state, sign, url } = await givenIssuerAndService();
    if (typeof answer === 'function') state.instead['/jwks'] = answer;
    else state.discovery = answer;

    expect(await refusedWith(await sign(), url)).toBe(unreadable(why));
  });

  it('are refused that do not arrive in time', async () => {
    const { state, id, host, sign } = await givenServedIssuer();
    await givenRule(id);
    state.instead['/jwks'] = (to) => to.write('{');
    const keySets = makeKeySets(makeGuardedFetch({ allowedHosts: [host], timeoutMilliseconds: 1000 }));
    const { url } = await givenService({ IDENTITY_ALLOWED_HOSTS: host, TRUST_PROXY: '1' }, { keySets });

    expect(await refusedWith(await sign(), url)).toBe(unreadable('There was no answer in time.'));
  });

  it('are refused if they are weak', async () => {
    const { state, sign, url } = await givenIssuerAndService();
    const weak = await makeIssuerKey('RS256');
    // 1,024 bits.
    state.keys = [{ ...weak, jwk: { ...weak.jwk, n: 'x'.repeat(171) } }];

    expect(await refusedWith(await sign(), url)).toBe('401 It, or the key of its issuer, can not be used.');
  });

  it('are not asked for at an issuer that is not in IDENTITY_ALLOWED_HOSTS', async () => {
    const { state, id, sign } = await givenServedIssuer();
    await givenRule(id);

    expect(await refusedWith(await sign())).toBe(unreadable('The address must start with https://.'));
    expect(state.asked).toEqual([]);
  });
});

describe('limits', () => {
  it('429 after many refused tokens of a network, but never for a right one, nor for people who sign in', async () => {
    const { url } = await givenService();
    const { id, sign } = await givenFixedIssuer();
    await givenRule(id);
    for (let tries = 0; tries < 10; tries++)
      expect(await refusalOf(exchangeAt(url, await sign({ aud: 'x' })))).toMatchObject({ status: 401 });

    expect(await refusalOf(exchangeAt(url, await sign({ aud: 'x' })))).toMatchObject({
      ...{ status: 429, reason: 'too_many_failures' },
    });
    expect(await exchangeAt(url, await sign())).toHaveProperty('token');
    const { email } = await givenUser();
    const signIn = makeCaller(url).rpc.auth.authenticate.mutate({ email, password: 'wrong' });
    expect(await refusalOf(signIn)).toMatchObject({ status: 401 });
  });

  it('400 for a rule with 1,000 valid credentials; those that ended are removed after a day', async () => {
    const { id, sign } = await givenFixedIssuer();
    const rule_id = await givenRule(id);
    const db = await testDb();
    const { user_id } = await stored('identity_rules', rule_id);
    await query(
      db,
      sql`insert into api_keys (user_id, rule_id, name, scopes, secret_hash, expires_at)
        select ${user_id}, ${rule_id}, 'x', '{}', gen_random_uuid(), now() + interval '1 hour' from generate_series(1, 1000)`,
    );

    expect(await refusalOf(exchange(await sign()))).toMatchObject({ status: 400, reason: 'place_full' });
    await query(db, sql`update api_keys set expires_at = now() - interval '25 hours' where rule_id = ${rule_id}`);
    expect(await exchange(await sign())).toHaveProperty('token');
    for (const removal of IDENTITY_REMOVALS) await removeSome(db, removal, { rows: 5000 });
    const [left] = await query(
      db,
      sql<{ count: number }>`select count(*)::int as count from api_keys where rule_id = ${rule_id}`,
    );
    expect(left).toEqual({ count: 1 });
  });
});

describe('rules and issuers', () => {
  const fields = { audience: AUDIENCE, subject: SUBJECT, lifetime_seconds: 600, name: 'CI' };

  it('are for superadmins who sign in, and give what a key could have', async () => {
    const { asSuperadmin, asKey, asOwner, project, users } = await givenWorld();
    const { id: issuer_id } = await givenFixedIssuer();
    const service = await givenServiceAccount({ project });
    const create = (more: object, { rpc } = asSuperadmin) =>
      rpc.identityRules.create.mutate({ issuer_id, user_id: service.id, scopes: ['cards:read'], ...fields, ...more });

    expect(await create({ project_id: project.id })).toMatchObject({ rule: { project_id: project.id, claims: [] } });
    expect(await refusalOf(create({}, asOwner))).toMatchObject({ status: 403 });
    expect(await refusalOf(create({}, asKey))).toMatchObject({ status: 403, reason: 'key_not_allowed' });
    const refused = { status: 422, reason: 'unknown_reference' };
    expect(await refusalOf(create({ user_id: users.member.id }))).toMatchObject(refused);
    expect(await refusalOf(create({ project_id: (await givenProject()).id }))).toMatchObject(refused);
    const admin = create({ project_id: project.id, scopes: ['admin'] });
    expect(await refusalOf(admin)).toMatchObject({ status: 422, errors: { project_id: expect.anything() } });
    expect(await refusalOf(create({ lifetime_seconds: 59 }))).toMatchObject({ status: 422 });
  });

  it('end their credentials when they change or go, but not for a new name', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const { id: issuer, sign } = await givenFixedIssuer();
    const user = await givenServiceAccount({ project });
    const rule = await givenRule(issuer, { user_id: user.id });
    const credential = async () => makeCaller((await testService()).url, (await exchange(await sign())).token);
    const isRefused = async ({ rpc }: Awaited<ReturnType<typeof credential>>) =>
      rpc.cards.list.query({}).then(
        () => false,
        ({ status }) => status === 401,
      );
    const { identityRules, identityIssuers } = asSuperadmin.rpc;

    const first = await credential();
    expect(await identityRules.update.mutate({ id: rule, name: 'New' })).toMatchObject({ credentials_ended: 0 });
    expect(await isRefused(first)).toBe(false);
    expect(await identityRules.update.mutate({ id: rule, scopes: ['cards:read'] })).toMatchObject({
      credentials_ended: 1,
    });
    expect(await isRefused(first)).toBe(true);

    const second = await credential();
    expect(await identityRules.delete.mutate({ id: rule })).toMatchObject({ credentials_ended: 1 });
    expect(await isRefused(second)).toBe(true);
    await givenRule(issuer, { user_id: user.id });
    const third = await credential();
    expect(await identityIssuers.delete.mutate({ id: issuer })).toMatchObject({ credentials_ended: 1 });
    expect(await isRefused(third)).toBe(true);
    expect(await refusedWith(await sign())).toContain('401 Its issuer (iss) is not known here');
  });

  it('422 for an issuer that can not be asked, and for keys that are not public', async () => {
    const { asSuperadmin } = await givenWorld();
    const create = (input: { issuer: string; jwks?: string; jwks_uri?: string }) =>
      refusalOf(asSuperadmin.rpc.identityIssuers.create.mutate(input));
    const issuer = `https://${now()}.example`;
    const [secret, key] = [{ kty: 'oct', k: 'eA' }, (await makeIssuerKey()).jwk];

    for (const input of [
      ...[{ issuer: 'kubernetes' }, { issuer: `${issuer}?x` }, { issuer: 'http://example.com' }],
      ...[{ issuer: 'https://127.0.0.1' }, { issuer, jwks_uri: 'https://[::1]/jwks' }, { issuer, jwks: '{}' }],
      ...[
        { issuer, jwks: JSON.stringify({ keys: [secret] }) },
        { issuer, jwks: '{"keys":[]}' },
      ],
      { issuer, jwks: JSON.stringify({ keys: [{ ...key, d: 'x' }] }) },
    ])
      expect(await create(input), JSON.stringify(input)).toMatchObject({ status: 422, reason: 'invalid_input' });
  });
});

describe('a client with identityToken', () => {
  const givenExchanging = async (state: Parameters<typeof givenRule>[1] = {}) => {
    const { project } = await givenWorld();
    const { id, sign } = await givenFixedIssuer();
    const scopes = ['cards:read', 'cards:write', 'events:read'];
    const user = await givenServiceAccount({ project });
    const rule = await givenRule(id, { user_id: user.id, scopes, ...state });
    const identityToken = vi.fn(() => sign());
    const { url } = await testService();
    return { rule, sign, identityToken, ...givenClient({ url, identityToken }) };
  };
  const endCredentials = async (rule: number) =>
    query(await testDb(), sql`update api_keys set expires_at = now() where rule_id = ${rule}`);

  it('exchanges once for calls at once, for pages and streams, and again after a 401', async () => {
    const { client, called, rule, identityToken } = await givenExchanging();
    await Promise.all([client.cards.list.query(), client.cards.create.mutate({ title: 'One' })]);
    for await (const card of client.cards.list.each()) expect(card.title).toBe('One');
    expect(identityToken).toHaveBeenCalledTimes(1);
    expect(called().filter((name) => name === 'auth.exchange')).toHaveLength(1);

    const { cursor: after } = await client.events.list.query({ after: 'latest' });
    await endCredentials(rule);
    await Promise.all([client.cards.list.query(), client.cards.create.mutate({ title: 'Two' })]);
    expect(identityToken).toHaveBeenCalledTimes(2);

    await endCredentials(rule);
    const stop = new AbortController();
    for await (const { type } of client.events.follow({ after }, { signal: stop.signal })) {
      expect(type).toBe('card.created');
      stop.abort();
    }
    expect(identityToken).toHaveBeenCalledTimes(3);
  });

  it('exchanges again before the end, and goes on with the old one while that fails', async () => {
    const { client, identityToken } = await givenExchanging({ lifetime_seconds: 60 });
    vi.useFakeTimers({ toFake: ['performance'] });
    try {
      await client.cards.list.query();
      vi.advanceTimersByTime(47_000);
      await client.cards.list.query();
      expect(identityToken).toHaveBeenCalledTimes(1);

      vi.advanceTimersByTime(2000);
      identityToken.mockRejectedValueOnce(new Error('no token now'));
      await client.cards.list.query();
      await client.cards.list.query();
      expect(identityToken).toHaveBeenCalledTimes(3);

      vi.advanceTimersByTime(61_000);
      identityToken.mockRejectedValueOnce(new Error('no token now'));
      await expect(client.cards.list.query()).rejects.toThrow('identityToken');
    } finally {
      vi.useRealTimers();
    }
  });

  it('asks for another token if the first was used up, and throws the refusal of the second', async () => {
    const { client, identityToken, sign } = await givenExchanging({ single_use: true });
    const used = await sign();
    await exchange(used);
    identityToken.mockResolvedValueOnce(used);

    await client.cards.list.query();

    expect(identityToken).toHaveBeenCalledTimes(2);
    const wrong = await givenExchanging({ audience: 'another' });
    const error = await errorOf(wrong.client.cards.list.query());
    expect(error).toMatchObject({ status: 401, reason: 'identity_token_invalid' });
    expect(JSON.stringify(error) + error.stack).not.toContain('eyJ');
  });

  it('takes no token and no sign-in beside it', () => {
    const options = { url: 'http://service.test', identityToken: () => 'x' };
    expect(() => createClient({ ...options, token: 'x' })).toThrow('identityToken replaces token and signIn');
  });
});
