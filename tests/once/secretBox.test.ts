import { describe, expect, it } from 'vitest';
import { makeSecretBox } from '../../server/security/secretBox.ts';

const [OLD, NEW, OTHER] = ['old', 'new', 'other'].map((name) => `a secret of enough length: ${name}`) as [
  string,
  string,
  string,
];
const TEXT = 'JBSWY3DPEHPK3PXP';

describe('a secret box', () => {
  it('opens what it sealed, and seals nothing twice alike', () => {
    const box = makeSecretBox([OLD]);

    const sealed = box.seal(TEXT, 5);

    expect(sealed).toMatch(/^v1\.[\w-]{12}\.[\w-]+$/);
    expect(sealed.startsWith(box.prefix)).toBe(true);
    expect(sealed).not.toContain(TEXT);
    expect(box.open(sealed, 5)).toBe(TEXT);
    expect(box.seal(TEXT, 5)).not.toBe(sealed);
  });

  it('opens nothing for another owner, nothing that was changed, nothing of another key', () => {
    const box = makeSecretBox([OLD]);
    const sealed = box.seal(TEXT, 5);
    const changedAt = (at: number) => sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);

    expect(box.open(sealed, 6)).toBeUndefined();
    for (const at of [box.prefix.length, box.prefix.length + 18, sealed.length - 3]) {
      expect(box.open(changedAt(at), 5)).toBeUndefined();
    }
    for (const broken of [
      box.prefix,
      `${box.prefix}AAAA`,
      `v2${sealed.slice(2)}`,
      'v1.',
      '..',
      '.',
      sealed.slice(0, -8),
    ]) {
      expect(box.open(broken, 5)).toBeUndefined();
    }
    expect(makeSecretBox([OTHER]).open(sealed, 5)).toBeUndefined();
  });

  it('is not opened with another key under the same name', () => {
    const sealed = makeSecretBox([OLD]).seal(TEXT, 5);
    const other = makeSecretBox([OTHER]);

    expect(other.open(other.prefix + sealed.split('.')[2], 5)).toBeUndefined();
  });

  it('opens what earlier secrets sealed, and seals with the newest', () => {
    const before = makeSecretBox([OLD]);
    const exchanged = makeSecretBox([NEW, OTHER, OLD]);

    expect(exchanged.open(before.seal(TEXT, 5), 5)).toBe(TEXT);
    expect(exchanged.prefix).not.toBe(before.prefix);
    expect(before.open(exchanged.seal(TEXT, 5), 5)).toBeUndefined();
    expect(makeSecretBox([OLD, NEW]).open(exchanged.seal(TEXT, 5), 5)).toBe(TEXT);
  });

  it('takes text from before there was a box as it is', () => {
    expect(makeSecretBox([OLD]).open(TEXT, 5)).toBe(TEXT);
  });
});
