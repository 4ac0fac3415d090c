import { describe, expect, it, vi } from 'vitest';
import { refusePassword } from '../../server/security/commonPasswords.ts';
import { hashPassword, isPassword } from '../../server/security/passwords.ts';

/** With the lowest cost that argon2id allows. */
const HASH = '$argon2id$v=19$m=8,p=1,t=1$IV3MQ6gR1No8spGoZ7ydJg$gCm3Dp/UPfS9wOxLhQ3L2r1h5rwgFTCvGi5pKPwmsVg';
const PASSWORD = 'correct horse battery staple';

const attempts = (count: number, addressOf: (at: number) => string, hasFailed = false) =>
  Array.from({ length: count }, (_, at) =>
    isPassword(PASSWORD, HASH, addressOf(at), { hasFailed }).catch(({ code }) => code as string),
  );
const countRefused = async (answers: Promise<unknown>[]) =>
  (await Promise.all(answers)).filter((answer) => answer === 'TOO_MANY_REQUESTS').length;

describe('passwords', () => {
  it('are hashed and verified; without a stored hash the answer is always false', async () => {
    expect(await isPassword(PASSWORD, await hashPassword(PASSWORD, '10.0.0.1'), '10.0.0.1')).toBe(true);
    expect(await isPassword('wrong', HASH, '10.0.0.1')).toBe(false);
    expect(await isPassword(PASSWORD, undefined, '10.0.0.1')).toBe(false);
  });

  it('take a place and the same work without a stored hash, so that nobody can tell who has an account', async () => {
    const verify = vi.spyOn((await import('argon2')).default, 'verify');
    const costOf = (hash: string) => hash.split('$')[3]!.split(',').sort();

    const checks = Array.from({ length: 20 }, () =>
      isPassword(PASSWORD, undefined, '10.0.0.1').catch(({ code }) => code as string),
    );
    expect(await countRefused(checks)).toBe(8);

    const cost = costOf(await hashPassword(PASSWORD, '10.0.0.1'));
    expect(verify.mock.calls.map(([hash]) => costOf(hash))).toEqual(Array(12).fill(cost));
    verify.mockRestore();
  });

  it.each<[string, (at: number) => string]>([
    ['an IPv4 address', () => '10.0.0.1'],
    ['a /48 of IPv6', (at) => `2001:db8:1:${at.toString(16)}::${at}`],
  ])('429 above 2 running and 10 waiting checks from %s; others still get their turn', async (_, addressOf) => {
    const flood = attempts(20, addressOf);
    const others = attempts(2, (at) => `2001:db8:2:${at}::1`);

    expect(await countRefused(flood)).toBe(8);
    expect(await Promise.all(others)).toEqual([true, true]);
  });

  it('429 above 50 waiting checks in total', async () => {
    expect(await countRefused(attempts(60, (at) => `10.0.0.${at}`))).toBe(8);
    expect(await isPassword(PASSWORD, HASH, '10.0.0.59')).toBe(true);
  });

  it('of networks that failed lately are checked last, and turned away first', async () => {
    const flood = attempts(60, (at) => `10.0.0.${at}`, true);
    const newcomers = attempts(8, (at) => `10.1.0.${at}`);

    expect(await Promise.all(newcomers)).toEqual(Array(8).fill(true));
    expect(await countRefused(flood)).toBe(16);
  });
});

describe('a new password', () => {
  const COMMON = ['password', '12345678', 'PassWord1', ' qwertyuiop', 'ｐａｓｓｗｏｒｄ', 'demo-password', 'trustno1'];
  const OWN = ['ada.lovelace@example.test', 'ADA.LOVELACE', 'Ada Lovelace', 'adalovelace'];
  const GOOD = [PASSWORD, 'password of mine', '# The 10,000', 'Copyright (c) 2021', 'ada.lovelace.1815'];

  it('is neither one of the most common, nor the e-mail address or the name', () => {
    const refuse = (password: string) =>
      refusePassword(password, { email: 'Ada.Lovelace@example.test', name: 'Ada Lovelace' });

    for (const password of COMMON) expect(refuse(password), password).toMatch(/^is one of the most common passwords/);
    for (const password of OWN) expect(refuse(password), password).toBe('must not be the e-mail address or the name');
    for (const password of GOOD) expect(refuse(password), password).toBeUndefined();
  });
});
