import { Readable } from 'node:stream';
import { constants, createGzip, gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply } from 'fastify';

/** Compressing smaller responses costs more than it saves. */
const SMALLEST_COMPRESSED_BYTES = 32 * 1024;

/** The fastest level shrinks JSON about ten times. Large chunks, since each one takes a turn of the event loop. */
const OPTIONS = { level: constants.Z_BEST_SPEED, chunkSize: 256 * 1024 };

/** Compresses large responses for callers who accept gzip, in another thread, so that the event loop is not blocked. */
export function compressLargeResponses(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length < SMALLEST_COMPRESSED_BYTES) return done(null, payload);
    varyByEncoding(reply);
    if (!acceptsGzip(request.headers['accept-encoding'])) return done(null, payload);

    gzip(payload, OPTIONS, (error, compressed) => {
      if (error) return done(error);
      reply.header('Content-Encoding', 'gzip').removeHeader('Content-Length');
      done(null, compressed);
    });
  });
}

/** Compresses a large response in the same way, one piece at a time. */
export async function compressPieces(pieces: Iterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Readable.from(pieces).pipe(createGzip(OPTIONS)).toArray());
}

/** For caches: the response depends on `Accept-Encoding`, besides what it depends on already. */
export function varyByEncoding(reply: FastifyReply): void {
  reply.header('Vary', [reply.getHeader('Vary'), 'Accept-Encoding'].filter(Boolean).join(', '));
}

/** According to RFC 9110: `gzip;q=0` refuses it, `*` means all encodings that are not listed. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const weights = new Map(
    String(header ?? '')
      .toLowerCase()
      .split(',')
      .map((part) => {
        const [coding, ...parameters] = part.split(';').map((word) => word.trim());
        const weight = parameters.find((parameter) => parameter.startsWith('q='));
        return [coding, weight === undefined ? 1 : Number(weight.slice('q='.length))];
      }),
  );
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0;
}
