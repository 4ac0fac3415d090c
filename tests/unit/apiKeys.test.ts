import { describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { scopesFor } from '../../server/domain/access/scopes.ts';
import { hashKeySecret, isKeySecret, makeKeySecret, readKeySecret } from '../../server/security/apiKeys.ts';
import { hideKeys } from '../../server/security/logger.ts';

describe('the secret of an API key', () => {
  it('has a prefix, 30 random digits of base 62, and a checksum', () => {
    const secrets = Array.from({ length: 100 }, makeKeySecret);

    for (const secret of secrets) expect(secret).toMatch(/^dkh_[0-9A-Za-z]{36}$/);
    expect(new Set(secrets).size).toBe(100);
    expect(secrets.every(isKeySecret)).toBe(true);
  });

  it('is read as its hash', () => {
    const secret = makeKeySecret();

    expect(readKeySecret(secret)).toBe(hashKeySecret(secret));
    expect(hashKeySecret(secret)).toMatch(/^[\da-f]{64}$/);
  });

  it('has a checksum as GitHub does: CRC32 in base 62, with leading zeros', () => {
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
  const scopesOf = (name: string) => scopesFor(procedures.find((procedure) => procedure.name === name)!);

  it('come from the router, and from whether it reads or writes', () => {
    expect(scopesOf('cards.list')).toEqual(['cards:read']);
    expect(scopesOf('cards.create')).toEqual(['cards:write']);
    expect(scopesOf('projects.listOwn')).toEqual(['projects:read']);
  });

  it('are the same for all templates, and include admin for superadmins', () => {
    expect(scopesOf('masterGroups.list')).toEqual(['templates:read', 'admin']);
    expect(scopesOf('templateRuns.get')).toEqual(['templates:read', 'admin']);
    expect(scopesOf('masterCards.push')).toEqual(['templates:write', 'admin']);
    expect(scopesOf('users.create')).toEqual(['users:write', 'admin']);
  });

  it('do not exist for accounts and keys, and are not needed for signing in', () => {
    expect(['account.whoAmI', 'account.changePassword', 'keys.create', 'keys.list'].map(scopesOf)).toEqual(
      Array(4).fill(undefined),
    );
    expect(scopesOf('auth.authenticate')).toEqual([]);
  });
});

describe('the log', () => {
  it('hides API keys', () => {
    const line = `{"reqId":"${makeKeySecret()}","msg":"sent ${makeKeySecret()}, and ${makeKeySecret()}"}`;

    expect(hideKeys(line)).toBe('{"reqId":"dkh_…","msg":"sent dkh_…, and dkh_…"}');
    expect(hideKeys('{"msg":"answered"}')).toBe('{"msg":"answered"}');
  });
});
