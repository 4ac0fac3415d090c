import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { FastifyInstance } from 'fastify';
import { FILE_SCHEMA_NAME, templateFileSchema } from '../../shared/templateFile.ts';
import type { Services } from '../api/services.ts';
import { makeDemoUsers } from '../database/seed/demoUsers.ts';
import { limitAddresses } from '../http/limitRequests.ts';
import { refuseUnknownPaths } from '../http/unknownRoute.ts';
import { type FixedContent, fixedContent, madeOnce, sendFixed } from './fixedContent.ts';
import { guidePages } from './guides.ts';
import { HTML } from './htmlPage.ts';

const PAGES = join(import.meta.dirname, 'pages');

const JSON_TYPE = 'application/json; charset=utf-8';
const JAVASCRIPT = 'text/javascript; charset=utf-8';
const TYPES: Record<string, string> = {
  '.html': HTML,
  '.css': 'text/css; charset=utf-8',
  '.js': JAVASCRIPT,
  '.svg': 'image/svg+xml',
};

/** Pages with an address of their own; all other files are below `/pages/`. */
const ADDRESSES: Record<string, string[]> = {
  'start.html': ['/'],
  'api.html': ['/docs', '/docs/'],
  'favicon.svg': ['/pages/favicon.svg', '/favicon.ico'],
};

/** The start page, the API page, the guides, the OpenAPI document and the schema of template files. Unknown paths get their 404 here, too. */
export async function pages(scope: FastifyInstance, { database, publicUrl, rateLimit }: Services): Promise<void> {
  limitAddresses(scope, rateLimit);
  refuseUnknownPaths(scope);
  const serve = (address: string, make: () => Promise<FixedContent>) =>
    scope.get(address, async (request, reply) => sendFixed(request, reply, await make()));

  // One route for each file: paths from callers never reach the file system.
  const files = pageFiles();
  for (const { file, type } of files) {
    const make = madeOnce(async () => fixedContent(type, await readFile(join(PAGES, file), 'utf8')));
    for (const address of ADDRESSES[file] ?? [`/pages/${file}`]) serve(address, make);
  }
  if (!files.some(({ file }) => file === 'client.js')) serve('/pages/client.js', madeOnce(bundleClient));
  for (const { address, make } of guidePages(() => publicUrl ?? scope.ownOrigin)) serve(address, make);

  const writeDocument = async () => {
    const { openApiDocument } = await import('../api/openapi/document.ts');
    return fixedContent(JSON_TYPE, JSON.stringify(openApiDocument(publicUrl)));
  };
  serve('/openapi.json', madeOnce(writeDocument));
  serve(
    `/${FILE_SCHEMA_NAME}`,
    madeOnce(async () => fixedContent(JSON_TYPE, JSON.stringify(templateFileSchema()))),
  );

  const demoUsers = makeDemoUsers(database);
  scope.get('/pages/demo-users.json', async (_request, reply) => {
    reply.header('Cache-Control', 'no-store');
    return demoUsers();
  });
}

const pageFiles = () =>
  readdirSync(PAGES, { recursive: true, encoding: 'utf8' }).flatMap((file) => {
    const type = TYPES[extname(file)];
    return type ? [{ file, type }] : [];
  });

/** The packed service has the client as a file. A checkout bundles it in a process of its own, since the bundler is large. */
async function bundleClient(): Promise<FixedContent> {
  const program = join(import.meta.dirname, '../package/pageClient.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  return fixedContent(JAVASCRIPT, stdout);
}
