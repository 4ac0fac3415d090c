import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { notFound } from '../../shared/errors.ts';
import { FILE_SCHEMA_NAME, templateFileSchema } from '../../shared/templateFile.ts';
import type { Services } from '../api/services.ts';
import { makeDemoUsers } from '../database/seed/demoUsers.ts';
import { callbackOf, loopbackPortOf, SSO_CALLBACK } from '../domain/account/sso.ts';
import { limitAddresses } from '../http/limitRequests.ts';
import { refuseUnknownPaths } from '../http/unknownRoute.ts';
import { hostnameOf, isLoopback } from '../runtime/host.ts';
import { appPage } from './appPage.ts';
import { BUILT, BUILT_ADDRESS, readBuild } from './built.ts';
import { type FixedContent, fixedContent, madeOnce, sendFixed } from './fixedContent.ts';
import { guidePages } from './guides.ts';
import { HTML } from './htmlPage.ts';
import { NOT_FOUND_PAGE } from './notFoundPage.ts';

const PAGES = join(import.meta.dirname, 'pages');

const JSON_TYPE = 'application/json; charset=utf-8';
const JAVASCRIPT = 'text/javascript; charset=utf-8';
const TYPES: Record<string, string> = {
  '.html': HTML,
  '.css': 'text/css; charset=utf-8',
  '.js': JAVASCRIPT,
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** Pages with an address of their own; all other files are below `/pages/`. */
const ADDRESSES: Record<string, string[]> = {
  'api.html': ['/docs', '/docs/'],
  'favicon.svg': ['/pages/favicon.svg', '/favicon.ico'],
};

/** What the app shows at its addresses is decided in the browser: `app/address.ts`. */
const APP_ADDRESSES = [
  '/',
  ...['/projects', '/account', '/admin'].flatMap((path) => [path, `${path}/*`]),
  // The links in mails.
  ...['/reset-password', '/invitation', '/confirm-address'],
];

/** The app, the API page, the guides, the OpenAPI document and the schema of template files. Unknown paths get their 404 here, too. */
export async function pages(
  scope: FastifyInstance,
  { database, publicUrl, rateLimit, showsDemoUsersToAll, identityProviders }: Services,
): Promise<void> {
  limitAddresses(scope, rateLimit);
  refuseUnknownPaths(scope, NOT_FOUND_PAGE);
  const serve = (address: string, make: () => Promise<FixedContent>) =>
    scope.get(address, async (request, reply) => sendFixed(request, reply, await make()));

  // One route for each file: paths from callers never reach the file system.
  for (const { file, type } of pageFiles()) {
    const make = madeOnce(async () => fixedContent(type, await readFile(join(PAGES, file), 'utf8')));
    for (const address of ADDRESSES[file] ?? [`/pages/${file}`]) serve(address, make);
  }
  const build = readBuild();
  for (const { address, make } of builtFiles(build)) serve(address, make);
  const app = madeOnce(async () => fixedContent(HTML, appPage(build)));
  for (const address of APP_ADDRESSES) serve(address, app);
  const callbacks = [...identityProviders.keys()].map((name) => callbackOf(identityProviders, name));
  for (const address of new Set([SSO_CALLBACK, ...callbacks]))
    scope.get(address, async (request, reply) => {
      const sent = new URL(request.url, 'http://page').searchParams;
      const port = await loopbackPortOf(database.db, identityProviders, sent.get('state') ?? '', address);
      reply.header('Referrer-Policy', 'no-referrer');
      if (port === undefined) return sendFixed(request, reply, await app());
      // A command waits there, on the machine of the person.
      return reply.header('Cache-Control', 'no-store').redirect(`http://127.0.0.1:${port}/callback?${sent}`, 302);
    });
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
  scope.get('/pages/demo-users.json', async ({ headers }, reply) => {
    reply.header('Cache-Control', 'no-store');
    // A page of another name whose address was changed to this machine's would read them, too.
    const host = URL.canParse(`http://${headers.host}`) ? hostnameOf(`http://${headers.host}`) : '';
    return showsDemoUsersToAll || isLoopback(host) ? demoUsers() : [];
  });
}

const pageFiles = () =>
  readdirSync(PAGES, { recursive: true, encoding: 'utf8' }).flatMap((file) => {
    const type = TYPES[extname(file)];
    return type ? [{ file, type }] : [];
  });

/** Their names have a hash of their contents, except for that of the client, which others import. */
function builtFiles(build: ReturnType<typeof readBuild>) {
  const files = build ? [...build.files, ...build.before] : [];
  return files.map((file) => {
    const type = TYPES[extname(file)] ?? 'application/octet-stream';
    const isNamedByContent = /-[\w-]{8}\.\w+$/.test(file);
    const read = async () => fixedContent(type, await readFile(join(BUILT, file)).catch(refuseGone), isNamedByContent);
    return { address: file === 'client.js' ? '/pages/client.js' : `${BUILT_ADDRESS}/${file}`, make: madeOnce(read) };
  });
}

/** A later build has removed it. */
function refuseGone(): never {
  throw notFound('There is no such path.', 'unknown_path');
}
