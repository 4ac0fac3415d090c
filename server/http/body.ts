import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../../shared/errors.ts';
import { LARGEST_BODY_BYTES, MOST_BODY_FIELDS } from '../../shared/limits.ts';
import { identifyAgain, settleBeforeBody } from '../call/answer.ts';

export const DEEPEST_BODY = 64;

declare module 'fastify' {
  interface FastifyRequest {
    /** The headers of the body as they were sent. */
    sentBody: SentBody;
  }
}

type SentBody = { type: string | undefined; length: string | undefined; encoding: string | undefined };

/** Leaves bodies to `readBody`: who may not call is refused before. Fastify goes by these headers. */
export function leaveBodies(scope: FastifyInstance): void {
  scope.decorateRequest('sentBody');
  scope.addHook('preParsing', (request, _reply, _payload, done) => {
    const { headers, method } = request;
    request.sentBody = {
      type: headers['content-type'],
      length: headers['content-length'],
      encoding: headers['transfer-encoding'],
    };
    // Without one, it refuses the method before our answer to unknown routes.
    headers['content-type'] = method === 'QUERY' ? JSON_TYPE : undefined;
    headers['content-length'] = headers['transfer-encoding'] = undefined;
    done();
  });
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
}

/**
 * The text of a JSON body; empty without one, which may have any content type. A body that is too large, too deep, not UTF-8 or
 * has another content type is a 400. If it came late, its caller is identified again.
 */
export async function readBody(request: FastifyRequest, reply: FastifyReply, deepest: number): Promise<string> {
  const { raw, exchange, sentBody } = request;
  if (isEmpty(sentBody)) return '';
  const { body, isLate } = await receive(raw, sentBody, () => exchange && settleBeforeBody(exchange));
  if (body instanceof Error) {
    // The rest of it may follow.
    reply.header('Connection', 'close');
    throw asBadRequest(body);
  }
  if (isLate && exchange) await identifyAgain(exchange);
  if (body.length === 0) return '';
  mustBeJsonByType(request);
  return decode(body, deepest);
}

const isEmpty = ({ length = '0', encoding }: SentBody) => length === '0' && encoding === undefined;

/** The body, or what is wrong with it. If it does not come with the headers, `settle` may refuse its caller at once. */
function receive(
  raw: IncomingMessage,
  { length }: SentBody,
  settle: () => Promise<void> | undefined,
): Promise<{ body: Buffer | Error; isLate: boolean }> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    let isDone = false;
    let settled: Promise<void> | undefined;
    const done = (body: Buffer | Error) => {
      isDone = true;
      if (settled) settled.then(() => resolve({ body, isLate }), reject);
      else resolve({ body, isLate });
    };
    if (Number(length) > LARGEST_BODY_BYTES) return done(tooLarge());
    const chunks: Buffer[] = [];
    let bytes = 0;
    raw.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LARGEST_BODY_BYTES) return void chunks.push(chunk);
      raw.removeAllListeners('data').pause();
      done(tooLarge());
    });
    raw.once('end', () => done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    raw.once('error', done);
    // The caller may have left before this listens.
    raw.once('close', () => raw.readableEnded || done(incomplete()));
    if (raw.destroyed) return done(incomplete());
    // By then Node has parsed what came with the headers.
    setImmediate(() => {
      if (isDone || raw.complete || raw.destroyed) return;
      isLate = true;
      settled = settle();
      settled?.catch((error) => {
        // Node discards the rest of it.
        raw.removeAllListeners('data').resume();
        reject(error);
      });
    });
  });
}

const incomplete = () => badRequest('The body is incomplete.', 'body_incomplete');
const tooLarge = () => badRequest('The body is too large: at most 1 MiB.', 'body_too_large');

/** Answers without reading bodies, whatever their type: Node discards them. Fastify goes by these headers. */
export function ignoreBodies(scope: FastifyInstance): void {
  scope.addHook('preParsing', ({ headers }, _reply, _payload, done) => {
    for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete headers[name];
    done();
  });
}

/** A missing content type is allowed here, since some operations need no body. */
function mustBeJsonByType({ sentBody }: FastifyRequest) {
  const type = sentBody.type?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== undefined && type !== JSON_TYPE) throw badRequest(OTHER_TYPE, 'body_not_json');
}

const JSON_TYPE = 'application/json';
const OTHER_TYPE = 'Send the body as Content-Type application/json.';

function decode(body: Buffer, deepest: number): string {
  mustBeParsable(body, deepest, 'body');
  try {
    return UTF_8.decode(body);
  } catch {
    throw badRequest('The body is not valid UTF-8.', 'body_not_json');
  }
}
const UTF_8 = new TextDecoder('utf-8', { fatal: true });

/** Refuses JSON that would take too long to parse or to walk. */
export function mustBeParsable(json: Buffer, deepest: number, name: string): void {
  const { depth, fields } = shapeOf(json);
  if (depth > deepest)
    throw badRequest(`The ${name} is nested too deeply: at most ${DEEPEST_BODY} levels.`, 'body_too_large');
  if (fields > MOST_BODY_FIELDS)
    throw badRequest(`The ${name} has too many fields: at most ${MOST_BODY_FIELDS}.`, 'body_too_large');
}

export function parseJson(text: string, name = 'body'): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest(`The ${name} is not valid JSON.`, 'body_not_json');
  }
}

/** Converts Fastify's errors about a body into a 400 with our message. */
export function asBadRequest(error: unknown): unknown {
  const { code = '' } = error as { code?: string };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge();
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return badRequest(OTHER_TYPE, 'body_not_json');
  // Node's message if the caller disconnects while sending the body.
  if ((error as Error).message === 'aborted') return incomplete();
  return code.startsWith('FST_ERR_CTP_') ? badRequest('The body could not be read.', 'body_incomplete') : error;
}

/**
 * The depth and number of fields of the text, computed before parsing, since walking a deeply nested value would overflow the
 * stack.
 */
function shapeOf(body: Buffer): { depth: number; fields: number } {
  let depth = 0;
  let deepest = 0;
  let fields = 0;
  for (let at = 0; at < body.length; at++) {
    switch (body[at]) {
      case QUOTE:
        at = endOfText(body, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        if (depth > deepest) deepest = depth;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x3a: // :
        fields++;
    }
  }
  return { depth: deepest, fields };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function endOfText(body: Buffer, begin: number): number {
  let at = begin + 1;
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
  return at;
}
