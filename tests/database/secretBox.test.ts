import { describe, expect, it } from 'vitest';
import { makeSecretBox } from '../../server/security/secretBox.ts';

const secretOf = (name: string) => `a secret of enough length: ${name}`;
const [OLD, NEW, OTHER] = [secretOf('old'), secretOf('new'), secretOf('other')];
const TEXT = 'JBSWY3DPEHPK3PXP';

describe('a secret box', () => {
  it('opens what it sealed, and seals the same text differently each time', () => {
    const box = makeSecretBox([OLD]);

    const sealed = box.seal(TEXT, 5);

    expect(sealed).toMatch(/^v1\.[\w-]{12}\.[\w-]+$/);
    expect(sealed.startsWith(box.prefix)).toBe(true);
    expect(sealed).not.toContain(TEXT);
    expect(box.open(sealed, 5)).toBe(TEXT);
    expect(box.seal(TEXT, 5)).not.toBe(sealed);
  });

  it('hashes a text with each known secret, the current one first', () => {
    const [old] = makeSecretBox([OLD]).hashes(TEXT);

    const rotated = makeSecretBox([NEW, OLD]).hashes(TEXT);

    expect(old).toMatch(/^[\w-]{43}$/);
    expect(rotated).toEqual([makeSecretBox([NEW]).hashes(TEXT)[0], old]);
    expect(makeSecretBox([OTHER]).hashes(TEXT)).not.toContain(old);
  });

  it('opens nothing that belongs to another owner, was changed, or has another key', () => {
    const box = makeSecretBox([OLD]);
    const sealed = box.seal(TEXT, 5);
    const changedAt = (at: number) => sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);

    const other = makeSecretBox([OTHER]);
    const changed = [box.prefix.length, box.prefix.length + 18, sealed.length - 3].map(changedAt);
    const broken = [box.prefix, `${box.prefix}AAAA`, `v2${sealed.slice(2)}`, 'v1.', '..', '.', sealed.slice(0, -8)];

    expect([...changed, ...broken].filter((text) => box.open(text, 5) !== undefined)).toEqual([]);
    expect(box.open(sealed, 6)).toBeUndefined();
    expect(box.open(sealed, 5, 'webhook')).toBeUndefined();
    expect(box.open(box.seal(TEXT, 5, 'webhook'), 5)).toBeUndefined();
    expect(box.open(box.seal(TEXT, 5, 'webhook'), 5, 'webhook')).toBe(TEXT);
    expect(other.open(sealed, 5)).toBeUndefined();
    expect(other.open(other.prefix + sealed.split('.')[2], 5)).toBeUndefined();
  });

  it('opens what earlier secrets sealed, and seals with the first', () => {
    const before = makeSecretBox([OLD]);
    const rotated = makeSecretBox([NEW, OTHER, OLD]);

    expect(rotated.open(before.seal(TEXT, 5), 5)).toBe(TEXT);
    expect(rotated.prefix).not.toBe(before.prefix);
    expect(before.open(rotated.seal(TEXT, 5), 5)).toBeUndefined();
    expect(makeSecretBox([OLD, NEW]).open(rotated.seal(TEXT, 5), 5)).toBe(TEXT);
  });

  it('returns plain text from before encryption unchanged', () => {
    expect(makeSecretBox([OLD]).open(TEXT, 5)).toBe(TEXT);
  });
});
