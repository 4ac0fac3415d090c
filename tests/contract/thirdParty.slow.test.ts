import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testService } from '../harness/service.ts';
import { givenBoard, givenWorld, PASSWORD, type World } from '../harness/world.ts';

/** A third party generates a client from the OpenAPI document with common tools. */

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** The code of a third party who has only the document; wrong types in it must not compile. */
const CALLS = `
import createClient from 'openapi-fetch';
import type { paths } from './deckhand.ts';

const [baseUrl, email, password] = process.argv.slice(2) as [string, string, string];
const anybody = createClient<paths>({ baseUrl });
const signedIn = await anybody.POST('/v1/authenticate', { body: { email, password } });
if (!signedIn.data) throw new Error(signedIn.error.message);

const client = createClient<paths>({ baseUrl, headers: { Authorization: \`Bearer \${signedIn.data.data.token}\` } });
const created = await client.POST('/services/operations/v1/operations/cards/create', {
  body: { title: 'By a generated client', priority: 'high' },
});
const boards = await client.POST('/services/operations/v1/operations/boards/list', { body: { tool_key: 'seo' } });
const refused = await client.POST('/services/operations/v1/operations/cards/create', { body: { title: '' } });

// @ts-expect-error: a title is required.
const withoutTitle: paths['/services/operations/v1/operations/cards/create']['post']['requestBody']['content']['application/json'] = {};
// @ts-expect-error: there is no such path.
const path: keyof paths = '/v1/nothing';
// @ts-expect-error: there is no such field.
const nothing = boards.data?.data.boards[0]?.nothing;

const priority: 'low' | 'normal' | 'high' | 'urgent' | undefined = created.data?.data.card.priority;
const errors: Record<string, string[]> | undefined =
  refused.error && 'errors' in refused.error ? refused.error.errors : undefined;
console.log(JSON.stringify({
  created: created.response.status,
  priority,
  boards: boards.data?.data.boards.map(({ title }) => title),
  refused: refused.response.status,
  errors,
}));
`;

const compilerOptions = {
  ...{ strict: true, noUncheckedIndexedAccess: true, noEmit: true, target: 'es2024', module: 'nodenext' },
  ...{ types: ['node'], allowImportingTsExtensions: true, verbatimModuleSyntax: true },
};

describe('third parties', () => {
  let directory: string;
  let url: string;
  let world: World;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'deckhand-client-'));
    await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
    url = (await testService()).url;
    world = await givenWorld();
  });
  afterAll(() => rm(directory, { recursive: true }));

  const runInDirectory = async (...command: string[]) =>
    (
      await run(process.execPath, command, { cwd: directory }).catch(({ stdout, stderr }) => {
        throw new Error(`${stdout}${stderr}`);
      })
    ).stdout;

  it('can generate a client from the document that compiles and works', async () => {
    await givenBoard(world.project, { title: 'Launch plan', tool_key: 'seo' });
    await writeFile(join(directory, 'calls.ts'), CALLS);
    await writeFile(join(directory, 'package.json'), JSON.stringify({ type: 'module' }));
    await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions }));

    const generator = join(ROOT, 'node_modules/openapi-typescript/bin/cli.js');
    const typescript5 = join(ROOT, 'tests/harness/typescript5.ts');
    await runInDirectory('--import', typescript5, generator, `${url}/openapi.json`, '-o', 'deckhand.ts');
    await runInDirectory(join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.');
    const printed = await runInDirectory('calls.ts', `${url}/api`, world.users.member.email, PASSWORD);

    expect(JSON.parse(printed)).toEqual({
      ...{ created: 201, priority: 'high', boards: ['Launch plan'] },
      ...{ refused: 422, errors: { title: ['title is required.'] } },
    });
  });
});
