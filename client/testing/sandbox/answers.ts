import { randomUUID } from 'node:crypto';
import { VERSION } from '../../version.ts';

/** What the proxy answers in place of the service, or makes of its answers. */

type Answer = { status: number; headers: Record<string, string>; body: string };

/** As the service itself refuses a call above the rate limit, on each of its surfaces. */
export function tooManyRequests(url: string, seconds: number): Answer {
  const message = 'Too many requests. Try again later.';
  const reason = 'over_rate_limit';
  const wait = String(Math.ceil(seconds));
  const limit = { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': wait };
  const ofAll = { 'x-request-id': randomUUID(), 'x-deckhand-version': VERSION };
  const headers = { ...ofAll, ...limit, 'retry-after': wait, 'content-type': 'application/json; charset=utf-8' };
  if (url.startsWith('/trpc')) {
    const data = { code: 'TOO_MANY_REQUESTS', httpStatus: 429, reason, retryAfterSeconds: Math.ceil(seconds) };
    return { status: 429, headers, body: JSON.stringify({ error: { json: { message, code: -32029, data } } }) };
  }
  const body = url.startsWith('/mcp')
    ? { jsonrpc: '2.0', id: null, error: { code: -32000, message, data: { status: 429, reason } } }
    : { error: true, message };
  return { status: 429, headers: { ...headers, 'x-error-reason': reason }, body: JSON.stringify(body) };
}

/** As a gateway that reaches no node: not in the service's words. */
export const unavailable = (seconds: number): Answer => ({
  status: 503,
  headers: { 'content-type': 'text/plain', 'retry-after': String(Math.ceil(seconds)) },
  body: 'Service Unavailable\n',
});

const UNKNOWN_FIELD = 'from_a_later_version';

/** The same JSON with an unknown field in each object of the result; other texts stay as they are. */
export function withUnknownFields(text: string): string {
  try {
    const parsed = JSON.parse(text);
    const answers = Array.isArray(parsed) ? parsed : [parsed];
    for (const answer of answers) addFields(answer.result?.data?.json ?? answer.data);
    return JSON.stringify(parsed);
  } catch {
    return text;
  }
}

function addFields(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) addFields(part);
  if (!Array.isArray(value)) Object.assign(value, { [UNKNOWN_FIELD]: true });
}

/** A later MINOR version, since only a MAJOR one may break callers. */
export const laterVersion = (version: string) => version.replace(/^(\d+)\.\d+\.\d+/, '$1.999.0');
