import { randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { query } from '../../server/database/query.ts';
import type { Origin } from '../../server/domain/access/context.ts';
import { logFailure } from '../../server/domain/account/attempt.ts';
import { openSession } from '../../server/domain/account/signIn.ts';
import { endSessions } from '../../server/domain/account/user.ts';
import { tooManyRequests } from '../../shared/errors.ts';
import { type Answer, makeCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep } from '../harness/codes.ts';
import { databaseUrl, givenService, TEST_SECRET, testService, tokens, withOwnService } from '../harness/service.ts';
import { givenToken, givenUser, givenWorld, PASSWORD, stored, type TestUser, testDb } from '../harness/world.ts';

withOwnService();

const AUTHENTICATE = '/v1/authenticate';
const NEEDED = { error: true, message: 'This account is protected by a second factor: a code is needed.' };
const WRONG = { error: true, message: 'The code is wrong, or was used before.' };

holdTimeStep();

async function signIn({ email }: TestUser, more: object = {}): Promise<Answer> {
  return makeCaller((await testService()).url).post(AUTHENTICATE, { email, password: PASSWORD, ...more });
}

const countOf = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status).length;

describe('a code', () => {
  it.each([-1, 0, 1])('200 for the code of %i time steps from now', async (steps) => {
    const user = await givenProtectedUser();

    const answer = await signIn(user, { code: codeAt(steps) });

    expect(answer).toMatchObject({ status: 200, body: { data: { id: user.id, warn_message: '' } } });
  });

  it.each([-2, 2])('401 for the code of %i time steps from now', async (steps) => {
    const answer = await signIn(await givenProtectedUser(), { code: codeAt(steps) });

    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(WRONG);
  });

  it('401 with the wrong password and a right code, which is not used up', async () => {
    const user = await givenProtectedUser();

    const refused = await signIn(user, { password: 'wrong', code: codeAt(0) });

    expect(refused.body).toEqual({ error: true, message: 'The e-mail address or the password is wrong.' });
    expect((await signIn(user, { code: codeAt(0) })).status).toBe(200);
  });

  it('works only once', async () => {
    const user = await givenProtectedUser();

    expect((await signIn(user, { code: codeAt(0) })).status).toBe(200);
    expect((await signIn(user, { code: codeAt(0) })).body).toEqual(WRONG);
    expect((await signIn(user, { code: codeAt(-1) })).body).toEqual(WRONG);
    expect((await signIn(user, { code: codeAt(1) })).status).toBe(200);
  });

  it('works only once when sent 50 times at once', async () => {
    const user = await givenProtectedUser();

    const answers = await Promise.all(Array.from({ length: 50 }, () => signIn(user, { code: codeAt(0) })));

    expect(countOf(answers, 200)).toBe(1);
    expect(countOf(answers, 401) + countOf(answers, 429)).toBe(49);
  });
});

describe('a recovery code', () => {
  it('works only once, and only with is_recovery', async () => {
    const user = await givenProtectedUser();

    expect((await signIn(user, { code: 'a-code' })).body).toEqual(WRONG);
    expect((await signIn(user, { code: 'a-code', is_recovery: true })).status).toBe(200);
    expect((await signIn(user, { code: 'a-code', is_recovery: true })).body).toEqual(WRONG);
    expect((await signIn(user, { code: codeAt(0), is_recovery: true })).body).toEqual(WRONG);
  });

  it('works only once when sent 12 times at once', async () => {
    const user = await givenProtectedUser();

    const answers = await Promise.all(
      Array.from({ length: 12 }, () => signIn(user, { code: 'b-code', is_recovery: true })),
    );

    expect(countOf(answers, 200)).toBe(1);
  });

  it('401 for the recovery code of another user', async () => {
    await givenProtectedUser({ recoveryCodes: ['theirs-alone'] });

    const answer = await signIn(await givenProtectedUser(), { code: 'theirs-alone', is_recovery: true });

    expect(answer.body).toEqual(WRONG);
  });

  it('warns when two or fewer are left', async () => {
    const user = await givenProtectedUser({ recoveryCodes: ['a', 'b', 'c', 'd'] });
    const useUp = async (code: string) => (await signIn(user, { code, is_recovery: true })).body.data;

    expect(await useUp('a')).toMatchObject({ needs_code__regeneration: false, warn_message: '' });
    expect(await useUp('b')).toMatchObject({
      needs_code__regeneration: true,
      warn_message: '2 recovery codes are left: create new ones.',
    });
    expect(await useUp('c')).toMatchObject({ warn_message: 'One recovery code is left: create new ones.' });
    expect(await useUp('d')).toMatchObject({
      needs_code__regeneration: true,
      warn_message: 'No recovery code is left: create new ones.',
    });
  });
});

