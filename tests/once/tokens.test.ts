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
  it('says whose it is, however often it is read', () => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const signedIn = claims();
    const token = tokens.sign(signedIn);

    expect([tokens.read(token), tokens.read(token), tokens.readExpired(token)]).toEqual([signedIn, signedIn, signedIn]);
  });

  it('says nothing when its time is over, also if it was read before', () => {
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
    ['another signature', (token) => `${token.slice(0, -2)}AA`],
    ['no signature', (token) => token.slice(0, token.lastIndexOf('.') + 1)],
    ['a space behind it', (token) => `${token} `],
    ['another secret', () => makeTokens(['another secret that is long enough'], HOUR_SECONDS).sign(claims())],
    ['no end', (token) => jwt.sign({}, SECRET, { keyid: kidOf(token), ...OF_DECKHAND, jwtid: randomUUID() })],
    ['no name of a key', () => jwt.sign({}, SECRET, { ...OF_DECKHAND, jwtid: randomUUID(), expiresIn: 60 })],
  ])('with %s says nothing, after a genuine one was read', (_, change) => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const token = tokens.sign(claims());
    tokens.read(token);

    expect(tokens.read(change(token))).toBeUndefined();
    expect(tokens.read(token)).toBeDefined();
  });

  it('is read like any other when thousands were read since', () => {
    const tokens = makeTokens([SECRET], HOUR_SECONDS);
    const all = Array.from({ length: 2500 }, claims);
    const signed = all.map(tokens.sign);

    expect(signed.map(tokens.read)).toEqual(all);
    expect(signed.map(tokens.read)).toEqual(all);
  });
});

const OF_DECKHAND = { issuer: 'deckhand', audience: 'deckhand-api', subject: '7' };

const kidOf = (token: string) => jwt.decode(token, { complete: true })!.header.kid!;
