import { execFile } from 'node:child_process';
import { readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { operationsOf } from '../../server/api/openapi/document.ts';
import { procedures, subscriptions } from '../../server/api/procedures.ts';
import { document } from '../../server/contract/violations.ts';
import { BUILT } from '../../server/web/built.ts';
import { hasBrowser, openBrowser } from '../harness/browser.ts';
import { commentsAt, undocumented } from '../harness/docComments.ts';
import { blocksOf } from '../harness/guide.ts';
import { comparisonOf, compile, givenInstalledClient, givenTarball, pack, strictly } from '../harness/packedClient.ts';
import { removeProcesses } from '../harness/process.ts';
import { requestOf, writeSample } from '../harness/samples.ts';
import { givenService } from '../harness/service.ts';
import { givenProject, givenToken, givenUser, PASSWORD } from '../harness/world.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** A new project with the package installed, and a service that it can call. */
let project: string;
let service: { url: string; email: string; token: string };
let contents: string;
let installed: string[];
/** The printed types of all procedures. */
let types: string;
let guide: string;

beforeAll(async () => {
  [project, service] = await Promise.all([givenInstalledClient(), givenServiceWithUser()]);
  contents = join(project, 'node_modules/deckhand-client');
  installed = await readdir(join(project, 'node_modules'));
  types = await readFile(join(contents, 'procedures.d.ts'), 'utf8');
  guide = await readFile(join(contents, 'README.md'), 'utf8');
  await write({ 'right.ts': RIGHT });
});
afterAll(removeProcesses);

async function write(programs: Record<string, string>): Promise<string[]> {
  for (const [name, code] of Object.entries(programs)) await writeFile(join(project, name), code);
  return Object.keys(programs);
}

const codeIn = (text: string) => [...text.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
const named = (name: string, codes: string[]) => Object.fromEntries(codes.map((code, at) => [`${name}${at}.ts`, code]));

describe('the packed client', () => {
  it('is the same byte for byte when it is built again, and lists what it contains', async () => {
    const tarball = await givenTarball('client');
    const again = join(ROOT, 'dist', basename(tarball));
    await rm(again, { force: true });
    await pack('client');
    const bill = JSON.parse(await readFile(join(contents, 'sbom.cdx.json'), 'utf8'));
    const licences = await readFile(join(contents, 'LICENSES.txt'), 'utf8');

    expect((await readFile(again)).equals(await readFile(tarball))).toBe(true);
    expect(bill).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'deckhand-client' } } });
    const names = bill.components.map(({ name, version }: { name: string; version: string }) => `${name} ${version}`);
    expect(names).toContain(`@trpc/client ${packageJson.dependencies['@trpc/client']}`);
    expect(names.filter((name: string) => !licences.includes(name))).toEqual([]);
  });

  it('has no dependencies, no TypeScript sources, and a README whose links are in the package', async () => {
    const files = await readdir(contents);

    expect(installed.filter((name) => !name.startsWith('.'))).toEqual(['deckhand-client']);
    expect(files.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
    expect(guide).toMatch(/^# .+\n\n`deckhand-client` calls every procedure of a Deckhand service/);
    expect(files).toEqual(expect.arrayContaining([...guide.matchAll(LINK)].map(([, file]) => file)));
  });

  it('compiles in strict mode, declarations too, with all examples, and rejects what is unknown', async () => {
    const examples = codeIn(types).map((code) => code.replaceAll(/^\s*\* ?/gm, ''));
    const calls = procedures.map(({ name, type, needsInput }) => {
      const call = `void client.${name}.${type === 'query' ? 'query' : 'mutate'}();`;
      return needsInput ? `// @ts-expect-error\n${call}` : call;
    });
    const paths = operationsOf(document).map(({ path }) => path);
    const files = await write({
      'process.d.ts': PROCESS,
      'required.cts': REQUIRED_TYPES,
      'wrong.ts': WRONG,
      'inputs.ts': CONNECTED + calls.join('\n'),
      'examples.ts': CONNECTED + examples.map((code, at) => `export async function call${at}() {\n${code}}`).join('\n'),
      ...named('guide', codeIn(guide)),
      ...named(
        'sample',
        paths.map((path) => writeSample('TypeScript', requestOf(path, 'https://example.test'))),
      ),
    });

    expect(examples).toHaveLength(procedures.length + subscriptions.length);
    expect(codeIn(guide).length).toBeGreaterThan(2);
    expect(await compile(project, strictly('nodenext'), 'right.ts', ...files)).toEqual([
      expect.stringMatching(/^wrong\.ts\(2,.*'titel' does not exist/),
      expect.stringMatching(/^wrong\.ts\(3,.*Type 'number' is not assignable to type 'string'/),
      expect.stringMatching(/^wrong\.ts\(4,.*Type '"highest"' is not assignable/),
      expect.stringMatching(/^wrong\.ts\(5,.*Property 'conjure' does not exist/),
      expect.stringMatching(/^wrong\.ts\(6,.*Property 'query' does not exist/),
      expect.stringMatching(/^wrong\.ts\(7,.*Property 'colour' does not exist/),
      expect.stringMatching(/^wrong\.ts\(8,.*no overlap/),
      expect.stringMatching(/^wrong\.ts\(9,.*no overlap/),
      expect.stringMatching(/^wrong\.ts\(10,.*'"cards\.conjure"' is not assignable/),
      expect.stringMatching(/^wrong\.ts\(11,.*'"code_wrong"' is not assignable/),
      expect.stringMatching(/^wrong\.ts\(12,.*Property 'boards' does not exist/),
    ]);
  });

  it('compiles for bundlers', async () => {
    expect(await compile(project, strictly('bundler'), 'right.ts')).toEqual([]);
  });

  it('calls a running service', async () => {
    const { url, email } = service;
    const { stdout } = await run(process.execPath, ['right.ts'], {
      cwd: project,
      env: { URL: url, EMAIL: email, PASSWORD },
    });

    expect(JSON.parse(stdout)).toEqual({
      ...{ title: 'From a package', isDate: true, boards: 0 },
      ...{ status: 422, reason: 'invalid_input', fields: { title: ['title is required.'] } },
    });
  });

  it('handles events, also of a service that can not be reached at first', async () => {
    await write({ 'handlers.ts': HANDLERS });
    const { url, email } = service;
    const { stdout } = await run(process.execPath, ['handlers.ts'], {
      cwd: project,
      env: { URL: url, EMAIL: email, PASSWORD },
    });

    expect(stdout).toBe('card.created\n');
  });

  it('can be loaded by require, as the same module as by import', async () => {
    await write({ 'required.cjs': REQUIRED });

    const { stdout } = await run(process.execPath, ['required.cjs'], { cwd: project, env: { URL: service.url } });

    expect(JSON.parse(stdout)).toEqual({ isSame: true, isKnown: true, status: 401, testing: 'function' });
  });

  it('has the version of the service, as the client of the pages, and nothing else of its package.json', async () => {
    const packed = await readFile(join(contents, 'client.js'), 'utf8');
    const manifest = JSON.parse(await readFile(join(contents, 'package.json'), 'utf8'));

    expect(manifest.version).toBe(packageJson.version);
    for (const code of [packed, await readFile(join(BUILT, 'client.js'), 'utf8')]) {
      expect(code).toMatch(new RegExp(`^var VERSION = .*"${packageJson.version}"`, 'm'));
      expect(code).not.toContain(packageJson.description);
    }
  });

  it('needs only what browsers have', async () => {
    const code = await readFile(join(contents, 'client.js'), 'utf8');
    const browser = {
      ...{ fetch, setTimeout, clearTimeout, performance, crypto },
      ...{ AbortController, Headers, Response, TextEncoder, URL },
    };

    const { createClient }: { createClient: (options: ClientOptions) => Client } = runInNewContext(
      code.replace(/^export \{(.*)\};$/m, '({$1})'),
      browser,
    );
    const client = createClient({ url: service.url, signIn: { email: service.email, password: PASSWORD } });

    expect((await client.account.whoAmI.query()).account.email).toBe(service.email);
  });

  it.skipIf(!hasBrowser)('signs in and calls from a page', async () => {
    const page = await (await openBrowser()).newPage();
    const { url, email } = service;
    const path = join(contents, 'client.js');
    await page.route(`${url}/client.js`, (route) => route.fulfill({ path, contentType: 'text/javascript' }));
    await page.goto(url);

    const title = await page.evaluate(
      `import('/client.js').then(async ({ createClient }) => {
        const client = createClient({ url: location.origin, signIn: ${JSON.stringify({ email, password: PASSWORD })} });
        return (await client.cards.create.mutate({ title: 'From a page' })).card.title;
      })`,
    );
    await page.close();

    expect(title).toBe('From a page');
  });
});

describe('the types of the packed client', () => {
  it('have a comment on everything that is exported and its members, shown where a procedure is called', async () => {
    const comment = commentsAt(join(project, 'right.ts'));

    expect(undocumented(['client', 'router', 'events/events'].map((name) => join(contents, `${name}.d.ts`)))).toEqual(
      [],
    );
    expect(comment('client.as({ projectId: 2 }).cards.create')).toContain('Requires the role member.');
    expect(comment('card.due_date')).toBe('When it is due.');
    expect(comment('client.tags.list')).toMatch(/^List tags\.\n\nThe tags of the project in order/);
    expect(comment('tag.color')).toBe('Its color.');
  });

  it('say what a method does, who may call it, and what an API key needs', () => {
    const plain = types.replaceAll(/^ *(\*(?!\/) ?)?/gm, '');

    expect(plain).toContain(`/**
Delete a comment.

Deletes a comment with all its replies; only for its author or an owner.

Requires the role member. An API key needs the scope \`comments:write\`.

@example
\`\`\`ts
await client.comments.delete.mutate({ id: 1 });
\`\`\`
*/
delete: Mutation<CommentsDeleteInput, CommentsDeleteOutput>;`);
    expect(plain).toContain('For superadmins. An API key needs the scopes `templates:write` and `admin`.');
    expect(plain).toContain("For every signed-in user. An API key can't call it.");
  });

  it.each([
    ['CardsListInput', 'limit', /1 to 200; 50 if not sent\. A page has fewer if they are long\. \*\//],
    ['CardsCreateInput', 'title', /\. 1 to 255 characters\. \*\//],
    ['CardsCreateInput', 'description', /At most 65,536 characters\. \*\//],
    ['SubscriptionsSetTrialInput', 'days', /14 if not sent\. 0 to 3,650\. \*\//],
    ['UsersCreateInput', 'kind', /`person` by default\. \*\//],
    ['AccountChangePasswordInput', 'new_password', /8 to 1,000 characters\. \*\//],
    ['ProjectsCreateInput', 'tools', /At most 100 elements, each 1 to 100 characters, `\[\]` by default\. \*\//],
  ])('name the limits and the default of %s.%s once', (type, field, limits) => {
    const fields = types.slice(types.indexOf(`export type ${type} =`));
    const [text = ''] =
      fields.slice(0, fields.search(new RegExp(`^ +${field}\\??:`, 'm'))).match(/\/\*\*[^/]*\*\/\s*$/) ?? [];

    expect(text.trim().replaceAll(/\s*\n\s*\*? ?/g, ' ')).toMatch(limits);
  });

  it('have short lines that TypeScript reads as written, without headers or options of the command line', () => {
    const lines = types.split('\n').filter((line) => /^\s*\/?\*/.test(line));
    /** A line of an example: part of a call. */
    const isCode = (line: string) => /await client\.|for await \(|^\s*\*\s+( {2}\w+:|\}\)+[; ]|[{}[\]]+,?$)/.test(line);

    expect(types.match(/.*(X-[A-Z]\w+|Idempotency-Key|(?<!-)--[a-z]\w+|\/v1\/).*/g) ?? []).toEqual([]);
    expect(lines.filter((line) => line.length > 130)).toEqual([]);
    // Outside of code these have a meaning in TSDoc.
    const inTags = lines.filter(
      (line) => /[{}<>@]/.test(line.replaceAll(/`[^`]*`|@example|@deprecated/g, '')) && !isCode(line),
    );
    expect(inTags).toEqual([]);
  });

  it('are the same as those of the service: procedures, errors and the transformer', async () => {
    const ofClient = comparisonOf(
      (path) => `Procedures${path}`,
      (path) => `Packed${path}`,
    );
    const ofRouter = comparisonOf(
      (path) => `CallOf<OwnRouter['_def']['record']${path}>`,
      (path) => `CallOf<PackedRouter['_def']['record']${path}>`,
    );
    await linkPackages();
    const files = await write({ 'sameClient.ts': SAME_CLIENT + ofClient, 'sameRouter.ts': SAME_ROUTER + ofRouter });
    const settings = { extends: join(ROOT, 'tsconfig.json'), include: [], compilerOptions: { types: [] } };

    expect(ofClient).toContain('cards.create');
    expect(await compile(project, settings, ...files)).toEqual([]);
  });
});

describe('with the types of Node and other packages', () => {
  beforeAll(async () => {
    await linkPackages();
    const program = await readFile(join(ROOT, 'tests/harness/stockClient.ts'), 'utf8');
    await write({
      'connect.ts': program.replace('../../client/router.ts', 'deckhand-client/router'),
      'stock.ts': STOCK,
    });
  });

  it("the guides' programs, tRPC's own client and TanStack Query compile, and reject what is unknown", async () => {
    const { compilerOptions } = strictly('nodenext');
    const onNode = { ...compilerOptions, types: ['node'], skipLibCheck: true, allowImportingTsExtensions: true };
    const pages = ['tutorial.md', 'recipes.md'].map((page) => readFile(join(ROOT, 'docs', page), 'utf8'));
    const blocks = (await Promise.all(pages)).map((page) => blocksOf(page).filter(({ language }) => language === 'ts'));
    const programs = blocks.flat().map(({ fileName, code }): [string, string] => [fileName!, code]);
    const files = await write({ ...Object.fromEntries(programs), 'wrongCalls.ts': WRONG_CALLS });

    expect(blocks.map(({ length }) => length > 0)).toEqual([true, true]);
    expect(await compile(project, { compilerOptions: onNode }, 'stock.ts', ...files)).toEqual([
      expect.stringMatching(/^wrongCalls\.ts\(5,.*Property 'conjure' does not exist/),
      expect.stringMatching(/^wrongCalls\.ts\(6,.*'titel' does not exist/),
      expect.stringMatching(/^wrongCalls\.ts\(7,.*No overload matches this call/),
      expect.stringMatching(/^wrongCalls\.ts\(8,.*no overlap/),
    ]);
  });

  it('editors show the comments of procedures and fields where those call', () => {
    const comment = commentsAt(join(project, 'stock.ts'));

    expect(comment('client.boards.list')).toContain('An API key needs the scope `boards:read`.');
    expect(comment('trpc.cards.list')).toContain('An API key needs the scope `cards:read`.');
    expect(comment('got.card.due_date')).toBe('When it is due.');
  });

  it('those call a running service', async () => {
    const env = { URL: service.url, TOKEN: service.token };
    const { stdout } = await run(process.execPath, ['stock.ts'], { cwd: project, env });

    expect(JSON.parse(stdout)).toEqual({
      ...{ due: '2030-01-31T09:30:00.000Z', boards: 0, same: true },
      ...{ listed: expect.arrayContaining(['By httpLink']), refused: '422 invalid_input: title' },
    });
  });
});

const LINK = /\]\((?!https?:|#)([^)#]*)/g;
const PROCESS = 'declare const process: { env: Record<string, string | undefined> };\n';
const CONNECTED = `import { createClient } from 'deckhand-client';\nconst client = createClient({ url: '' });\n`;

const RIGHT = `import { type Card, type CallMeta, createClient, isDeckhandError, isRefusal, type Reason, type ReasonOf } from 'deckhand-client';

const { URL: url = '', EMAIL: email = '', PASSWORD: password = '' } = process.env;
const client = createClient({ url, signIn: { email, password } });
const { card } = await client.cards.create.mutate({ title: 'From a package', priority: 'high' });
const { boards } = await client.boards.list.query();
const same: Card = card;
const due: Date | null = card.due_date;
export const create = client.as({ projectId: 2 }).cards.create;
for await (const tag of client.tags.list.each()) console.log(tag.color, due);
for await (const { tags, next_cursor } of client.tags.list.each().pages()) if (next_cursor) console.log(tags[0]?.color);
const { data, meta }: { data: { boards: unknown[] }; meta: CallMeta } = await client.boards.list.query.withMeta();
try {
  await client.cards.create.mutate({ title: '' });
} catch (error) {
  if (isDeckhandError(error, 'cards.create')) {
    const own: ReasonOf<'cards.create'> | undefined = error.reason;
    if (error.reason !== 'invalid_input' && error.reason !== 'unknown_reference') console.log(own, data, meta.quota?.remaining);
  }
  if (!isRefusal(error)) throw error;
  const { status, reason, fields } = error;
  const known: Reason | undefined = reason;
  const isDate = card.created_at.getFullYear() > 2000;
  console.log(JSON.stringify({ title: same.title, isDate, boards: boards.length, status, reason: known, fields }));
}

${PROCESS}`;

const WRONG = `import { createClient, type DeckhandError, isDeckhandError, type ReasonOf } from 'deckhand-client'; const client = createClient({ url: '' });
await client.cards.create.mutate({ titel: 'A wrong field' });
await client.cards.create.mutate({ title: 7 });
await client.cards.create.mutate({ title: 'A wrong choice', priority: 'highest' });
await client.cards.conjure.mutate({ title: 'A wrong procedure' });
await client.cards.create.query({ title: 'A mutation is no query' });
(await client.boards.list.query()).boards[0]?.colour;
(await client.boards.list.query().catch((error: DeckhandError) => error.reason === 'code_wanted'));
export const mayLeave = (error: unknown) => isDeckhandError(error, 'cards.create') && error.reason === 'last_owner';
export const isUnknown = (error: unknown) => isDeckhandError(error, 'cards.conjure');
export const reason: ReasonOf<'cards.create'> = 'code_wrong';
for await (const { boards } of client.cards.list.each().pages()) console.log(boards);
`;

const HANDLERS = `import { createClient } from 'deckhand-client';
import { followEvents, memoryStore } from 'deckhand-client/events';

const { URL: url = '', EMAIL: email = '', PASSWORD: password = '' } = process.env;
let failures = 2;
const unreachable = () => Promise.reject(new TypeError('fetch failed'));
const client = createClient({
  ...{ url, signIn: { email, password }, retries: 0 },
  fetch: (...sent) => (failures-- > 0 ? unreachable() : fetch(...sent)),
});
const options = { store: memoryStore(), on: { 'card.created': ({ type }) => console.log(type) }, isOnce: true };
await followEvents(client, options);
await client.cards.create.mutate({ title: 'Handled' });
failures = 2;
await followEvents(client, options);
`;

const REQUIRED = `const { createClient, DeckhandError, isDeckhandError } = require('deckhand-client');
const { fakeClient } = require('deckhand-client/testing');
const client = createClient({ url: process.env.URL });
client.boards.list.query().catch(async (error) => {
  const imported = await import('deckhand-client');
  const isSame = imported.DeckhandError === DeckhandError;
  const isKnown = isDeckhandError(error, 'boards.list') && imported.isDeckhandError(error);
  console.log(JSON.stringify({ isSame, isKnown, status: error.status, testing: typeof fakeClient }));
});
`;

const REQUIRED_TYPES = `import deckhand = require('deckhand-client');

const client = deckhand.createClient({ url: process.env.URL ?? '' });
export const boards: Promise<{ boards: deckhand.Board[] }> = client.boards.list.query();`;

const STOCK = `import { MutationObserver } from '@tanstack/react-query';
import { createTRPCClient, httpLink } from '@trpc/client';
import superjson from 'superjson';
import type { AppRouter } from 'deckhand-client/router';
import { connect, explain } from './connect.ts';

const { URL: url = '', TOKEN: token = '' } = process.env;
const link = httpLink({ url: url + '/trpc', transformer: superjson, headers: { authorization: 'Bearer ' + token } });
const single = createTRPCClient<AppRouter>({ links: [link] });
const { client, queryClient, trpc } = connect(url, token);

const { card } = await single.cards.create.mutate({ title: 'By httpLink', due_date: new Date('2030-01-31T09:30:00Z') });
const [{ boards }, got] = await Promise.all([client.boards.list.query(), client.cards.get.query({ id: card.id })]);
const page = await queryClient.fetchQuery(trpc.cards.list.queryOptions({ status: 'open' }));
const create = new MutationObserver(queryClient, trpc.cards.create.mutationOptions());
const refused = await create.mutate({ title: '' }).then(() => 'no refusal', explain);
const due: Date | null = got.card.due_date;
const listed: string[] = page.cards.map(({ title }) => title);
console.log(JSON.stringify({ due, boards: boards.length, same: got.card.id === card.id, listed, refused }));

${PROCESS}`;

const WRONG_CALLS = `import { isTRPCClientError } from '@trpc/client';
import type { AppRouter } from 'deckhand-client/router';
import { connect } from './connect.ts';
const { client, trpc } = connect('', '');
await client.cards.conjure.mutate({ title: 'A wrong procedure' });
await client.cards.create.mutate({ titel: 'A wrong field' });
trpc.cards.list.queryOptions({ status: 7 });
export const check = (error: unknown) => isTRPCClientError<AppRouter>(error) && error.data?.reason === 'code_wanted';
`;

const SAME_CLIENT = `import type { Procedures as Packed } from 'deckhand-client';
import type { Procedures } from '${ROOT}/client/procedures.ts';
`;

const SAME_ROUTER = `import type { inferRouterError } from '@trpc/server';
import type { AppRouter as PackedRouter } from 'deckhand-client/router';
import type { AppRouter as OwnRouter } from '${ROOT}/server/api/routers/app.ts';

/** A procedure as a function, in which \`Same\` finds the input and the answer. */
type CallOf<T> = T extends { _def: { type: infer Kind extends string; $types: { input: infer Input; output: infer Output } } }
  ? { [K in Kind]: (input: Input | MayBeMissing<Input>) => Promise<Output> } : never;
/** The service takes a missing input for an empty one. */
type MayBeMissing<Input> = Record<string, never> extends Input ? undefined : never;
/** A field that is absent in JSON is undefined where it is made. */
type Present<T> = { [Key in keyof T]-?: NonNullable<T[Key]> };
type Errors<Router extends OwnRouter | PackedRouter> = inferRouterError<Router>;
type Root<Router extends OwnRouter | PackedRouter> = Router['_def']['_config']['$types'];

export const message: Equal<Omit<Errors<OwnRouter>, 'data'>, Omit<Errors<PackedRouter>, 'data'>> = true;
export const data: Equal<Present<Errors<OwnRouter>['data']>, Present<Errors<PackedRouter>['data']>> = true;
export const transformer: Equal<Root<OwnRouter>['transformer'], Root<PackedRouter>['transformer']> = true;
`;

/** What a user of the router's type has installed. */
async function linkPackages(): Promise<void> {
  for (const name of ['@trpc', '@tanstack', 'superjson', 'react', '@types']) {
    await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name)).catch(() => undefined);
  }
}

async function givenServiceWithUser() {
  const { url } = await givenService();
  const user = await givenUser({ project: await givenProject() });
  return { url, email: user.email, token: await givenToken(user) };
}