describe('a remembered device', () => {
  const rememberedToken = async (user: TestUser): Promise<string> =>
    (await signIn(user, { code: codeAt(0) })).body.data.token;

  it('needs no code, and neither do the tokens that it gets later', async () => {
    const user = await givenProtectedUser();

    const again = await signIn(user, { token: await rememberedToken(user) });
    const later = await signIn(user, { token: again.body.data.token, code: 'whatever' });

    expect([again.status, later.status]).toEqual([200, 200]);
  });

  it('is remembered for 30 days after the code, even if it signs in again', async () => {
    const user = await givenProtectedUser();
    const passDays = async (days: number) =>
      query(
        await testDb(),
        sql`update sessions set second_factor_at = second_factor_at - make_interval(days => ${days}) where user_id = ${user.id}`,
      );
    const first = await rememberedToken(user);

    await passDays(29);
    const { token } = (await signIn(user, { token: first })).body.data;
    await passDays(1);

    expect(await signIn(user, { token })).toMatchObject({ status: 401, body: NEEDED });
  });

  it('is remembered after its token has expired', async () => {
    const user = await givenProtectedUser();
    const token = await rememberedToken(user);
    const { header, payload } = jwt.decode(token, { complete: true })!;
    const expired = jwt.sign({ ...(payload as object), iat: 1, exp: 2 }, TEST_SECRET, { keyid: header.kid });

    expect(tokens.read(expired)).toBeUndefined();
    expect((await signIn(user, { token: expired })).status).toBe(200);
  });

  it.each<[string, (token: string, user: TestUser) => Promise<string>]>([
    ['is of another user', async () => rememberedToken(await givenProtectedUser())],
    ['was given without a second factor', (_, user) => givenToken(user)],
    ['is forged', async (token) => token.replace(/[^.]+$/, 'A'.repeat(43))],
    ['is not a token', async () => 'x'],
    [
      'was signed out',
      async (token, user) => {
        await query(await testDb(), sql`update sessions set revoked_at = now() where user_id = ${user.id}`);
        return token;
      },
    ],
    [
      'is 30 days old',
      async (token, user) => {
        await query(
          await testDb(),
          sql`update sessions set second_factor_at = now() - interval '30 days' where user_id = ${user.id}`,
        );
        return token;
      },
    ],
  ])('401 that asks for a code if the token %s', async (_, change) => {
    const user = await givenProtectedUser();
    const token = await change(await rememberedToken(user), user);

    const answer = await signIn(user, { token });

    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(NEEDED);
  });
});

describe('sessions', () => {
  it('are not created if the second factor or the password changed after the check', async () => {
    const user = await givenProtectedUser();
    const db = await testDb();
    const { id, password_hash, totp_secret } = await stored('users', user.id);
    const open = (checked: object) =>
      openSession({ db, services: { tokens } }, { id, password_hash, totp_secret, ...checked }, null);

    expect(await open({ totp_secret: null })).toBeUndefined();
    expect(await open({ totp_secret: 'ANOTHERSECRETXYZ' })).toBeUndefined();
    expect(await open({ password_hash: 'another' })).toBeUndefined();
    expect(await open({})).toMatchObject({ token: expect.any(String) });
  });

  it('that have expired are left to the background by a sign-in', async () => {
    const user = await givenUser();
    const db = await testDb();
    await query(db, sql`insert into sessions (user_id, expires_at) values (${user.id}, now() - interval '1 day')`);

    await signIn(user);

    expect(await query(db, sql`select from sessions where user_id = ${user.id}`)).toHaveLength(2);
  });

  it.skipIf(!databaseUrl)('that another transaction has locked do not block a sign-in', async () => {
    const user = await givenUser();
    const db = await testDb();
    await query(db, sql`insert into sessions (user_id, expires_at) values (${user.id}, now() - interval '1 minute')`);

    const answer = await db.transaction().execute(async (db) => {
      await endSessions(db, user.id);
      return signIn(user);
    });

    expect(answer).toMatchObject({ status: 200 });
  });
});

