import { describe, expect, it } from 'vitest';
import { faultsOf, socketFaultsOf } from './check.ts';
import { memoryVerdict } from './memory.ts';
import type { FuzzRequest, SocketRequest } from './request.ts';
import type { FuzzAnswer } from './send.ts';

const HEADERS = {
  ...{
    'X-RateLimit-Limit': '600',
    'X-RateLimit-Remaining': '599',
    'X-RateLimit-Reset': '60',
    'WWW-Authenticate': 'Bearer',
    'X-Request-Id': 'a-name',
    'X-Deckhand-Version': '1.0.0',
  },
  ...{ 'Content-Type': 'application/json; charset=utf-8', 'X-Error-Reason': 'not_signed_in' },
};
const BODY = { error: true, message: 'x' };

const answered = (status: number, body: unknown = BODY, headers: Record<string, string> = HEADERS): FuzzAnswer => ({
  status,
  headers: new Headers(headers),
  text: JSON.stringify(body),
  milliseconds: 1,
});

describe('the fuzz check reports', () => {
  const path = '/api/services/operations/v1/operations/tour/cards/dismiss-all';
  const rest = { surface: 'rest', method: 'POST', path, operations: ['tour.dismissAll'] } as FuzzRequest;
  const rpc = { ...rest, surface: 'rpc', path: '/trpc/tour.dismissAll' } as FuzzRequest;
  const refusal = (httpStatus: number, more: object = {}) => ({
    error: { json: { message: 'x', code: -1, data: { code: 'X', httpStatus, reason: 'fault', ...more } } },
  });

  const mcp = { ...rest, surface: 'mcp', path: '/mcp' } as FuzzRequest;
  const refusedTool = (status: number) => {
    const structuredContent = { error: { status, reason: 'fault', message: 'x' } };
    const content = [{ type: 'text', text: JSON.stringify(structuredContent) }];
    return { jsonrpc: '2.0', id: 1, result: { content, structuredContent, isError: true } };
  };

  it.each<[string, FuzzRequest, FuzzAnswer, unknown]>([
    ['500', rest, answered(500), 'The status is 500.'],
    ['an undocumented status', rest, answered(418), 'The status is not listed.'],
    ['a missing header', rest, answered(401, BODY, {}), 'The header X-Request-Id is missing.'],
    ['another body', rest, answered(401, {}), expect.stringContaining("required property 'error'")],
    ['two different statuses', rpc, answered(200, refusal(401)), 'The status is 200, of calls 401.'],
    ['429 without Retry-After', rpc, answered(429, refusal(429)), 'The header Retry-After is missing.'],
    ['an unknown reason', rpc, answered(401, refusal(401, { reason: 'x' })), expect.stringContaining('allowed values')],
    ['too many replies', rpc, answered(401, [refusal(401), refusal(401)]), 'There are 2 replies to 1 calls.'],
    [
      'a tool with an undocumented status',
      mcp,
      answered(200, refusedTool(500)),
      'The tool answers 500, which is not documented for its operation.',
    ],
    ['a message without a result', mcp, answered(200, {}), expect.stringContaining("required property 'result'")],
  ])('%s', (_, request, answer, fault) => {
    expect(faultsOf(request, answer)).toContainEqual(fault);
  });

  it('nothing where all is well', () => {
    expect(faultsOf(rest, answered(401))).toEqual([]);
    expect(faultsOf(rpc, answered(401, refusal(401)))).toEqual([]);
    expect(faultsOf(mcp, answered(200, refusedTool(403)))).toEqual([]);
  });

  it('a missing reason or answer to malformed HTTP, and a connection that stays open', () => {
    const request = { surface: 'socket', answers: 1, isRefused: true } as SocketRequest;
    const { 'X-Error-Reason': _, ...unreasoned } = HEADERS;
    const closed = answered(400, { ...BODY, data: [] }, { ...unreasoned, Connection: 'close' });

    expect(socketFaultsOf(request, [closed])).toEqual(['The reason is missing or unknown.']);
    expect(socketFaultsOf(request, [])).toEqual(['There are 0 answers instead of 1.']);
    expect(socketFaultsOf(request, [answered(400, { ...BODY, data: [] })])).toEqual(['The connection is kept.']);
  });

  it('memory that grows with each sample, but none that is flat after the warm-up or except for single samples', () => {
    const isGrowing = (rss: (n: number) => number) =>
      memoryVerdict(Array.from({ length: 50 }, (_, n) => ({ sent: (n + 1) * 2000, rss: rss(n), heap: undefined })))
        .isGrowing;

    expect(isGrowing((n) => 100 + n)).toBe(true);
    expect(isGrowing((n) => (n < 10 ? n * 10 : 100))).toBe(false);
    expect(isGrowing((n) => (n % 4 === 0 ? 300 : 100))).toBe(false);
  });
});
