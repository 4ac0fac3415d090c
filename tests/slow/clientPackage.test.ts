import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Client, ClientOptions } from '../../client/client.ts';
import { hasBrowser, openBrowser } from '../harness/browser.ts';
import { document } from '../harness/document.ts';
import { blocksOf } from '../harness/guide.ts';
import { comparisonOf, compile, givenInstalledClient, strictly } from '../harness/packedClient.ts';
import { removeProcesses } from '../harness/process.ts';
import { requestOf, writeSample } from '../harness/samples.ts';
import { givenService } from '../harness/service.ts';
import { givenProject, givenUser, PASSWORD } from '../harness/world.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** A new project with the package installed, and a service that it can call. */
let project: string;
let service: { url: string; email: string };

beforeAll(async () => {
  [project, service] = await Promise.all([givenInstalledClient(), givenServiceWithUser()]);
  await writeFile(join(project, 'right.ts'), RIGHT);
}, 60_000);
afterAll(removeProcesses);

describe('the packed client', () => {
  it('has no dependencies and no TypeScript sources', async () => {
    const installed = await readdir(join(project, 'node_modules'));
    const contents = await readdir(join(project, 'node_modules/deckhand-client'));

    expect(installed.filter((name) => !name.startsWith('.'))).toEqual(['deckhand-client']);
    expect(contents.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([]);
  });

  it('has a README that starts with what it is, and has no links to files that are not in the package', async () => {
    const contents = join(project, 'node_modules/deckhand-client');
    const guide = await readFile(join(contents, 'README.md'), 'utf8');

    expect(guide).toMatch(/^# .+\n\n`deckhand-client` calls every procedure of a Deckhand service/);
    const files = [...guide.matchAll(/\]\((?!https?:|#)([^)#]*)/g)].map(([, file]) => file);
    expect(await readdir(contents)).toEqual(expect.arrayContaining(files));
  });

  it.each(['nodenext', 'bundler'])('compiles in strict mode, declarations too (%s)', async (moduleResolution) => {
    const examples = await givenExamples();

    expect(examples.length).toBeGreaterThan(2);
    expect(await compile(project, strictly(moduleResolution), 'right.ts', ...examples)).toEqual([]);
  });

  it.each(['tutorial.md', 'recipes.md'])('compiles with the programs of docs/%s', async (page) => {
    const blocks = blocksOf(await readFile(join(ROOT, 'docs', page), 'utf8'));
    const programs = blocks.filter(({ language }) => language === 'ts');
    for (const { code, fileName } of programs) await writeFile(join(project, fileName!), code);
    const { compilerOptions } = strictly('nodenext');
    const onNode = { ...compilerOptions, types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] };

    expect(programs.length).toBeGreaterThan(0);
    const files = programs.map(({ fileName }) => fileName!);
    expect(await compile(project, { compilerOptions: onNode }, ...files)).toEqual([]);
  });

  it('compiles with the samples of the API page, for every operation', async () => {
    const paths = Object.keys(document.paths);
    const files = ['process.d.ts', ...paths.map((_, index) => `sample${index}.ts`)];
    const samples = paths.map((path) => writeSample('TypeScript', requestOf(path, 'https://example.test')));
    const environment = 'declare const process: { env: Record<string, string | undefined> };';
    for (const [index, code] of [environment, ...samples].entries())
      await writeFile(join(project, files[index]!), code);

    expect(await compile(project, strictly('nodenext'), ...files)).toEqual([]);
  });

  it('has types that reject unknown fields, values, procedures and reasons', async () => {
    await writeFile(
      join(project, 'wrong.ts'),
      `import { createClient, type DeckhandError } from 'deckhand-client';
const client = createClient({ url: '' });
await client.cards.create.mutate({ titel: 'A wrong field' });
await client.cards.create.mutate({ title: 7 });
await client.cards.create.mutate({ title: 'A wrong choice', priority: 'highest' });
await client.cards.conjure.mutate({ title: 'A wrong procedure' });
await client.cards.create.query({ title: 'A mutation is no query' });
(await client.boards.list.query()).boards[0]?.colour;
(await client.boards.list.query().catch((error: DeckhandError) => error.reason === 'code_wanted'));
`,
    );

    const errors = await compile(project, strictly('nodenext'), 'wrong.ts');

    expect(errors).toEqual([
      expect.stringMatching(/^wrong\.ts\(3,.*'titel' does not exist/),
      expect.stringMatching(/^wrong\.ts\(4,.*Type 'number' is not assignable to type 'string'/),
      expect.stringMatching(/^wrong\.ts\(5,.*Type '"highest"' is not assignable/),
      expect.stringMatching(/^wrong\.ts\(6,.*Property 'conjure' does not exist/),
      expect.stringMatching(/^wrong\.ts\(7,.*Property 'query' does not exist/),
      expect.stringMatching(/^wrong\.ts\(8,.*Property 'colour' does not exist/),
      expect.stringMatching(/^wrong\.ts\(9,.*no overlap/),
    ]);
  });

  it('has the same types as the router for each procedure', async () => {
    const comparison = comparisonOf(
      (path) => `Procedures${path}`,
      (path) => `Packed${path}`,
    );
    await writeFile(join(project, 'same.ts'), IMPORTS + comparison);

    const settings = { extends: join(ROOT, 'tsconfig.json'), include: [], compilerOptions: { types: [] } };
    const differences = await compile(project, settings, 'same.ts');

    expect(comparison).toContain('cards.create');
    expect(differences).toEqual([]);
  });

  it('calls a running service', async () => {
    const { stdout } = await run(process.execPath, ['right.ts'], {
      cwd: project,
      env: { URL: service.url, EMAIL: service.email, PASSWORD },
    });

    expect(JSON.parse(stdout)).toEqual({
      title: 'From a package',
      year: new Date().getFullYear(),
      boards: 0,
      status: 422,
      reason: 'invalid_input',
      fields: { title: ['title is required.'] },
    });
  });

  it('needs only what browsers have', async () => {
    const code = await readFile(join(project, 'node_modules/deckhand-client/client.js'), 'utf8');
    const browser = {
      ...{ fetch, setTimeout, clearTimeout, performance, crypto },
      ...{ AbortController, Headers, Response, TextEncoder, URL },
    };

    const { createClient }: { createClient: (options: ClientOptions) => Client } = runInNewContext(
      code.replace(/^export \{(.*)\};$/m, '({$1})'),
      browser,
    );
    const client = createClient({ url: service.url, signIn: { email: service.email, password: PASSWORD } });

    expect(await client.boards.list.query()).toEqual({ boards: [] });
  });

  it.skipIf(!hasBrowser)('signs in and calls from a page', async () => {
    const browser = await openBrowser();
    const page = await browser.newPage();
    const { url, email } = service;
    const path = join(project, 'node_modules/deckhand-client/client.js');
    await page.route(`${url}/client.js`, (route) => route.fulfill({ path, contentType: 'text/javascript' }));
    await page.goto(url);

    const title = await page.evaluate(
      `import('/client.js').then(async ({ createClient }) => {
        const client = createClient({ url: location.origin, signIn: ${JSON.stringify({ email, password: PASSWORD })} });
        return (await client.cards.create.mutate({ title: 'From a page' })).card.title;
      })`,
    );
    await browser.close();

    expect(title).toBe('From a page');
  });
});

const RIGHT = `import { type Card, createClient, isRefusal, type Reason } from 'deckhand-client';

const { URL: url = '', EMAIL: email = '', PASSWORD: password = '' } = process.env;
const client = createClient({ url, signIn: { email, password } });
const { card } = await client.cards.create.mutate({ title: 'From a package', priority: 'high' });
const { boards } = await client.boards.list.query();
const same: Card = card;
try {
  await client.cards.create.mutate({ title: '' });
} catch (error) {
  if (!isRefusal(error)) throw error;
  const { status, reason, fields } = error;
  const known: Reason | undefined = reason;
  console.log(JSON.stringify({ title: same.title, year: card.created_at.getFullYear(), boards: boards.length, status, reason: known, fields }));
}

declare const process: { env: Record<string, string | undefined> };
`;

const IMPORTS = `import type { Procedures as Packed } from 'deckhand-client';
import type { Procedures } from '${ROOT}/client/procedures.ts';
`;

/** The examples of the guide, which is the README.md of the package. */
async function givenExamples(): Promise<string[]> {
  const guide = await readFile(join(project, 'node_modules/deckhand-client/README.md'), 'utf8');
  const examples = [...guide.matchAll(/```ts\n(.*?)```/gs)].map(([, code], index) => ({ code, name: `${index}.ts` }));
  for (const { code, name } of examples) await writeFile(join(project, name), code!);
  return examples.map(({ name }) => name);
}

async function givenServiceWithUser() {
  const { url } = await givenService();
  const { email } = await givenUser({ project: await givenProject() });
  return { url, email };
}