describe('guessing', () => {
  const BLOCKED = { error: true, message: 'Too many failed attempts. Try again later.' };

  it('429 after 10 failures for this account and address, but not for other accounts or addresses', async () => {
    const asNobody = makeCaller((await givenService({ TRUST_PROXY: '127.0.0.1' })).url);
    const [user, other] = [await givenUser(), await givenUser()];
    const from = (address: string, email: string, password: string) =>
      asNobody.post(AUTHENTICATE, { email, password }, { 'x-forwarded-for': address });

    for (let failed = 0; failed < 10; failed++) expect((await from('10.0.0.1', user.email, 'x')).status).toBe(401);
    const refused = await from('10.0.0.1', user.email.toUpperCase(), PASSWORD);

    expect(refused.status).toBe(429);
    expect(refused.body).toEqual(BLOCKED);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(800);
    expect((await from('10.0.0.1', other.email, PASSWORD)).status).toBe(200);
    expect((await from('10.0.0.2', user.email, PASSWORD)).status).toBe(200);
  });

  it.each([
    ['i', '\u0130'],
    ['\u03c3', '\u03a3'],
  ])(
    '429 after 10 failures with %s or %s in the address, which the database compares as equal',
    async (small, capital) => {
      const asNobody = makeCaller((await givenService()).url);
      const mailbox = randomUUID();
      await givenUser({ email: `${mailbox}a${small}@example.test` });
      const signIn = (letter: string, password: string) =>
        asNobody.post(AUTHENTICATE, { email: `${mailbox}a${letter}@example.test`, password });

      for (let failed = 0; failed < 10; failed++)
        expect((await signIn(failed % 2 ? small : capital, 'x')).status).toBe(401);

      expect((await signIn(small, PASSWORD)).status).toBe(429);
      expect((await signIn(capital, PASSWORD)).status).toBe(429);
    },
  );

  it('429 after 10 failures for an unknown account, too', async () => {
    const asNobody = makeCaller((await givenService()).url);
    const attempt = () => asNobody.post(AUTHENTICATE, { email: 'nobody@example.test', password: 'x' });

    for (let failed = 0; failed < 10; failed++) expect((await attempt()).status).toBe(401);

    expect((await attempt()).body).toEqual(BLOCKED);
  });

  it('counts wrong recovery codes, but not sign-ins without a code', async () => {
    const { url } = await givenService();
    const user = await givenProtectedUser();
    const attempt = (more: object) =>
      makeCaller(url).post(AUTHENTICATE, { email: user.email, password: PASSWORD, ...more });

    for (let asked = 0; asked < 11; asked++) expect((await attempt({})).status).toBe(401);
    for (let failed = 0; failed < 10; failed++)
      expect((await attempt({ code: 'wrong', is_recovery: true })).status).toBe(401);

    expect((await attempt({ code: codeAt(0) })).body).toEqual(BLOCKED);
  });

  it('429 also with the right password if too many others have failed while it waited for its turn', async () => {
    let asked = 0;
    const mustBeAllowed = async () => {
      if (++asked === 2) throw tooManyRequests('Too many failed attempts.', 900, 'too_many_failures');
      return { hasFailed: true };
    };
    const { url } = await givenService({}, { attemptLimit: { mustBeAllowed, countFailure: async () => {} } });
    const { email } = await givenUser();

    const answer = await makeCaller(url).post(AUTHENTICATE, { email, password: PASSWORD });

    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '900']);
  });

  it('gets no more tries from 30 attempts at once', async () => {
    const { url } = await givenService();
    const user = await givenUser();

    const answers = await Promise.all(
      Array.from({ length: 30 }, () => makeCaller(url).post(AUTHENTICATE, { email: user.email, password: 'x' })),
    );

    expect(countOf(answers, 401)).toBeLessThanOrEqual(12);
    expect(countOf(answers, 401) + countOf(answers, 429)).toBe(30);
  });
});

