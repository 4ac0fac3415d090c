import type { RestProcedure } from '../api/procedures.ts';
import { expectStatus, type Run } from './expectation.ts';
import { type Given, inputSchemaOf } from './input.ts';
import { inTurns } from './sender.ts';

/**
 * Where a required field of a query comes from: the rows of another query's answer, of which it is the id, another column or, with
 * null, all of it. `more` are its other required fields, and `same` is one that the other query was called with.
 */
type Source = { field: string; from: string; rows: string; column?: string | null; more?: Given; same?: string };
export const SOURCES: Record<string, Source> = {
  'boards.get': { field: 'id', from: 'boards.list', rows: 'boards' },
  'cards.get': { field: 'id', from: 'cards.list', rows: 'cards' },
  'comments.list': { field: 'card_id', from: 'cards.list', rows: 'cards' },
  'comments.listReplies': { field: 'id', from: 'comments.list', rows: 'threads' },
  'groups.list': { field: 'board_id', from: 'boards.list', rows: 'boards' },
  'trash.preview': { field: 'id', from: 'boards.list', rows: 'boards', more: { type: 'board' } },
  'masterTrash.preview': { field: 'id', from: 'masterBoards.list', rows: 'boards', more: { type: 'board' } },
  'masterBoards.get': { field: 'id', from: 'masterBoards.list', rows: 'boards' },
  'masterBoards.previewSync': { field: 'board_id', from: 'masterBoards.list', rows: 'boards' },
  'masterBoards.previewPush': { field: 'board_id', from: 'masterBoards.list', rows: 'boards' },
  'masterGroups.list': { field: 'board_id', from: 'masterBoards.list', rows: 'boards' },
  'masterGroups.previewPush': { field: 'group_id', from: 'masterGroups.list', rows: 'groups' },
  'masterCards.previewPush': { field: 'card_id', from: 'masterBoards.get', rows: 'board.groups.cards' },
  'templateRuns.get': { field: 'id', from: 'templateRuns.list', rows: 'runs' },
  'templateRuns.report': { field: 'id', from: 'templateRuns.list', rows: 'runs' },
  'releases.get': { field: 'id', from: 'releases.list', rows: 'releases' },
  'releases.compare': { field: 'id', from: 'releases.list', rows: 'releases' },
  'rollouts.get': { field: 'id', from: 'rollouts.list', rows: 'rollouts' },
  'rollouts.report': { field: 'id', from: 'rollouts.list', rows: 'rollouts' },
  'rollouts.preview': {
    field: 'project_id',
    from: 'rollouts.report',
    rows: 'projects',
    column: 'project_id',
    same: 'id',
  },
  'templates.drift': { field: 'board_id', from: 'masterBoards.list', rows: 'boards' },
  'templateFiles.export': { field: 'board_id', from: 'masterBoards.list', rows: 'boards' },
  'templateFiles.plan': { field: 'template', from: 'templateFiles.export', rows: 'template', column: null },
  'webhooks.deliveries': { field: 'id', from: 'webhooks.list', rows: 'webhooks' },
};

/** Their secret is only in a mail: the refusal of a wrong one is checked. */
export const WITH_SECRET = ['account.showInvitation'];

/** Calls every query that the caller may call, with rows that the service has, and compares both surfaces. */
export async function checkQueries(run: Run): Promise<void> {
  const results = new Map<string, Result>();
  let left = run.procedures.filter(
    ({ name, type }) => type === 'query' && !run.denied.has(name) && !WITH_SECRET.includes(name),
  );
  while (left.length > 0) {
    const ready = left.filter(({ name }) => !left.some((other) => other.name === SOURCES[name]?.from));
    await inTurns(ready, (procedure) => checkQuery(run, procedure, results));
    left = left.filter((procedure) => !ready.includes(procedure));
  }
}

type Result = { input: Given; data: unknown };

async function checkQuery(run: Run, procedure: RestProcedure, results: Map<string, Result>): Promise<void> {
  const { name } = procedure;
  const { properties = {} } = inputSchemaOf(procedure);
  const source = SOURCES[name];
  const result = source && results.get(source.from);
  const row = source && rowsIn(result?.data, source.rows.split('.'))[0];
  // There is no such row: the refusal of an unknown one was checked.
  if (source && !row) return;
  const input: Given = {
    ...(source && { ...source.more, ...(source.same && { [source.same]: result!.input[source.same] }) }),
    ...(source && { [source.field]: source.column === null ? row : row![source.column ?? 'id'] }),
    ...('limit' in properties && { limit: 2 }),
  };
  let cursor: unknown;
  await run.record('query', name, async () => {
    const { data, problems } = await compared(run, procedure, input);
    results.set(name, { input, data });
    cursor = (data as { next_cursor?: unknown } | undefined)?.next_cursor;
    return problems;
  });
  if (typeof cursor !== 'string') return;
  await run.record('next page', name, async () => (await compared(run, procedure, { ...input, cursor })).problems);
}

/** Somebody else may change rows between two calls: only a difference that stays is one. */
async function compared(run: Run, procedure: RestProcedure, input: Given) {
  for (let attempt = 1; ; attempt++) {
    const { rest, rpc, problems } = await expectStatus(run, { procedure, input }, [200, TOO_LARGE]);
    const isStable = !problems.some((problem) => problem.startsWith('REST and RPC differ'));
    if (!isStable && attempt < MOST_ATTEMPTS) continue;
    const { data } = rest.outcome ?? {};
    if (data !== undefined && rpc.outcome?.data !== undefined) run.succeeded.add(procedure.name);
    return { data, problems };
  }
}
const MOST_ATTEMPTS = 3;

/** The status of an answer of more than 8 MiB. */
const TOO_LARGE = 400;

function rowsIn(data: unknown, [field, ...deeper]: string[]): Given[] {
  if (field === undefined) return [data as Given];
  const part = (data as Record<string, unknown> | undefined)?.[field];
  return [part].flat().flatMap((row) => (row === undefined ? [] : rowsIn(row, deeper)));
}
