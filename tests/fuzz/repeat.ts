import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FuzzRequest, SocketRequest } from './request.ts';

/** A shell command that repeats the request; a long body is written to a file. */
export function repeat(request: FuzzRequest | SocketRequest, url: string): string {
  if (request.surface === 'socket') {
    const { hostname, port } = new URL(url);
    return `printf %s ${quoted(request.bytes.toString('base64'))} | base64 -d | nc ${hostname} ${port}`;
  }
  const { method, path, headers, body, isChunked } = request;
  const sent = isChunked ? [...headers, ['transfer-encoding', 'chunked'] as const] : headers;
  const given = sent.map(([name, value]) => `-H ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`);
  const data = body === undefined ? [] : [`--data-binary ${fitting(body)}`];
  return ['curl -i --path-as-is -g -X', method, ...given, ...data, quoted(url + path)].join(' ');
}

const LONGEST_SHOWN = 2000;

function fitting(body: Buffer): string {
  const text = body.toString();
  const isShowable = body.length <= LONGEST_SHOWN && Buffer.from(text).equals(body) && !text.includes('\0');
  if (isShowable && !text.startsWith('@')) return quoted(text);
  const path = join(mkdtempSync(join(tmpdir(), 'deckhand-fuzz-')), 'body');
  writeFileSync(path, body);
  return `@${path}`;
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