describe('guessing codes with the right password', () => {
  const WAIT = { error: true, message: 'Too many wrong codes. Wait, or use a recovery code.' };
  const HOURS = 60 * 60;

  /** Each attempt comes from another network, alternating between two nodes. */
  const givenAttempts = async (user: TestUser) => {
    const nodes = [await givenService({ TRUST_PROXY: '127.0.0.1' }), await givenService({ TRUST_PROXY: '127.0.0.1' })];
    let count = 0;
    return (more: object = {}) => {
      const from = { 'x-forwarded-for': `10.0.${count >> 8}.${count & 255}` };
      const { url } = nodes[count++ % 2]!;
      return makeCaller(url).post(AUTHENTICATE, { email: user.email, password: PASSWORD, ...more }, from);
    };
  };
  const endWait = async ({ id }: TestUser) =>
    query(await testDb(), sql`update users set totp_blocked_until = now() where id = ${id}`);
  const waitOf = (answer: Answer) => Number(answer.headers.get('retry-after'));

  it('429 after 5 wrong codes from any address, also for a right one, which works after the wait', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);

    for (let failed = 0; failed < 5; failed++) expect((await attempt({ code: '000000' })).body).toEqual(WRONG);
    const refused = await attempt({ code: codeAt(0) });

    expect(refused.status).toBe(429);
    expect(refused.body).toEqual(WAIT);
    expect(waitOf(refused)).toBeGreaterThan(30);
    expect(waitOf(refused)).toBeLessThanOrEqual(60);
    await endWait(user);
    expect((await attempt({ code: codeAt(0) })).status).toBe(200);
  });

  it('doubles the wait after each wrong code, up to 6 hours', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);
    for (let failed = 0; failed < 5; failed++) await attempt({ code: '000000' });

    for (const seconds of [60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 6 * HOURS, 6 * HOURS]) {
      const wait = waitOf(await attempt({ code: '000000' }));
      expect(wait).toBeLessThanOrEqual(seconds);
      expect(wait).toBeGreaterThan(seconds - 30);
      await endWait(user);
      expect((await attempt({ code: '000000' })).status).toBe(401);
    }
  });

  it('starts counting from zero after a right code', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);

    for (let failed = 0; failed < 4; failed++) expect((await attempt({ code: '000000' })).status).toBe(401);
    expect((await attempt({ code: codeAt(0) })).status).toBe(200);

    expect(await stored('users', user.id)).toMatchObject({ totp_failures: 0, totp_blocked_until: null });
    for (let failed = 0; failed < 5; failed++) expect((await attempt({ code: '000000' })).status).toBe(401);
    expect((await attempt({ code: codeAt(1) })).status).toBe(429);
  });

  it('gets no more tries from 50 attempts at once', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);

    const answers = await Promise.all(Array.from({ length: 50 }, () => attempt({ code: '000000' })));

    expect(countOf(answers, 401)).toBe(5);
    expect(countOf(answers, 429)).toBe(45);
    expect(await stored('users', user.id)).toMatchObject({ totp_failures: 5 });
  });

  it('does not block remembered devices or recovery codes, and a recovery code ends the wait', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);
    const { token } = (await attempt({ code: codeAt(-1) })).body.data;
    for (let failed = 0; failed < 5; failed++) await attempt({ code: '000000' });

    expect((await attempt({ token })).status).toBe(200);
    expect((await attempt({ code: codeAt(0) })).status).toBe(429);
    expect((await attempt({ code: 'wrong', is_recovery: true })).body).toEqual(WRONG);
    expect((await attempt({ code: 'a-code', is_recovery: true })).status).toBe(200);
    expect((await attempt({ code: codeAt(0) })).status).toBe(200);
  });

  it('can be neither blocked nor detected without the password', async () => {
    const user = await givenProtectedUser();
    const attempt = await givenAttempts(user);
    const withoutPassword = { password: 'wrong', code: '000000' };

    for (let failed = 0; failed < 7; failed++) expect((await attempt(withoutPassword)).status).toBe(401);
    expect(await stored('users', user.id)).toMatchObject({ totp_failures: 0, totp_blocked_until: null });
    const before = await attempt(withoutPassword);
    for (let failed = 0; failed < 5; failed++) await attempt({ code: '000000' });

    expect(await attempt(withoutPassword)).toMatchObject({ status: 401, body: before.body });
    expect((await attempt({})).body).toEqual(NEEDED);
  });

  it('starts counting from zero when a superadmin sets a new password, since the old one has leaked', async () => {
    const user = await givenProtectedUser();
    const { asSuperadmin } = await givenWorld();
    const attempt = await givenAttempts(user);
    for (let failed = 0; failed < 5; failed++) await attempt({ code: '000000' });

    await asSuperadmin.rpc.users.update.mutate({ id: user.id, name: 'Another name' });
    expect((await attempt({ code: codeAt(0) })).status).toBe(429);
    await asSuperadmin.rpc.users.update.mutate({ id: user.id, password: 'of nobody else' });

    expect((await attempt({ code: codeAt(0), password: 'of nobody else' })).status).toBe(200);
  });
});

