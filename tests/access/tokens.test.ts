import { randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeTokens } from '../../server/security/tokens.ts';

const SECRET = 'a secret for tests that nobody else uses';
const HOUR_SECONDS = 3600;
const claims = () => ({ userId: 7, sessionId: randomUUID() });

afterEach(() => {
  vi.useRealTimers();
});

describe('a token', () => {
  it('returns its claims, however often it is read', () => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const signedIn = claims();
    const token = tokens.sign(signedIn);

    expect([tokens.read(token), tokens.read(token), tokens.readExpired(token)]).toEqual([signedIn, signedIn, signedIn]);
  });

  it('is invalid once expired, even if it was read before', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const signedIn = claims();
    const token = tokens.sign(signedIn);
    expect(tokens.read(token)).toEqual(signedIn);

    vi.setSystemTime(Date.now() + HOUR_SECONDS * 1000);

    expect([tokens.read(token), tokens.read(token)]).toEqual([undefined, undefined]);
    expect(tokens.readExpired(token)).toEqual(signedIn);
  });

  it.each<[string, (token: string) => string]>([
    ['another signature', (token) => token.replace(/[^.]+$/, 'A'.repeat(43))],
    ['no signature', (token) => token.slice(0, token.lastIndexOf('.') + 1)],
    ['a trailing space', (token) => `${token} `],
    ['another secret', () => makeTokens(['another secret that is long enough'], HOUR_SECONDS).sign(claims())],
    ['no expiry', (token) => jwt.sign({}, SECRET, { keyid: kidOf(token), ...CLAIMS, jwtid: randomUUID() })],
    ['no key id', () => jwt.sign({}, SECRET, { ...CLAIMS, jwtid: randomUUID(), expiresIn: 60 })],
  ])('with %s is invalid, even after a valid one was read', (_, change) => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const token = tokens.sign(claims());
    tokens.read(token);

    expect(tokens.read(change(token))).toBeUndefined();
    expect(tokens.read(token)).toBeDefined();
  });

  it('can still be read after thousands of others', () => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const all = Array.from({ length: 1100 }, claims);
    const signed = all.map(tokens.sign);

    for (const _ of ['first', 'second']) expect(signed.map(tokens.read)).toEqual(all);
  });

  it('is verified again after 1,000 others, which are all that is remembered', () => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const [first = '', ...others] = Array.from({ length: 1001 }, () => tokens.sign(claims()));
    const verify = vi.spyOn(jwt, 'verify');
    const verifications = (read: string[]) => {
      verify.mockClear();
      for (const token of read) tokens.read(token);
      return verify.mock.calls.length;
    };

    expect(verifications([first, ...others.slice(0, 999), first])).toBe(1000);
    expect(verifications(others)).toBe(1);
    expect(verifications([first])).toBe(1);
    verify.mockRestore();
  });
});

const CLAIMS = { issuer: 'deckhand', audience: 'deckhand-api', subject: '7' };

const kidOf = (token: string) => jwt.decode(token, { complete: true })!.header.kid!;
