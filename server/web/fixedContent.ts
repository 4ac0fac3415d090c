import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { acceptsGzip, varyByEncoding } from '../http/compress.ts';

/** Content that stays the same while the service runs: hashed and compressed once. */
export type FixedContent = { type: string; plain: Buffer; compressed: Buffer; etag: string; caching: string };

const compress = promisify(gzip);

/** What is named by its content never changes at its address. */
export async function fixedContent(
  type: string,
  content: string | Buffer,
  isNamedByContent = false,
): Promise<FixedContent> {
  const plain = Buffer.from(content);
  const hash = createHash('sha256').update(plain).digest('base64url');
  // A weak ETag, since it is the same with and without compression.
  const caching = isNamedByContent ? 'public, max-age=31536000, immutable' : 'no-cache';
  return { type, plain, compressed: await compress(plain, { level: 9 }), etag: `W/"${hash}"`, caching };
}

/** Makes something at the first request, not during the start; a failure is not kept. */
export function madeOnce<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Sends it compressed if the caller accepts that, or a 304 if the caller has it. */
export function sendFixed(request: FastifyRequest, reply: FastifyReply, content: FixedContent): FastifyReply {
  const { type, plain, compressed, etag, caching } = content;
  varyByEncoding(reply);
  reply.headers({ ETag: etag, 'Cache-Control': caching });
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();

  reply.type(type);
  if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(plain);
  return reply.header('Content-Encoding', 'gzip').send(compressed);
}

/** Compared as RFC 9110 says, since a cache may have several versions and may make a strong ETag of ours. */
const isKnown = (header: string | undefined, etag: string) =>
  (header ?? '').split(',').some((known) => known.trim().replace(/^(?!W\/)/, 'W/') === etag);
