import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { codeAt, givenProtectedUser } from '../harness/codes.ts';
import { eventsOf } from '../harness/events.ts';
import { capture } from '../harness/plans.ts';
import { givenService, testService, withOwnService } from '../harness/service.ts';
import {
  givenKey,
  givenLink,
  givenServiceAccount,
  givenToken,
  givenUser,
  givenWorld,
  insert,
  PASSWORD,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

withOwnService();

const NEW_PASSWORD = 'another long sentence';
const LINK_INVALID = '400 link_invalid';
const newEmail = () => `${randomUUID()}@example.test`;
const nobody = async () => makeCaller((await testService()).url);
const request = async (email: string) => (await nobody()).rpc.account.requestPasswordReset.mutate({ email });
const reset = async (secret: string, new_password = NEW_PASSWORD) =>
  (await nobody()).rpc.account.resetPassword.mutate({ secret, new_password });
const resetLink = ({ id: user_id, email }: TestUser, state: object = {}) =>
  givenLink({ kind: 'password_reset', email, user_id, ...state });
const signIn = async ({ email }: TestUser, password: string, more: object = {}) =>
  (await nobody()).rpc.auth.authenticate.mutate({ email, password, ...more });
const mailsTo = async (email: string) =>
  query(
    await testDb(),
    sql<{
      kind: string;
      state: string;
    }>`select kind, state from mails where lower(email) = lower(${email}) order by id`,
  );
/** As if mails to this address were queued so many minutes earlier. */
const age = async (email: string, minutes: number, state = 'sent') =>
  query(
    await testDb(),
    sql`update mails set state = ${state}, created_at = created_at - make_interval(mins => ${minutes}) where email = ${email}`,
  );

describe('account.requestPasswordReset', () => {
  it('has the same answer, headers and statements for any address', async () => {
    const addresses = {
      known: (await givenUser()).email,
      unknown: newEmail(),
      unconfirmed: (await givenUser({ email_confirmed_at: null })).email,
      deactivated: (await givenUser({ is_active: false })).email,
      service: (await givenServiceAccount({ email: `service-${randomUUID()}@service.invalid` })).email,
    };
    const send = async (email: string) => {
      let answer: Awaited<ReturnType<Awaited<ReturnType<typeof nobody>>['post']>> | undefined;
      const sent = await capture(async () => {
        answer = await (await nobody()).post('/v1/account/request-password-reset', { email });
      });
      const { date, 'x-request-id': id, ...headers } = Object.fromEntries(answer!.headers);
      const left = /ratelimit|retry/;
      return {
        answer: { status: answer!.status, body: answer!.body },
        headers: Object.entries(headers).filter(([name]) => !left.test(name)),
        statements: sent.map(({ text, values }) => [text, values.map((value) => (value === email ? 'email' : value))]),
      };
    };
    await send(newEmail());

    const answers: Awaited<ReturnType<typeof send>>[] = [];
    for (const email of Object.values(addresses)) answers.push(await send(email));
    const [first, ...others] = answers;

    for (const other of others) expect(other).toEqual(first);
    expect(first!.answer).toEqual({
      status: 200,
      body: { error: false, message: 'If an account has this address, a mail is on its way.', data: [] },
    });
    expect(JSON.stringify(first!.statements)).not.toContain('users');
    for (const email of Object.values(addresses))
      expect(await mailsTo(email)).toEqual([{ kind: 'password_reset', state: 'waiting' }]);
  });

  it('400 without a mail server', async () => {
    const { url, app } = await givenService({}, { sendsMail: false });
    const { rpc } = makeCaller(url);

    expect(await reasonOf(rpc.account.requestPasswordReset.mutate({ email: newEmail() }))).toBe(
      '400 mail_not_configured',
    );
    await app.close();
  });

  it('adds no second mail while one waits or is five minutes old, in any case of the address', async () => {
    const email = newEmail();
    await request(email);
    await request(email.toUpperCase());
    expect(await mailsTo(email)).toHaveLength(1);

    await age(email, 60, 'waiting');
    await request(email);
    expect(await mailsTo(email)).toHaveLength(1);

    await age(email, 0);
    await request(email);
    await request(email);
    expect(await mailsTo(email)).toHaveLength(2);
  });

  it('has the mail that waits sent now, after hours without a mail server', async () => {
    const email = newEmail();
    await request(email);
    await query(
      await testDb(),
      sql`update mails set failures = 6, next_attempt_at = now() + interval '8 hours' where email = ${email}`,
    );
    await request(email.toUpperCase());

    const due = sql`select from mails where email = ${email} and next_attempt_at < now() + interval '1 second'`;
    expect(await query(await testDb(), due)).toHaveLength(1);
    expect(await mailsTo(email)).toHaveLength(1);
  });

  it('waits for 25 minutes after six mails in a day, which is less than a link is valid', async () => {
    const email = newEmail();
    for (let count = 0; count < 6; count++) {
      await request(email);
      await age(email, 6);
    }
    await request(email);
    expect(await mailsTo(email)).toHaveLength(6);

    await age(email, 20);
    await request(email);
    expect(await mailsTo(email)).toHaveLength(7);
  });

  it('adds one mail for many requests at once', async () => {
    const email = newEmail();

    await Promise.all(Array.from({ length: 10 }, () => request(email)));

    expect(await mailsTo(email)).toHaveLength(1);
  });

  it('429 after 100 requests of a network in an hour, and not for others', async () => {
    const { url, app } = await givenService({ TRUST_PROXY: '127.0.0.1' });
    const from = (address: string) =>
      makeCaller(url).post(
        '/v1/account/request-password-reset',
        { email: 'a-test@service.invalid' },
        { 'x-forwarded-for': address },
      );

    for (let count = 0; count < 100; count++) expect((await from('10.0.0.1')).status).toBe(200);
    const refused = await from('10.0.0.1');

    expect([refused.status, refused.headers.get('x-error-reason')]).toEqual([429, 'too_many_mails']);
    expect((await from('10.0.0.2')).status).toBe(200);
    await app.close();
  });
});

describe('account.resetPassword', () => {
  it('400 with a link from before a deactivation, also once the user is active again', async () => {
    const { asSuperadmin } = await givenWorld(await testService());
    const user = await givenUser();
    const secret = await resetLink(user);
    await asSuperadmin.rpc.users.deactivate.mutate({ id: user.id });
    await asSuperadmin.rpc.users.activate.mutate({ id: user.id });

    expect(await reasonOf(reset(secret))).toBe(LINK_INVALID);
  });

  it('sets the password, ends sessions and other links, keeps keys, and tells the user', async () => {
    const user = await givenUser();
    const caller = makeCaller((await testService()).url, await givenToken(user));
    await givenKey(user);
    await givenKey(user, { revoked_at: new Date() });
    const [secret, other] = [await resetLink(user), await resetLink(user)];
    const change = await givenLink({ kind: 'address_confirmation', email: newEmail(), user_id: user.id });

    const events = await eventsOf(async () => {
      expect(await reset(secret)).toEqual({ keys_left: 1, identities_left: 0 });
    });

    expect(await reasonOf(caller.rpc.account.whoAmI.query())).toBe('401 credential_invalid');
    expect(await reasonOf(signIn(user, PASSWORD))).toBe('401 wrong_credentials');
    const { token } = await signIn(user, NEW_PASSWORD);
    expect(await reasonOf(reset(other))).toBe(LINK_INVALID);
    const { rpc } = makeCaller((await testService()).url, token);
    expect(await reasonOf(rpc.account.confirmAddress.mutate({ secret: change }))).toBe(LINK_INVALID);
    expect(events).toMatchObject([{ type: 'user.password_changed', subject_id: user.id, user_id: user.id }]);
    expect((await mailsTo(user.email)).at(-1)).toEqual({ kind: 'password_changed', state: 'waiting' });
  });

  it('asks for the second factor as before, on a remembered device, too, and allows no further guesses', async () => {
    const user = await givenProtectedUser();
    const { token } = await signIn(user, PASSWORD, { code: codeAt(0) });
    await query(
      await testDb(),
      sql`update users set totp_failures = 7, totp_blocked_until = now() + interval '1 hour' where id = ${user.id}`,
    );

    await reset(await resetLink(user));

    expect(await reasonOf(signIn(user, NEW_PASSWORD, { token }))).toBe('401 code_required');
    expect(await reasonOf(signIn(user, NEW_PASSWORD, { code: codeAt(1) }))).toBe('429 codes_blocked');
    expect(await stored('users', user.id)).toMatchObject({ totp_failures: 7 });
  });

  it('400 for a link that was used, has expired, is of another kind, or has ended otherwise', async () => {
    const user = await givenUser();
    const used = await resetLink(user);
    await reset(used);
    const of = async (state: object) => resetLink(await givenUser(state));
    const moved = await givenUser();
    const links = {
      used,
      expired: await givenLink({ kind: 'password_reset', email: user.email, user_id: user.id }, -1),
      'of another kind': await resetLink(user, { kind: 'address_confirmation' }),
      unknown: 'x'.repeat(43),
      deactivated: await of({ is_active: false }),
      unconfirmed: await of({ email_confirmed_at: null }),
      service: await resetLink(await givenServiceAccount({ email: newEmail() })),
      'of an address that is nobody’s any more': await resetLink(moved, { email: newEmail() }),
      'not sent to a user': await resetLink(user, { user_id: null }),
    };

    const refused = await refusalOf(reset(links.unknown));

    for (const [name, secret] of Object.entries(links)) {
      expect(await reasonOf(reset(secret)), name).toBe(LINK_INVALID);
      expect(await refusalOf(reset(secret)), name).toEqual(refused);
    }
  });

  it('422 for a weak password, and the link stays', async () => {
    const user = await givenUser();
    const secret = await resetLink(user);

    expect(await reasonOf(reset(secret, 'password1'))).toBe('422 password_weak');
    await reset(secret);
  });

  it('works once of two at the same moment', async () => {
    const user = await givenUser();
    const secret = await resetLink(user);

    const outcomes = await Promise.allSettled([reset(secret, 'first long sentence'), reset(secret, 'second long one')]);

    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const kept = outcomes[0]!.status === 'fulfilled' ? 'first long sentence' : 'second long one';
    await signIn(user, kept);
  });

  it('429 after ten tries with a wrong link and after 100 with any, without the link in the log', async () => {
    const { url, app, logged } = await givenService();
    const { rpc } = makeCaller(url);
    const attempt = (secret: string) => reasonOf(rpc.account.resetPassword.mutate({ secret, new_password: PASSWORD }));

    for (let count = 0; count < 10; count++) expect(await attempt('guessed-secret')).toBe(LINK_INVALID);
    expect(await attempt('guessed-secret')).toBe('429 too_many_failures');
    for (let count = 10; count < 100; count++) expect(await attempt(`guessed-secret-${count}`)).toBe(LINK_INVALID);
    expect(await attempt('guessed-secret-again')).toBe('429 too_many_failures');

    expect(JSON.stringify(logged)).toContain('wrong link');
    expect(JSON.stringify(logged)).not.toContain('guessed-secret');
    await app.close();
  });
});

describe('other ways to a new password', () => {
  it('end open links as well: the own change, and that of a superadmin', async () => {
    const [own, others] = [await givenUser(), await givenUser()];
    const superadmin = await givenUser({ superadmin: true });
    const callerOf = async (user: TestUser) => makeCaller((await testService()).url, await givenToken(user));
    const links = [await resetLink(own), await resetLink(others)];
    await insert('mails', { kind: 'address_confirmation', email: newEmail(), user_id: own.id });

    await (await callerOf(own)).rpc.account.changePassword.mutate({ password: PASSWORD, new_password: NEW_PASSWORD });
    await (await callerOf(superadmin)).rpc.users.update.mutate({ id: others.id, password: NEW_PASSWORD });

    for (const secret of links) expect(await reasonOf(reset(secret))).toBe(LINK_INVALID);
    const waiting = await query(
      await testDb(),
      sql`select from mails where user_id = ${own.id} and kind = 'address_confirmation' and state = 'waiting'`,
    );
    expect(waiting).toEqual([]);
  });
});
