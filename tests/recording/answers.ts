import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { start } from '../../server/boot/start.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { migratedArchive } from '../harness/process.ts';
import type { Call, Who } from './call.ts';
import { calls } from './calls.ts';

/** An answer, with what differs between runs replaced by placeholders; only the headers that are not the usual ones. */
export type RecordedAnswer = { status: number; headers?: Record<string, string | null>; body: unknown };
export type Recording = Record<string, RecordedAnswer>;

export const FILE = join(import.meta.dirname, 'answers.json');
export const readRecording = (): Recording => JSON.parse(readFileSync(FILE, 'utf8'));

/** Makes all calls, one after another, to a service with new demo data. */
export async function makeCalls(): Promise<Recording> {
  const service = await startInMemory({});
  const limited = await startInMemory({ RATE_LIMIT_PER_MINUTE: '1' });
  const tokens: Partial<Record<Who, string>> = {};
  const recording: Recording = {};
  for (const call of calls) {
    const { url } = call.isLimited ? limited : service;
    const response = await send(url, call, tokens);
    const text = await response.text();
    const signedIn = /: (\w+) signs in/.exec(call.name)?.[1] as Who | undefined;
    if (signedIn) tokens[signedIn] = JSON.parse(text).data.token;
    const headers = unusualHeaders(response.headers);
    recording[call.name] = { status: response.status, ...(headers && { headers }), body: bodyOf(text, url) };
  }
  await Promise.all([service.stop(), limited.stop()]);
  return recording;
}

/** With the default settings. */
const startInMemory = async (more: Record<string, string>) => {
  const DATA_DIR = `${IN_MEMORY}${await migratedArchive()}`;
  const settings = { DATA_DIR, JWT_SECRET: 'a secret for tests that nobody else uses', PORT: '0', ...more };
  return start(readSettings(settings), pino({ level: 'silent' }), () => undefined);
};

function send(url: string, { by, method, path, headers, body }: Call, tokens: Partial<Record<Who, string>>) {
  const token = tokens[by];
  // As bytes, since fetch would add a content type to a text.
  const bytes = typeof body === 'string' ? new TextEncoder().encode(withTokens(body, tokens)) : body;
  return fetch(url + path, {
    method,
    headers: { accept: 'application/json', ...(token && { authorization: `Bearer ${token}` }), ...headers },
    ...(bytes && { body: Uint8Array.from(bytes) }),
  });
}

/** `{token of otp}` stands for the token that otp got. */
const withTokens = (body: string, tokens: Partial<Record<Who, string>>) =>
  body.replace(/\{token of (\w+)\}/, (_, who: Who) => tokens[who]!);

/** The headers of the interface, as most answers have them. */
const USUAL_HEADERS: Record<string, string | null> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-ratelimit-limit': '600',
  'x-ratelimit-remaining': '<number>',
  'x-request-id': '<uuid>',
  'retry-after': null,
  allow: null,
};

function unusualHeaders(headers: Headers): RecordedAnswer['headers'] {
  const sent = Object.keys(USUAL_HEADERS).map((name) => [name, headerOf(headers, name)] as const);
  const unusual = sent.filter(([name, value]) => value !== USUAL_HEADERS[name]);
  return unusual.length > 0 ? Object.fromEntries(unusual) : undefined;
}

function headerOf(headers: Headers, name: string): string | null {
  const value = headers.get(name);
  if (value !== null && /^(x-ratelimit-remaining|retry-after)$/.test(name)) return value.replace(/^\d+$/, '<number>');
  return value && withPlaceholders(value);
}

/** Parsed, to be readable; as text if that would lose something. */
function bodyOf(text: string, url: string): unknown {
  const lasting = withPlaceholders(text.replaceAll(url, '<service>'));
  return isExactJson(lasting) ? JSON.parse(lasting, readJsonText) : lasting;
}

/** Fields with JSON as text, such as `board` of boards/get. */
const readJsonText = (_: string, value: unknown) =>
  typeof value === 'string' && value.startsWith('{') && isExactJson(value) ? { '<text>': JSON.parse(value) } : value;

function isExactJson(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}

const withPlaceholders = (text: string) =>
  text
    .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>')
    .replace(/"version":"\d+-\d+"/g, '"version":"<version>"')
    .replace(/"retryAfterSeconds":\d+/g, '"retryAfterSeconds":"<number>"')
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '<uuid>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (time) => (isRecent(time) ? '<time>' : time));

/** The calls send times that are decades away. */
const isRecent = (time: string) => Math.abs(Date.parse(time) - Date.now()) < A_YEAR;
const A_YEAR = 365 * 24 * 60 * 60 * 1000;

const WIDTH = 120;

/** Readable JSON: what fits on one line is on one. */
export function pretty(value: unknown, indent = ''): string {
  const line = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || indent.length + line.length <= WIDTH) return line;
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const parts = Object.entries(value).map(([key, part]) =>
    Array.isArray(value) ? pretty(part, inner) : `${JSON.stringify(key)}: ${pretty(part, inner)}`,
  );
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}
