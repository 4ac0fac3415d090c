import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { tooManyRequests } from '../../shared/errors.ts';
import { makeFairQueue } from '../runtime/fairQueue.ts';
import { cut } from '../runtime/jsonText.ts';
import type { Leaving } from '../runtime/leaving.ts';
import { acceptsGzip, compressPieces, varyByEncoding } from './compress.ts';

const busy = () => tooManyRequests('The service is busy. Try again shortly.', 1, 'service_busy');

/** Shorter ones, for example of small groups, are sent together. */
const SHORTEST_PIECE = 16 * 1024;

/** One is built at a time, since all are built by one thread. Callers take turns. */
const turns = makeFairQueue({
  running: 1,
  runningPerKey: 1,
  waiting: 1000,
  waitingPerKey: 200,
  refuse: busy,
});

/**
 * Sends a large response without blocking the event loop: each piece is built, and later sent, in a turn of its own. Nothing is
 * sent before all of it is built.
 */
export async function sendInPieces(
  request: FastifyRequest,
  reply: FastifyReply,
  parts: Iterable<string>[],
): Promise<FastifyReply> {
  const { exchange, headers } = request;
  const { caller, leaving, unsent } = exchange ?? {};
  const { pieces, bytes } = await turns.run(String(caller?.id), () => build(parts, leaving), { leaving });
  unsent?.setBytes(bytes);
  varyByEncoding(reply);
  if (acceptsGzip(headers['accept-encoding']))
    return reply.header('Content-Encoding', 'gzip').send(await compressPieces(pieces));
  return reply.header('Content-Length', bytes).send(Readable.from(inTurns(pieces)));
}

async function build(parts: Iterable<string>[], leaving: Leaving | undefined) {
  // Buffers, since V8 would copy strings of this size from one part of its heap to the next.
  const pieces: Buffer[] = [];
  let bytes = 0;
  let piece = '';
  const end = () => {
    const buffer = Buffer.from(piece);
    pieces.push(buffer);
    bytes += buffer.length;
    piece = '';
  };
  for (const part of parts) {
    for (const text of part) {
      for (const short of cut(text)) {
        piece += short;
        if (piece.length < SHORTEST_PIECE) continue;
        end();
        await setImmediate();
        if (leaving?.isGone) throw busy();
      }
    }
  }
  end();
  return { pieces, bytes };
}

async function* inTurns(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    yield piece;
    await setImmediate();
  }
}
