import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep } from '../harness/codes.ts';
import { eventsOf } from '../harness/events.ts';
import { databaseUrl, givenService, TEST_SECRET, testService, withOwnService } from '../harness/service.ts';
import {
  givenKey,
  givenLink,
  givenProject,
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

holdTimeStep();

const asUser = async (user: TestUser): Promise<TestCaller> =>
  makeCaller((await testService()).url, await givenToken(user));

const signIn = async ({ email }: TestUser, more: object = {}) =>
  makeCaller((await testService()).url).post('/v1/authenticate', { email, password: PASSWORD, ...more });

/** The same, and runs `meanwhile` while the password of the call is being checked. */
const asUserWhile = async (user: TestUser, meanwhile: () => Promise<unknown>): Promise<TestCaller> => {
  let asked = 0;
  const mustBeAllowed = async () => {
    if (++asked === 2) await meanwhile();
    return { hasFailed: false };
  };
  const { url } = await givenService({}, { attemptLimit: { mustBeAllowed, countFailure: async () => {} } });
  return makeCaller(url, await givenToken(user));
};

const isSignedIn = (caller: TestCaller) =>
  caller.rpc.account.whoAmI.query().then(
    () => true,
    (error) => error.data.httpStatus !== 401,
  );

describe('account.whoAmI', () => {
  it('returns the account of the caller, without secrets', async () => {
    const user = await givenProtectedUser();

    const { account } = await (await asUser(user)).rpc.account.whoAmI.query();

    expect(account).toEqual({
      id: user.id,
      name: 'A user',
      email: user.email,
      email_confirmed_at: expect.any(Date),
      kind: 'person',
      language: null,
      superadmin: false,
      superadmin_billing: false,
      enable_ai: false,
      is_active: true,
      default_project_id: null,
      rate_limit_per_minute: null,
      has_password: true,
      has_second_factor: true,
      erased_at: null,
      recovery_codes_left: 3,
      created_at: expect.any(Date),
      updated_at: expect.any(Date),
    });
  });
});

describe('signing out', () => {
  it('ends only this session', async () => {
    const user = await givenUser();
    const [here, elsewhere] = [await asUser(user), await asUser(user)];

    await here.rpc.account.signOut.mutate();

    expect([await isSignedIn(here), await isSignedIn(elsewhere)]).toEqual([false, true]);
  });

  it('everywhere ends all sessions of the user, and of nobody else', async () => {
    const [user, other] = [await givenUser(), await givenUser()];
    const [here, elsewhere, somebodyElse] = [await asUser(user), await asUser(user), await asUser(other)];

    await here.rpc.account.signOutEverywhere.mutate();

    expect([await isSignedIn(here), await isSignedIn(elsewhere)]).toEqual([false, false]);
    expect(await isSignedIn(somebodyElse)).toBe(true);
  });

  it('everywhere says how many API keys are still valid, and revokes them if asked to', async () => {
    const [user, other] = [await givenUser(), await givenUser()];
    const past = new Date('2020-01-01');
    for (const ended of [{ revoked_at: past }, { expires_at: past }]) await givenKey(user, ended);
    const { id } = await givenKey(user);
    const { id: ofOther } = await givenKey(other);
    const signOut = async (input?: { revoke_keys: boolean }) =>
      (await asUser(user)).rpc.account.signOutEverywhere.mutate(input);

    expect(await signOut()).toEqual({ keys_left: 1, identities_left: 0 });
    expect((await stored('api_keys', id)).revoked_at).toBeNull();
    expect(await signOut({ revoke_keys: true })).toEqual({ keys_left: 0, identities_left: 0 });
    expect((await stored('api_keys', id)).revoked_at).not.toBeNull();
    expect((await stored('api_keys', ofOther)).revoked_at).toBeNull();
  });
});

describe('an identity that a thief has linked in a stolen session', () => {
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
  const linked = async ({ id: user_id }: TestUser, days: number) =>
    insert('identities', {
      ...{ user_id, issuer: `https://id.example/${user_id}`, subject: `${days} days`, created_at: daysAgo(days) },
    });

  /** The thief has also signed in with each, and the owner with the password since. */
  async function givenStolen(state: object = {}) {
    const user = await givenUser(state);
    await linked(user, 9);
    const foreign = [await linked(user, 3), await linked(user, 1)];
    for (const identity_id of foreign) await givenToken(user, { identity_id });
    await givenToken(user);
    return { user, foreign };
  }
  const subjectsOf = async ({ id }: TestUser) => {
    const rows = await (await testDb()).selectFrom('identities').select('subject').where('user_id', '=', id).execute();
    return rows.map(({ subject }) => subject).toSorted();
  };
  const NEW_PASSWORD = 'another fine passphrase';
  const asSuperadmin = async () => (await givenWorld(await testService())).asSuperadmin;

  it.each<[string, (user: TestUser) => Promise<unknown>]>([
    ['account.signOutEverywhere', async (user) => (await asUser(user)).rpc.account.signOutEverywhere.mutate({})],
    [
      'account.changePassword',
      async (user) =>
        (await asUser(user)).rpc.account.changePassword.mutate({ password: PASSWORD, new_password: NEW_PASSWORD }),
    ],
    [
      'account.resetPassword',
      async ({ id, email }) =>
        makeCaller((await testService()).url).rpc.account.resetPassword.mutate({
          secret: await givenLink({ kind: 'password_reset', email, user_id: id }),
          new_password: NEW_PASSWORD,
        }),
    ],
    ['users.signOut', async ({ id }) => (await asSuperadmin()).rpc.users.signOut.mutate({ id })],
    [
      'users.update with a password',
      async ({ id }) => (await asSuperadmin()).rpc.users.update.mutate({ id, password: NEW_PASSWORD }),
    ],
  ])('is unlinked by %s, and one from before stays', async (_, call) => {
    const { user, foreign } = await givenStolen();

    const events = await eventsOf(async () => {
      const { identities_left = 1 } = ((await call(user)) ?? {}) as { identities_left?: number };
      expect(identities_left).toBe(1);
    });

    expect(await subjectsOf(user)).toEqual(['9 days']);
    const unlinked = events.filter(({ type }) => type === 'identity.unlinked');
    expect(unlinked.map(({ subject_id }) => subject_id).toSorted()).toEqual(foreign.toSorted());
  });

  it.each([
    ['of the calling session', true, '1 days'],
    ['linked first', false, '3 days'],
  ])('stays if it is the only way to sign in: the one %s', async (_, isCalling, stays) => {
    const user = await givenUser({ password_hash: null });
    await linked(user, 3);
    const identity_id = await linked(user, 1);
    const token = await givenToken(user, isCalling ? { identity_id } : {});

    await makeCaller((await testService()).url, token).rpc.account.signOutEverywhere.mutate({});

    expect(await subjectsOf(user)).toEqual([stays]);
  });
});

describe('what a call makes while its session ends', () => {
  // The embedded database has one connection, so that calls wait for each other.
  it.skipIf(!databaseUrl)('is refused: an API key, also if the call has begun before', async () => {
    const user = await givenUser();
    const [thief, owner] = [await asUser(user), await asUser(user)];
    const db = await testDb();
    const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const holding = db.transaction().execute(async (transaction) => {
      await query(transaction, sql`select from users where id = ${user.id} for no key update`);
      held.resolve();
      await release.promise;
    });
    await held.promise;
    const made = refusalOf(thief.rpc.keys.create.mutate({ name: 'CI', scopes: ['boards:read'] }));
    const isWaiting = sql`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await query(db, isWaiting)).length).toBeGreaterThan(0);
    await owner.rpc.account.signOutEverywhere.mutate({ revoke_keys: true });
    release.resolve();
    await holding;

    expect(await made).toMatchObject({ status: 401 });
    expect(await db.selectFrom('api_keys').select('id').where('user_id', '=', user.id).execute()).toEqual([]);
  });
});

describe('account.changePassword', () => {
  it('ends every session and returns a token for a new one', async () => {
    const user = await givenUser({ project: await givenProject() });
    const [here, elsewhere] = [await asUser(user), await asUser(user)];

    const { token } = await here.rpc.account.changePassword.mutate({ password: PASSWORD, new_password: 'another one' });

    expect([await isSignedIn(here), await isSignedIn(elsewhere)]).toEqual([false, false]);
    expect(await isSignedIn(makeCaller((await testService()).url, token))).toBe(true);
    expect((await signIn(user)).status).toBe(401);
    expect((await signIn(user, { password: 'another one' })).status).toBe(200);
  });

  it('says how many API keys are still valid, and revokes them if asked to', async () => {
    const user = await givenUser();
    await givenKey(user);
    const change = async (more: object) =>
      (await asUser(user)).rpc.account.changePassword.mutate({ password: PASSWORD, new_password: PASSWORD, ...more });

    expect((await change({})).keys_left).toBe(1);
    expect((await change({ revoke_keys: true })).keys_left).toBe(0);
  });

  it('422 for a wrong password, and nothing changes', async () => {
    const user = await givenUser();
    const caller = await asUser(user);

    const change = caller.rpc.account.changePassword.mutate({ password: 'wrong', new_password: 'another one' });

    expect(await refusalOf(change)).toMatchObject({ status: 422, errors: { password: ['password is wrong.'] } });
    expect(await isSignedIn(caller)).toBe(true);
    expect((await signIn(user)).status).toBe(200);
  });

  it.each([
    ['1234567', 'new_password must be at least 8 characters.'],
    ['🔒🔒🔒🔒', 'new_password must be at least 8 characters.'],
    ['x'.repeat(1001), 'new_password must be at most 1000 characters.'],
    ['', 'new_password is required.'],
    ['Trustno1', 'new_password is one of the most common passwords: choose one that nobody would guess.'],
  ])('422 for %j as the new password', async (new_password, message) => {
    const change = (await asUser(await givenUser())).rpc.account.changePassword.mutate({
      password: PASSWORD,
      new_password,
    });

    expect((await refusalOf(change)).errors).toMatchObject({ new_password: expect.arrayContaining([message]) });
  });

  it('422 when the new password is the e-mail address or its local part', async () => {
    const user = await givenUser();
    const change = (new_password: string) => async () =>
      refusalOf((await asUser(user)).rpc.account.changePassword.mutate({ password: PASSWORD, new_password }));

    for (const attempt of [change(user.email), change(user.email.split('@')[0]!)]) {
      expect((await attempt()).errors).toEqual({
        new_password: ['new_password must not be the e-mail address or the name.'],
      });
    }
    expect((await signIn(user)).status).toBe(200);
  });

  it('401 if the user is deactivated during the call, and nothing changes', async () => {
    const user = await givenUser();
    const { asSuperadmin } = await givenWorld();
    const { rpc } = await asUserWhile(user, () =>
      asSuperadmin.rpc.users.update.mutate({ id: user.id, is_active: false }),
    );
    const { password_hash } = await stored('users', user.id);

    const change = rpc.account.changePassword.mutate({ password: PASSWORD, new_password: 'another one' });

    expect(await refusalOf(change)).toMatchObject({ status: 401 });
    expect(await stored('users', user.id)).toMatchObject({ password_hash, is_active: false });
  });

  it('429 after 10 wrong passwords: a stolen token does not help to guess the password', async () => {
    const caller = await asUser(await givenUser());
    const change = () =>
      refusalOf(caller.rpc.account.changePassword.mutate({ password: 'wrong', new_password: 'another one' }));

    for (let failed = 0; failed < 10; failed++) expect((await change()).status).toBe(422);

    expect((await change()).status).toBe(429);
  });
});

describe('the second factor', () => {
  it('is required at sign-in once a code has confirmed it', async () => {
    const user = await givenUser();
    const { rpc } = await asUser(user);

    const offer = await rpc.account.startSecondFactor.mutate({ password: PASSWORD });
    expect(offer.otpauth_uri).toBe(
      `otpauth://totp/Deckhand:${encodeURIComponent(user.email)}?secret=${offer.secret}&issuer=Deckhand`,
    );
    expect(offer.qr_svg).toMatch(/^<svg [^>]*>.*<\/svg>\s*$/s);
    expect((await signIn(user)).status).toBe(200);

    const { recovery_codes } = await rpc.account.confirmSecondFactor.mutate({ code: codeAt(0, offer.secret) });

    expect(new Set(recovery_codes).size).toBe(8);
    expect((await signIn(user)).status).toBe(401);
    expect((await signIn(user, { code: codeAt(0, offer.secret) })).status).toBe(401);
    expect((await signIn(user, { code: codeAt(1, offer.secret) })).status).toBe(200);
    expect((await signIn(user, { code: recovery_codes[7], is_recovery: true })).status).toBe(200);
  });

  it('422 for a wrong password or a wrong code, and it stays off', async () => {
    const user = await givenUser();
    const { account } = (await asUser(user)).rpc;

    expect(await refusalOf(account.startSecondFactor.mutate({ password: 'x' }))).toMatchObject({ status: 422 });
    await account.startSecondFactor.mutate({ password: PASSWORD });
    expect(await refusalOf(account.confirmSecondFactor.mutate({ code: '000000' }))).toMatchObject({ status: 422 });

    expect(await stored('users', user.id)).toMatchObject({ totp_secret: null });
  });

  it('429 after 5 wrong codes: a stolen token is not enough to confirm by guessing', async () => {
    const user = await givenUser();
    const { account } = (await asUser(user)).rpc;
    const { secret } = await account.startSecondFactor.mutate({ password: PASSWORD });
    const confirm = (code: string) => refusalOf(account.confirmSecondFactor.mutate({ code }));

    for (let failed = 0; failed < 5; failed++) expect((await confirm('wrong')).status).toBe(422);

    expect((await confirm(codeAt(0, secret))).status).toBe(429);
    expect(await stored('users', user.id)).toMatchObject({ totp_secret: null });
  });

  it('400 when none was offered, one is already enabled, or there is none to drop', async () => {
    const { account } = (await asUser(await givenUser())).rpc;
    const { account: protectedAccount } = (await asUser(await givenProtectedUser())).rpc;
    const proof = { password: PASSWORD, code: codeAt(0) };

    expect(await refusalOf(account.confirmSecondFactor.mutate({ code: '123456' }))).toMatchObject({ status: 400 });
    expect(await refusalOf(protectedAccount.startSecondFactor.mutate({ password: PASSWORD }))).toMatchObject({
      status: 400,
    });
    expect(await refusalOf(account.dropSecondFactor.mutate(proof))).toMatchObject({ status: 400 });
    expect(await refusalOf(account.renewRecoveryCodes.mutate(proof))).toMatchObject({ status: 400 });
  });

  it('400 if another one is confirmed during the call, and that one stays', async () => {
    const user = await givenUser();
    const own = (await asUser(user)).rpc.account;
    const { secret } = await own.startSecondFactor.mutate({ password: PASSWORD });
    const { rpc } = await asUserWhile(user, () => own.confirmSecondFactor.mutate({ code: codeAt(0, secret) }));

    expect(await refusalOf(rpc.account.startSecondFactor.mutate({ password: PASSWORD }))).toMatchObject({
      status: 400,
    });

    expect(await stored('users', user.id)).toMatchObject({ totp_pending_secret: null });
    expect(makeSecretBox([TEST_SECRET]).open((await stored('users', user.id)).totp_secret, user.id)).toBe(secret);
  });

  it('is dropped with password and code; then the password alone signs in', async () => {
    const user = await givenProtectedUser();
    const { account } = (await asUser(user)).rpc;

    const drop = (code: string) => account.dropSecondFactor.mutate({ password: PASSWORD, code });
    expect(await refusalOf(drop('000000'))).toMatchObject({
      status: 422,
      errors: { code: ['code is wrong, or was used before.'] },
    });
    await drop(codeAt(0));

    expect((await signIn(user)).body.data).toMatchObject({ needs_code__regeneration: false, warn_message: '' });
  });

  it('429 after 5 wrong codes, sign-ins included; a recovery code still works', async () => {
    const user = await givenProtectedUser();
    const { account } = (await asUser(user)).rpc;
    const renew = (code: string, more: object = {}) =>
      refusalOf(account.renewRecoveryCodes.mutate({ password: PASSWORD, code, ...more }));
    const drop = (code: string) => refusalOf(account.dropSecondFactor.mutate({ password: PASSWORD, code }));

    for (const attempt of [renew, drop, renew, drop]) expect((await attempt('000000')).status).toBe(422);
    expect((await signIn(user, { code: '000000' })).status).toBe(401);

    expect(await renew(codeAt(0))).toMatchObject({ status: 429 });
    expect(await drop(codeAt(0))).toMatchObject({ status: 429 });
    expect((await signIn(user, { code: codeAt(0) })).status).toBe(429);
    await account.dropSecondFactor.mutate({ password: PASSWORD, code: 'a-code', is_recovery: true });
    expect(await stored('users', user.id)).toMatchObject({ totp_secret: null, totp_failures: 0 });
  });

  it('429 also after a password change: it does not reset the wait', async () => {
    const user = await givenProtectedUser();
    const { account } = (await asUser(user)).rpc;
    const wrong = { password: PASSWORD, code: '000000' };
    for (let failed = 0; failed < 5; failed++) await refusalOf(account.dropSecondFactor.mutate(wrong));

    const { token } = await account.changePassword.mutate({ password: PASSWORD, new_password: 'another one' });

    const { rpc } = makeCaller((await testService()).url, token);
    const drop = rpc.account.dropSecondFactor.mutate({ password: 'another one', code: codeAt(0) });
    expect(await refusalOf(drop)).toMatchObject({ status: 429 });
  });

  it('forgets remembered devices when it is set up again', async () => {
    const user = await givenProtectedUser();
    const { token } = (await signIn(user, { code: codeAt(0) })).body.data;
    const { account } = (await asUser(user)).rpc;

    await account.dropSecondFactor.mutate({ password: PASSWORD, code: 'a-code', is_recovery: true });
    const { secret } = await account.startSecondFactor.mutate({ password: PASSWORD });
    await account.confirmSecondFactor.mutate({ code: codeAt(0, secret) });

    expect((await signIn(user, { token })).status).toBe(401);
  });

  it('gives new recovery codes, and the old ones stop working', async () => {
    const user = await givenProtectedUser();
    const { account } = (await asUser(user)).rpc;

    const { recovery_codes } = await account.renewRecoveryCodes.mutate({ password: PASSWORD, code: codeAt(0) });

    expect(recovery_codes).toHaveLength(8);
    expect((await signIn(user, { code: 'a-code', is_recovery: true })).status).toBe(401);
    expect((await signIn(user, { code: recovery_codes[0], is_recovery: true })).status).toBe(200);
  });

  it('keeps the recovery codes of only one of several concurrent renewals', async () => {
    const recoveryCodes = Array.from({ length: 8 }, (_, number) => `code-${number}`);
    const user = await givenProtectedUser({ recoveryCodes });
    const { account } = (await asUser(user)).rpc;
    const renew = (code: string) =>
      account.renewRecoveryCodes.mutate({ password: PASSWORD, code, is_recovery: true }).catch(() => undefined);

    await Promise.all(recoveryCodes.map(renew));

    expect((await account.whoAmI.query()).account.recovery_codes_left).toBe(8);
  });
});
