import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

const PAGES = join(import.meta.dirname, 'pages');
const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The pages for people: a start page, and the API page, whose parts are all served from here. */
export async function pages(scope: FastifyInstance, { publicUrl }: { publicUrl: string | undefined }): Promise<void> {
  await scope.register(fastifyStatic, { root: PAGES, prefix: '/pages/', index: false });
  await scope.register(fastifyStatic, {
    root: SWAGGER_UI,
    prefix: '/docs/',
    decorateReply: false,
    index: false,
    allowedPath: (path) => SWAGGER_UI_FILES.has(path),
  });

  scope.get('/', (_request, reply) => reply.sendFile('start.html', PAGES));
  scope.get('/docs', (_request, reply) => reply.sendFile('docs.html', PAGES));

  let document: Promise<object> | undefined;
  scope.get('/openapi.json', async () => {
    // Made when first asked for: a start does not wait for it.
    document ??= import('./openapi.ts').then(({ openApiDocument }) => openApiDocument(publicUrl));
    return document;
  });
}

const SWAGGER_UI_FILES = new Set(['/swagger-ui.css', '/swagger-ui-bundle.js', '/favicon-32x32.png']);
