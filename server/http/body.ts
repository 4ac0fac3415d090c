import type { FastifyInstance, FastifyRequest } from 'fastify';
import { badRequest } from '../errors.ts';

export const LARGEST_BODY_BYTES = 1024 * 1024;
export const DEEPEST_BODY = 64;

type Take = (text: string, request: FastifyRequest) => unknown;

/** Reads JSON bodies for a surface: one that is too large, too deep, not UTF-8 or not JSON by its type is a 400. */
export function acceptJson(scope: FastifyInstance, deepest: number, take: Take): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LARGEST_BODY_BYTES }, (request, body, done) => {
    try {
      mustBeJsonByType(request);
      done(null, take(decode(body as Buffer, deepest), request));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** No type at all is left to the operation: some need no body. */
function mustBeJsonByType({ headers }: FastifyRequest) {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== undefined && type !== 'application/json') throw badRequest(OTHER_TYPE);
}

const OTHER_TYPE = 'Send the body as Content-Type application/json.';

function decode(body: Buffer, deepest: number): string {
  if (depthOf(body) > deepest) throw badRequest(`The body is nested too deeply: at most ${DEEPEST_BODY} levels.`);
  try {
    return UTF_8.decode(body);
  } catch {
    throw badRequest('The body is not valid UTF-8.');
  }
}
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('The body is not valid JSON.');
  }
}

/** Fastify's own complaints about a body, in our words. */
export function asBadRequest(error: unknown): unknown {
  const { code = '' } = error as { code?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return badRequest('The body is too large: at most 1 MiB.');
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return badRequest(OTHER_TYPE);
  return code.startsWith('FST_ERR_CTP_') ? badRequest('The body could not be read.') : error;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING = new Set([0x5b, 0x7b]);
const CLOSING = new Set([0x5d, 0x7d]);

/** How deep the text nests; told before it is parsed, since what walks the parsed value would overflow the stack. */
function depthOf(body: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let isInText = false;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]!;
    if (isInText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (OPENING.has(byte)) deepest = Math.max(deepest, ++depth);
    else if (CLOSING.has(byte)) depth--;
  }
  return deepest;
}