describe('a failed sign-in', () => {
  const givenAttempts = async (email: string) => {
    const { url, logged } = await givenService({ TRUST_PROXY: '127.0.0.1' });
    const attempt = (more: object) =>
      makeCaller(url).post(
        AUTHENTICATE,
        { email, password: PASSWORD, ...more },
        { 'x-forwarded-for': '2001:DB8:0::7' },
      );
    const reasons = () =>
      logged.filter(({ event }) => event === 'authentication_failed').map(({ reason, level }) => `${level} ${reason}`);
    return { attempt, logged, reasons };
  };

  it('is logged with account, address and reason, and without secrets', async () => {
    const user = await givenProtectedUser();
    const { attempt, logged, reasons } = await givenAttempts(user.email);

    await attempt({ password: 'hush hush' });
    await attempt({ code: 'hushed' });
    await attempt({ code: 'hush-hush', is_recovery: true });
    await attempt({ email: 'Nobody@example.test' });

    expect(reasons()).toEqual(['40 wrong password', '40 wrong code', '40 wrong code', '40 unknown account']);
    const [first, , , last] = logged.filter(({ event }) => event === 'authentication_failed');
    expect(first).toMatchObject({ account: user.email, address: '2001:db8::7', reqId: expect.any(String) });
    expect(last).toMatchObject({ account: 'Nobody@example.test', address: '2001:db8::7' });
    expect(Object.keys(first!).slice(-5)).toEqual(['event', 'reason', 'address', 'account', 'msg']);
    expect(JSON.stringify(logged)).not.toContain('hush');
    expect(JSON.stringify(logged)).not.toContain(PASSWORD);
  });

  it('is logged with an account that can not fake the rest of the line, however long it is', () => {
    const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const origin: Origin = { surface: 'rest', requestId: null, address: '10.0.0.1', serviceUrl: '' };

    logFailure({ log, origin }, `a"\\\u202e\n${'x'.repeat(400)}`, 'blocked');

    expect(log.warn.mock.calls[0]![0]).toMatchObject({ address: '10.0.0.1', account: `a????${'x'.repeat(315)}` });
  });

  it('is logged as blocked while attempts are blocked', async () => {
    const user = await givenProtectedUser();
    const { attempt, reasons } = await givenAttempts(user.email);
    for (let failed = 0; failed < 5; failed++) await attempt({ code: '000000' });

    await attempt({ code: codeAt(0) });
    for (let failed = 0; failed < 5; failed++) await attempt({ password: 'wrong' });
    await attempt({ password: 'wrong' });

    expect(reasons().slice(5)).toEqual([
      '40 blocked',
      ...Array.from({ length: 5 }, () => '40 wrong password'),
      '40 blocked',
    ]);
  });

  it('is not logged if only the code was missing; neither is a successful one', async () => {
    const user = await givenProtectedUser();
    const { attempt, reasons } = await givenAttempts(user.email);

    expect((await attempt({})).status).toBe(401);
    expect((await attempt({ code: codeAt(0) })).status).toBe(200);

    expect(reasons()).toEqual([]);
  });
});
