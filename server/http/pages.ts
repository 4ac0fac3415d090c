import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import type { Services } from '../services.ts';
import { limitAddresses } from './limitRequests.ts';

const PAGES = join(import.meta.dirname, 'pages');
const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The start page and the API page, without files from other hosts. */
export async function pages(scope: FastifyInstance, { publicUrl, rateLimit }: Services): Promise<void> {
  limitAddresses(scope, rateLimit);
  // Only fixed files: paths from callers never reach the file system.
  await scope.register(fastifyStatic, { root: PAGES, serve: false });
  scope.get('/', (_request, reply) => reply.sendFile('start.html'));
  scope.get('/docs', (_request, reply) => reply.sendFile('docs.html'));
  for (const file of ['pages.css', 'start.js', 'docs.js']) {
    scope.get(`/pages/${file}`, (_request, reply) => reply.sendFile(file));
  }
  for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']) {
    scope.get(`/docs/${file}`, (_request, reply) => reply.sendFile(file, SWAGGER_UI));
  }

  let document: ReturnType<typeof writeDocument> | undefined;
  scope.get('/openapi.json', async (request, reply) => {
    // Built at the first request, not during the start; retried after a failure.
    document ??= writeDocument(publicUrl).catch((error) => {
      document = undefined;
      throw error;
    });
    const { text, etag } = await document;
    reply.headers({ ETag: etag, 'Cache-Control': 'no-cache' });
    if (request.headers['if-none-match'] === etag) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(text);
  });
}

async function writeDocument(publicUrl: string | undefined): Promise<{ text: Buffer; etag: string }> {
  const { openApiDocument } = await import('../openapi/document.ts');
  const text = Buffer.from(JSON.stringify(openApiDocument(publicUrl)));
  return { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` };
}
