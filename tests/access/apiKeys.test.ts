import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { scopesFor } from '../../server/domain/access/scopes.ts';
import { makeKeyHolders } from '../../server/limits/keyHolders.ts';
import { hashKeySecret, isKeySecret, makeKeySecret, readKeySecret } from '../../server/security/apiKeys.ts';
import { hideKeys, makeLogger } from '../../server/security/logger.ts';

describe('the secret of an API key', () => {
  it('has a prefix, 30 random digits of base 62, and a checksum', () => {
    const secrets = Array.from({ length: 100 }, makeKeySecret);

    for (const secret of secrets) expect(secret).toMatch(/^dkh_[0-9A-Za-z]{36}$/);
    expect(new Set(secrets).size).toBe(100);
    expect(secrets.every(isKeySecret)).toBe(true);
  });

  it('is read as its hash, with a checksum as GitHub does: CRC32 in base 62, with leading zeros', () => {
    const secret = makeKeySecret();

    expect(readKeySecret(secret)).toBe(hashKeySecret(secret));
    expect(hashKeySecret(secret)).toMatch(/^[\da-f]{64}$/);
    expect(readKeySecret(`dkh_${'0'.repeat(30)}4CywVP`)).toBeDefined();
    expect(readKeySecret(`dkh_${'0'.repeat(27)}15300SQNH`)).toBeDefined();
  });

  it('is refused with any character changed, missing or added', () => {
    const secret = makeKeySecret();

    for (let at = 0; at < secret.length; at++) {
      const other = secret[at] === 'x' ? 'y' : 'x';
      expect(readKeySecret(secret.slice(0, at) + other + secret.slice(at + 1))).toBeUndefined();
      expect(readKeySecret(secret.slice(0, at) + secret.slice(at + 1))).toBeUndefined();
      expect(readKeySecret(secret.slice(0, at) + other + secret.slice(at))).toBeUndefined();
    }
  });
});

describe('the scopes of procedures', () => {
  it.each<[string, string[] | undefined]>([
    ['cards.list', ['cards:read']],
    ['cards.create', ['cards:write']],
    ['projects.listOwn', ['projects:read']],
    ['masterGroups.list', ['templates:read', 'admin']],
    ['templateRuns.get', ['templates:read', 'admin']],
    ['masterCards.push', ['templates:write', 'admin']],
    ['users.create', ['users:write', 'admin']],
    ['account.whoAmI', undefined],
    ['account.changePassword', undefined],
    ['keys.create', undefined],
    ['keys.self', []],
    ['keys.rotateSelf', []],
    ['auth.authenticate', []],
  ])('of %s are %j', (name, scopes) => {
    expect(scopesFor(procedures.find((procedure) => procedure.name === name)!)).toEqual(scopes);
  });
});

describe('the log', () => {
  it('hides API keys', () => {
    const line = `{"reqId":"${makeKeySecret()}","msg":"sent ${makeKeySecret()}, and ${makeKeySecret()}"}`;

    expect(hideKeys(line)).toBe('{"reqId":"dkh_…","msg":"sent dkh_…, and dkh_…"}');
    expect(hideKeys('{"msg":"answered"}')).toBe('{"msg":"answered"}');
  });

  it('of the service hides them in messages, fields and errors', async () => {
    let written = '';
    const log = await makeLogger({ LOG_LEVEL: 'info' }, (text) => {
      written += text;
      return text.length;
    });
    const secret = makeKeySecret();

    log.info({ header: secret }, `sent ${secret}`);
    log.error(new Error(`refused ${secret}`));

    expect(written).toContain('refused dkh_…');
    expect(written).not.toContain(secret);
  });
});

describe('the users of keys that were valid lately', () => {
  it('are remembered for the last 1,000 keys, until one is found to have ended', () => {
    const { find, remember } = makeKeyHolders();
    for (let at = 0; at <= 1000; at++) remember(`key ${at}`, at);

    expect([find('key 0'), find('key 1'), find('key 1000')]).toEqual([undefined, 1, 1000]);
    remember('key 1', undefined);
    remember('key 0', 0);
    expect([find('key 0'), find('key 1'), find('key 2')]).toEqual([0, undefined, 2]);
  });
});
