import { once } from 'node:events';
import { request } from 'node:http';
import jwt from 'jsonwebtoken';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { findCaller } from '../../server/domain/access/caller.ts';
import { hashPassword } from '../../server/security/passwords.ts';
import { type Answer, makeCaller, refusalOf } from '../harness/caller.ts';
import { givenService, TEST_SECRET, testService, tokens } from '../harness/service.ts';
import { givenProject, givenToken, givenUser, givenWorld, PASSWORD, type TestUser, testDb } from '../harness/world.ts';

const AUTHENTICATE = '/v1/authenticate';
const LIST = '/services/operations/v1/operations/boards/list';

/** For 60 password checks at their real cost. */

const nobody = async () => makeCaller((await testService()).url);

describe('POST /v1/authenticate', () => {
  it.each(['/api/v1/authenticate', '/trpc/auth.authenticate'])('forbids caching: %s', async (path) => {
    const { email } = await givenUser();
    const sent = { email, password: PASSWORD };

    const { status, headers } = await fetch((await testService()).url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(path.startsWith('/api') ? sent : { json: sent }),
    });

    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('401 with the same text for a wrong password, an unknown address and a deactivated user', async () => {
    const [user, inactive] = [await givenUser(), await givenUser({ is_active: false })];
    const attempts = [
      { email: user.email, password: `${PASSWORD} ` },
      { email: user.email, password: PASSWORD.toUpperCase() },
      { email: 'nobody@example.test', password: PASSWORD },
      { email: inactive.email, password: PASSWORD },
    ];

    for (const attempt of attempts) {
      const answer = await (await nobody()).post(AUTHENTICATE, attempt);
      expect(answer.status).toBe(401);
      expect(answer.body).toEqual({ error: true, message: 'The e-mail address or the password is wrong.' });
    }
  });

  it('400 for a password that makes the body too large', async () => {
    const answer = await (await nobody()).post(AUTHENTICATE, {
      email: 'a@b.test',
      password: 'x'.repeat(1024 * 1024),
    });

    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({ error: true, message: 'The body is too large: at most 1 MiB.' });
  });

  it('401, not 422, for a wrong password with any characters, up to 1000 of them', async () => {
    const user = await givenUser();

    for (const password of ['a\0b', '\ud800', 'x'.repeat(1000)]) {
      expect((await (await nobody()).post(AUTHENTICATE, { email: user.email, password })).status).toBe(401);
    }
  });

  it('200 for newcomers while addresses that failed lately fill the queue', async () => {
    const { url } = await givenService({ TRUST_PROXY: '1' });
    const slow = await givenUser({ password_hash: await hashPassword(PASSWORD, 'a test') });
    const from = (address: string, { email }: TestUser, password: string) =>
      makeCaller(url).post(AUTHENTICATE, { email, password }, { 'x-forwarded-for': address });
    const addresses = Array.from({ length: 60 }, (_, at) => `10.3.0.${at}`);
    const quick = await givenUser();
    for (const address of addresses) expect((await from(address, quick, 'wrong')).status).toBe(401);

    const guesses = addresses.map((address) => from(address, slow, 'wrong'));
    // The first 429 comes when the queue is full.
    await Promise.race([Promise.all(guesses), ...guesses.map(onlyIfRefused)]);
    const newcomers = await Promise.all(Array.from({ length: 8 }, (_, at) => from(`10.4.0.${at}`, slow, PASSWORD)));

    expect(newcomers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    await Promise.all(guesses);
  });

  const onlyIfRefused = async (guess: Promise<Answer>) => {
    if ((await guess).status !== 429) await new Promise(() => {});
  };

  it('429 when too many password checks are queued, and later it works again', async () => {
    const asNobody = await nobody();
    const user = await givenUser({ password_hash: await hashPassword(PASSWORD, 'a test') });
    const attempt = () => asNobody.post(AUTHENTICATE, { email: user.email, password: PASSWORD });

    const answers = await Promise.all(Array.from({ length: 70 }, attempt));

    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]!.body).toEqual({ error: true, message: 'Too many sign-ins at once. Try again shortly.' });
    expect(refused[0]!.headers.get('retry-after')).toBe('2');
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(70 - refused.length);
    expect((await attempt()).status).toBe(200);
  });
});

