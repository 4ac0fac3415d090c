import { execFile } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commentAt } from '../harness/docComments.ts';
import { comparisonOf, compile, givenInstalledClient, strictly } from '../harness/packedClient.ts';
import { removeProcesses } from '../harness/process.ts';
import { givenService } from '../harness/service.ts';
import { givenProject, givenToken, givenUser } from '../harness/world.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** A new project with the package, tRPC's own client and TanStack Query. */
let project: string;

beforeAll(async () => {
  project = await givenInstalledClient();
  for (const name of ['@trpc', '@tanstack', 'superjson', 'react', '@types']) {
    await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
  }
  const program = await readFile(join(ROOT, 'tests/harness/stockClient.ts'), 'utf8');
  await writeFile(join(project, 'connect.ts'), program.replace('../../client/router.ts', 'deckhand-client/router'));
  await writeFile(join(project, 'stock.ts'), STOCK);
}, 60_000);
afterAll(removeProcesses);

const { compilerOptions } = strictly('nodenext');
const settings = { compilerOptions: { ...compilerOptions, skipLibCheck: true, allowImportingTsExtensions: true } };

describe("the packed client's type of the router", () => {
  it("types tRPC's own client and TanStack Query", async () => {
    expect(await compile(project, settings, 'stock.ts')).toEqual([]);
  });

  it('shows the comments of procedures and fields where they are used', () => {
    const file = join(project, 'stock.ts');

    expect(commentAt(file, 'client.boards.list')).toContain('An API key needs the scope `boards:read`.');
    expect(commentAt(file, 'trpc.cards.list')).toContain('An API key needs the scope `cards:read`.');
    expect(commentAt(file, 'got.card.due_date')).toBe('When it is due.');
  });

  it('lets them call a running service', async () => {
    const { url } = await givenService();
    const token = await givenToken(await givenUser({ project: await givenProject() }));

    const { stdout } = await run(process.execPath, ['stock.ts'], { cwd: project, env: { URL: url, TOKEN: token } });

    expect(JSON.parse(stdout)).toEqual({
      due: '2030-01-31T09:30:00.000Z',
      boards: 0,
      same: true,
      listed: ['By httpLink'],
      refused: '422 invalid_input: title',
    });
  });

  it('rejects unknown procedures, fields and reasons', async () => {
    await writeFile(
      join(project, 'wrong.ts'),
      `import { isTRPCClientError } from '@trpc/client';
import type { AppRouter } from 'deckhand-client/router';
import { connect } from './connect.ts';
const { client, trpc } = connect('', '');
await client.cards.conjure.mutate({ title: 'A wrong procedure' });
await client.cards.create.mutate({ titel: 'A wrong field' });
trpc.cards.list.queryOptions({ status: 7 });
export const check = (error: unknown) => isTRPCClientError<AppRouter>(error) && error.data?.reason === 'code_wanted';
`,
    );

    expect(await compile(project, settings, 'wrong.ts')).toEqual([
      expect.stringMatching(/^wrong\.ts\(5,.*Property 'conjure' does not exist/),
      expect.stringMatching(/^wrong\.ts\(6,.*'titel' does not exist/),
      expect.stringMatching(/^wrong\.ts\(7,.*No overload matches this call/),
      expect.stringMatching(/^wrong\.ts\(8,.*no overlap/),
    ]);
  });

  it('is the same as that of the service: procedures, errors and the transformer', async () => {
    const comparison = comparisonOf(
      (path) => `CallOf<OwnRouter['_def']['record']${path}>`,
      (path) => `CallOf<PackedRouter['_def']['record']${path}>`,
    );
    await writeFile(join(project, 'same.ts'), COMPARE + comparison);

    const own = { extends: join(ROOT, 'tsconfig.json'), include: [], compilerOptions: { types: [] } };
    expect(await compile(project, own, 'same.ts')).toEqual([]);
  });
});

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

declare const process: { env: Record<string, string | undefined> };
`;

const COMPARE = `import type { inferRouterError } from '@trpc/server';
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
