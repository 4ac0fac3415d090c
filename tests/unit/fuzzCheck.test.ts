import { describe, expect, it } from 'vitest';
import { faultsOf, socketFaultsOf } from '../fuzz/check.ts';
import { memoryVerdict } from '../fuzz/memory.ts';
import type { FuzzRequest, SocketRequest } from '../fuzz/request.ts';
import type { FuzzAnswer } from '../fuzz/send.ts';

const LIMITS = { 'X-RateLimit-Limit': '600', 'X-RateLimit-Remaining': '599', 'X-Request-Id': 'a-name' };
const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' };

const REFUSED = { ...LIMITS, ...JSON_TYPE, 'X-Error-Reason': 'not_signed_in' };

const answered = (status: number, body: unknown, headers: object = { ...LIMITS, ...JSON_TYPE }): FuzzAnswer => ({
  status,
  headers: new Headers(headers as Record<string, string>),
  text: JSON.stringify(body),
  milliseconds: 1,
});

describe('the fuzz check of REST answers reports', () => {
  const request = {
    surface: 'rest',
    method: 'POST',
    path: '/api/services/operations/v1/operations/tour/cards/dismiss-all',
    operations: ['tour.dismissAll'],
  } as FuzzRequest;

  it.each([
    ['a status of 500', answered(500, { error: true, message: 'x', data: [] }), 'The status is 500.'],
    ['a status that is not documented', answered(418, {}), 'The status is not listed.'],
    [
      'a missing header',
      answered(401, { error: true, message: 'x' }, JSON_TYPE),
      'The header X-Request-Id is missing.',
    ],
    ['a 429 without Retry-After', answered(429, { error: true, message: 'x' }), 'The header Retry-After is missing.'],
    ['another body', answered(401, { message: 'x' }), expect.stringContaining("required property 'error'")],
  ])('%s', (_, answer, fault) => {
    expect(faultsOf(request, answer)).toContainEqual(fault);
  });

  it('nothing where all is well', () => {
    expect(faultsOf(request, answered(401, { error: true, message: 'x' }, REFUSED))).toEqual([]);
  });
});

describe('the fuzz check of RPC answers reports', () => {
  const request = { surface: 'rpc', method: 'POST', path: '/trpc/tour.dismissAll', operations: ['tour.dismissAll'] };
  const refusal = (httpStatus: number, more: object = {}) => ({
    error: { json: { message: 'x', code: -1, data: { code: 'X', httpStatus, reason: 'fault', ...more } } },
  });

  it.each([
    ['a status of 500', answered(500, refusal(500)), 'The status is 500.'],
    [
      'a status that is not documented',
      answered(409, refusal(409)),
      'Call 0 answers 409, which is not documented for it.',
    ],
    ['two different statuses', answered(200, refusal(401)), 'The status is 200, of calls 401.'],
    ['a 429 without Retry-After', answered(429, refusal(429)), 'The header Retry-After is missing.'],
    ['a stack', answered(401, refusal(401, { stack: 'x' })), expect.stringContaining('additional properties')],
    ['an unknown reason', answered(401, refusal(401, { reason: 'x' })), expect.stringContaining('allowed values')],
    ['more replies than calls', answered(401, [refusal(401), refusal(401)]), 'There are 2 replies to 1 calls.'],
  ])('%s', (_, answer, fault) => {
    expect(faultsOf(request as FuzzRequest, answer)).toContainEqual(fault);
  });

  it('nothing where all is well', () => {
    expect(faultsOf(request as FuzzRequest, answered(401, refusal(401)))).toEqual([]);
  });
});

describe('the fuzz check of malformed HTTP reports', () => {
  const request = { surface: 'socket', answers: 1, isRefused: true } as SocketRequest;

  it('an answer without a reason', () => {
    const answer = answered(400, { error: true, message: 'x', data: [] }, { ...LIMITS, Connection: 'close' });

    expect(socketFaultsOf(request, [answer])).toEqual(['The reason is missing or unknown.']);
  });

  it('a missing answer, and a connection that stays open', () => {
    const kept = answered(400, { error: true, message: 'x', data: [] }, REFUSED);

    expect(socketFaultsOf(request, [])).toEqual(['There are 0 answers instead of 1.']);
    expect(socketFaultsOf(request, [kept])).toEqual(['The connection is kept.']);
  });
});

describe('memory', () => {
  const samples = (rss: (n: number) => number) =>
    Array.from({ length: 50 }, (_, n) => ({ sent: (n + 1) * 2000, rss: rss(n), heap: undefined }));

  it.each([
    ['grows by 1 % with each sample', (n: number) => 100 + n, true],
    ['is flat after the warm-up', (n: number) => (n < 10 ? n * 10 : 100), false],
    ['is flat except for single samples', (n: number) => (n % 4 === 0 ? 300 : 100), false],
  ])('%s', (_, rss, isGrowing) => {
    expect(memoryVerdict(samples(rss)).isGrowing).toBe(isGrowing);
  });
});