describe('a token', () => {
  const listWith = async (authorization: string) => (await nobody()).post(LIST, undefined, { authorization });
  const REFUSED = { error: true, message: 'Sign in first, and send the token as "Authorization: Bearer …".' };
  const WRONG = { error: true, message: 'This token is wrong, or its session has ended. Sign in again.' };
  it('401 when it is missing, malformed, forged, foreign or expired', async () => {
    const { asMember } = await givenWorld();
    const token = asMember.token!;
    const { header, payload } = jwt.decode(token, { complete: true })!;
    const keyid = header.kid!;
    const { sub: subject, jti: jwtid } = payload as { sub: string; jti: string };
    const claims = { issuer: 'deckhand', audience: 'deckhand-api', subject, jwtid, expiresIn: 60 } as const;
    const [head, body, signature] = token.split('.');
    const refused = [
      '',
      'Bearer',
      'Bearer ',
      token,
      `Basic ${token}`,
      'Bearer x.y.z',
      `Bearer ${token}x`,
      `Bearer ${head}.${body}.`,
      `Bearer ${head}.${Buffer.from(JSON.stringify({ ...(payload as object), sub: '1' })).toString('base64url')}.${signature}`,
      `Bearer ${Buffer.from(JSON.stringify({ ...header, alg: 'none' })).toString('base64url')}.${body}.`,
      `Bearer ${jwt.sign({}, 'another secret of enough length, really', { ...claims, keyid })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, claims)}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid: 'nothing' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid: '__proto__' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, algorithm: 'HS512' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, issuer: 'another' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, audience: 'another' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, expiresIn: -1 })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, subject: 'x' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, jwtid: 'x' })}`,
      `Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid, jwtid: '5f364aca-a792-4f75-8861-b325bd5212ed' })}`,
    ];

    // Each of them has exactly one fault: a token without faults is accepted.
    expect((await listWith(`Bearer ${jwt.sign({}, TEST_SECRET, { ...claims, keyid })}`)).status).toBe(200);

    for (const authorization of refused) {
      const answer = await listWith(authorization);
      expect(answer.status, authorization).toBe(401);
      expect(answer.body).toEqual(/^Bearer ./.test(authorization) ? WRONG : REFUSED);
    }
    expect(await refusalOf(makeCaller((await testService()).url, 'x').rpc.boards.list.query())).toEqual({
      status: 401,
      message: WRONG.message,
    });
  });

  it('401 at once when its session is revoked, expired or deleted, or its user deactivated', async () => {
    const db = await testDb();
    const ends = [
      (id: number) => sql`update sessions set revoked_at = now() where user_id = ${id}`,
      (id: number) => sql`update sessions set expires_at = now() where user_id = ${id}`,
      (id: number) => sql`update users set is_active = false where id = ${id}`,
      (id: number) => sql`delete from sessions where user_id = ${id}`,
    ];

    for (const end of ends) {
      const user = await givenUser({ project: await givenProject() });
      const authorization = `Bearer ${await givenToken(user)}`;
      expect((await listWith(authorization)).status).toBe(200);
      await query(db, end(user.id));
      expect((await listWith(authorization)).status).toBe(401);
    }
  });

  it.each(['/api/services/operations/v1/operations/tags/create', '/trpc/tags.create'])(
    '401 when it is revoked between the headers and the body of POST %s',
    async (path) => {
      const db = await testDb();
      const identified = Promise.withResolvers<void>();
      const service = await givenService(
        {},
        { findCaller: (...call) => findCaller(db, ...call).finally(identified.resolve) },
      );
      const { asMember, users } = await givenWorld(service);
      const headers = { authorization: `Bearer ${asMember.token}`, 'content-type': 'application/json' };
      const sent = request(`${service.url}${path}`, { method: 'POST', headers });
      sent.flushHeaders();
      await identified.promise;

      await query(db, sql`update sessions set revoked_at = now() where user_id = ${users.member.id}`);
      sent.end('{"name":"x","json":{"name":"x"}}');
      const [answer] = await once(sent, 'response');

      expect(answer.statusCode).toBe(401);
    },
  );

  it('401 when its session belongs to another user', async () => {
    const [user, other] = [await givenUser({ project: await givenProject() }), await givenUser()];
    const { sessionId } = tokens.read(await givenToken(other))!;

    expect((await listWith(`Bearer ${tokens.sign({ userId: user.id, sessionId })}`)).status).toBe(401);
  });

  it('403 for a user who belongs to no project', async () => {
    const { url } = await givenService();
    const answer = await makeCaller(url, await givenToken(await givenUser())).post(LIST);

    expect(answer).toMatchObject({ status: 403, body: { error: true } });
  });
});
