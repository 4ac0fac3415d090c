import { describe, expect, it } from 'vitest';
import { refusePassword } from '../../server/security/commonPasswords.ts';

const USER = { email: 'Ada.Lovelace@example.test', name: 'Ada Lovelace' };

describe('a new password', () => {
  it.each([
    'password',
    '12345678',
    'iloveyou',
    'PassWord1',
    ' qwertyuiop',
    'ｐａｓｓｗｏｒｄ',
    'demo-password',
    'trustno1',
  ])('%j is too common', (password) => {
    expect(refusePassword(password, USER)).toMatch(/^is one of the most common passwords/);
  });

  it.each(['ada.lovelace@example.test', 'ADA.LOVELACE', 'Ada Lovelace', 'adalovelace'])(
    '%j is the e-mail address or name',
    (password) => {
      expect(refusePassword(password, USER)).toBe('must not be the e-mail address or the name');
    },
  );

  it.each([
    'correct horse battery staple',
    'password of mine',
    '# The 10,000',
    'Copyright (c) 2021',
    'ada.lovelace.1815',
  ])('%j is accepted', (password) => {
    expect(refusePassword(password, USER)).toBeUndefined();
  });
});
