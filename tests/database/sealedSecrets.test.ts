import { sql } from 'kysely';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { reencryptSecrets, replaceEncrypted } from '../../server/domain/account/reencrypt.ts';
import { makeSecretBox } from '../../server/security/secretBox.ts';
import { makeCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep, SECRET } from '../harness/codes.ts';
import { givenService, TEST_SECRET, testService } from '../harness/service.ts';
import { givenToken, givenUser, PASSWORD, stored, type TestUser, testDb } from '../harness/world.ts';

const OLD_SECRET = 'the secret of the service before it was rotated';
const LOST_SECRET = 'the secret of the service that nobody has any more';

const secretBox = makeSecretBox([TEST_SECRET]);
const isSealed = (value: string | null) => value?.startsWith(secretBox.prefix);

holdTimeStep();

const signIn = async ({ email }: TestUser, more: object, { url } = { url: '' }) =>
  makeCaller(url || (await testService()).url).post('/v1/authenticate', { email, password: PASSWORD, ...more });

const storeSecret = async ({ id }: TestUser, value: string) =>
  query(await testDb(), sql`update users set totp_secret = ${value} where id = ${id}`);

describe('the secret of a second factor', () => {
  it('is stored encrypted, both offered and enabled, and its codes sign in', async () => {
    const user = await givenUser();
    const { account } = makeCaller((await testService()).url, await givenToken(user)).rpc;

    const { secret } = await account.startSecondFactor.mutate({ password: PASSWORD });
    const { totp_pending_secret } = await stored('users', user.id);
    await account.confirmSecondFactor.mutate({ code: codeAt(0, secret) });
    const { totp_secret } = await stored('users', user.id);

    expect(isSealed(totp_pending_secret)).toBe(true);
    expect(totp_secret).toBe(totp_pending_secret);
    expect(secretBox.open(totp_secret, user.id)).toBe(secret);
    expect((await signIn(user, { code: codeAt(1, secret) })).status).toBe(200);
  });

  it('encrypted with an earlier JWT_SECRET is readable while JWT_PREVIOUS_SECRETS has that one', async () => {
    const user = await givenProtectedUser();
    await storeSecret(user, makeSecretBox([OLD_SECRET]).seal(SECRET, user.id));
    const rotated = await givenService({ JWT_PREVIOUS_SECRETS: `${LOST_SECRET},${OLD_SECRET}` });

    expect((await signIn(user, { code: codeAt(0) }, rotated)).status).toBe(200);
  });

  it.each<[string, (user: TestUser) => Promise<string>]>([
    ['was encrypted with an unknown secret', async ({ id }) => makeSecretBox([LOST_SECRET]).seal(SECRET, id)],
    ['was copied from another user', async () => secretBox.seal(SECRET, (await givenUser()).id)],
  ])('500 for a code if it %s; recovery codes and remembered devices still sign in', async (_, sealed) => {
    const service = await givenService();
    const user = await givenProtectedUser();
    const { token } = (await signIn(user, { code: codeAt(0) }, service)).body.data;
    await storeSecret(user, await sealed(user));

    const refused = await signIn(user, { code: codeAt(1) }, service);

    expect(refused.status).toBe(500);
    expect(refused.body).toEqual({ error: true, message: 'Something went wrong on our side. Try again later.' });
    expect(service.logged.find(({ level }) => level === 50)).toMatchObject({
      err: { message: expect.stringMatching(`user ${user.id} can't be read. .*JWT_PREVIOUS_SECRETS`) },
    });
    expect(await stored('users', user.id)).toMatchObject({ totp_failures: 0 });
    expect((await signIn(user, { token }, service)).status).toBe(200);
    expect((await signIn(user, { code: 'a-code', is_recovery: true }, service)).status).toBe(200);
  });
});

describe('re-encrypting second factors', () => {
  const rotatedBox = makeSecretBox([TEST_SECRET, OLD_SECRET]);
  const reseal = async (logged: string[] = []) =>
    reencryptSecrets({
      db: await testDb(),
      services: { secretBox: rotatedBox },
      log: pino({ level: 'info' }, { write: (line: string) => void logged.push(line) }),
    });

  it('changes only secrets that are plain or under an earlier key, also when two nodes run it at once', async () => {
    const [plain, old, current, none] = [await givenUser(), await givenUser(), await givenUser(), await givenUser()];
    const db = await testDb();
    await storeSecret(plain, SECRET);
    await storeSecret(old, makeSecretBox([OLD_SECRET]).seal(SECRET, old.id));
    await storeSecret(current, secretBox.seal(SECRET, current.id));
    await query(db, sql`update users set totp_pending_secret = ${SECRET} where id = ${none.id}`);
    const { totp_secret: untouched } = await stored('users', current.id);

    await Promise.all([reseal(), reseal()]);

    for (const { id } of [plain, old]) {
      const { totp_secret } = await stored('users', id);
      expect(isSealed(totp_secret)).toBe(true);
      expect(secretBox.open(totp_secret, id)).toBe(SECRET);
    }
    expect(await stored('users', current.id)).toMatchObject({ totp_secret: untouched, totp_pending_secret: null });
    const { totp_secret, totp_pending_secret } = await stored('users', none.id);
    expect(totp_secret).toBeNull();
    expect(secretBox.open(totp_pending_secret, none.id)).toBe(SECRET);
    expect(isSealed(totp_pending_secret)).toBe(true);
  });

  it('continues in batches past unreadable secrets, and logs how many there are', async () => {
    const unreadable = await givenUser();
    await storeSecret(unreadable, makeSecretBox([LOST_SECRET]).seal(SECRET, unreadable.id));
    const db = await testDb();
    const added = await query(
      db,
      sql<{ id: number }>`
        insert into users (name, email, password_hash, totp_secret)
        select 'One of many', gen_random_uuid() || '@example.test', '', ${SECRET}::text from generate_series(1, 1001) returning id`,
    );
    const logged: string[] = [];

    await reseal(logged);

    const ids = added.map(({ id }) => id);
    const rows = await query(
      db,
      sql<{ sealed: string }>`select totp_secret as sealed from users where id = any(${ids}::int[])`,
    );
    expect(rows.filter(({ sealed }) => isSealed(sealed))).toHaveLength(1001);
    expect(logged.join()).toMatch(/second factors can't be read\. .*JWT_PREVIOUS_SECRETS/);
    expect(rotatedBox.open((await stored('users', unreadable.id)).totp_secret, unreadable.id)).toBeUndefined();
  });

  it('does not overwrite a value that has changed meanwhile', async () => {
    const user = await givenProtectedUser();
    const change = { id: user.id, before: 'ANOTHERSECRETXYZ', after: secretBox.seal('ANOTHERSECRETXYZ', user.id) };

    await replaceEncrypted(await testDb(), { table: 'users', column: 'totp_secret' }, [change]);

    expect(await stored('users', user.id)).toMatchObject({ totp_secret: SECRET });
  });
});
