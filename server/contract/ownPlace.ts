import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import { callOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import type { Given } from './input.ts';
import { SURFACES, type Surface } from './judge.ts';
import type { Send } from './sender.ts';
import { OWN, type Rows } from './writeSteps.ts';

/** Where own rows are created. */
export type Place = {
  projectId: number | undefined;
  rows: Rows;
  /** Whether nobody else uses the project. */
  isOwn: boolean;
  /** Set when a row was created in another project: the header that chooses the project was lost on the way. */
  isForeign: boolean;
  /** Whether `Idempotency-Key` is lost on the way: a repeat would be executed. */
  losesKeys: boolean;
  /** Keeps a created row in mind, to remove it at the end. Says if its project is another one. */
  remember: (procedure: string, id: number, projectId?: number | null) => string[];
  /** Removes all rows, also those that a failure left. */
  close: () => Promise<void>;
  /** What could not be removed. */
  left: string[];
};

/**
 * A project of its own if the caller may create one, else the one that the caller's calls act in. A text says why its own could
 * not be opened: nobody expects rows in another one.
 */
export async function openPlace(run: Run): Promise<Place | string> {
  const own = run.denied.has('projects.create') ? undefined : await openProject(run);
  if (typeof own === 'string') return own;
  const projectId = own?.id ?? run.target.projectId;
  const where = own
    ? `project ${own.id} ("${OWN}")`
    : projectId
      ? `project ${projectId}`
      : "the caller's default project";
  run.announce(`Creates rows in ${where}; their titles begin with "${OWN}".`);

  const created: { procedure: string; id: number; headers: Record<string, string> }[] = [];
  const left: string[] = [];
  const headersFor = (project: number | undefined): Record<string, string> =>
    project === undefined ? {} : { 'x-project-id': String(project) };
  const remove = async (procedure: string, id: number, headers: Record<string, string>, input: Given = { id }) => {
    const { status, problems } = await call(run.sendLast, procedure, input, headers);
    // 404: removed already.
    if (status !== 404 && (status === undefined || status >= 400))
      left.push(`${procedure} ${id} (${status ?? problems[0]})`);
  };
  const place: Place = {
    projectId,
    rows: own ? { project_id: own.id, platform_id: own.platform_id } : {},
    isOwn: own !== undefined,
    isForeign: false,
    losesKeys: run.lostHeaders.has('Idempotency-Key'),
    remember: (procedure, id, foundIn) => {
      const headers = headersFor(foundIn ?? projectId);
      const removal = REMOVED_BY[procedure];
      // The answer to a repeat has the same row.
      if (removal && !created.some((row) => row.procedure === removal && row.id === id))
        created.push({ procedure: removal, id, headers });
      if (!projectId || !foundIn || foundIn === projectId) return [];
      place.isForeign = true;
      return [
        `X-Project-Id does not arrive: the row was created in project ${foundIn}, not in ${projectId}. Nothing more was written.`,
      ];
    },
    close: async () => {
      for (const { procedure, id, headers } of created.reverse()) await remove(procedure, id, headers);
      // Copies of its templates, too, also those of a run that was killed.
      for (const { id } of own ? await rowsOf('REST', run.sendLast, 'boards', {}, headersFor(own.id)) : [])
        await remove('boards.delete', id, headersFor(projectId));
      if (own) await remove('projects.update', own.id, headersFor(own.id), { id: own.id, is_active: false });
    },
    left,
  };
  return place;
}

/** Groups, cards and comments are deleted with their board. */
const REMOVED_BY: Record<string, string> = {
  'boards.create': 'boards.delete',
  'tags.create': 'tags.delete',
  'cards.create': 'cards.delete',
  'webhooks.create': 'webhooks.delete',
  'masterBoards.create': 'masterBoards.delete',
  'masterCards.create': 'masterCards.delete',
  'users.create': 'users.erase',
  'identityIssuers.create': 'identityIssuers.delete',
};

type Row = { id: number; name: string; platform_id?: number };

/**
 * Projects can't be deleted, so every run uses the same one; between runs it is not active. It is also found in an answer that
 * is not as documented: otherwise each run would create another one. The service looks for its name, since a proxy may alter names.
 */
async function openProject(run: Run): Promise<Row | string> {
  const { sendLast: send } = run;
  for (const surface of SURFACES) {
    const [found, ...others] = await rowsOf(surface, send, 'projects', { search: OWN, limit: 200 });
    const own = [found, ...others].find((row) => row?.name === OWN);
    if (own) return activated(send, own);
    if (found) return altered(found);
  }
  const platform = await findOrCreate(run, 'platforms', 'platform', {});
  if (platform?.name !== OWN) return platform ? altered(platform) : NOT_OPENED;
  const project = await findOrCreate(run, 'projects', 'project', { platform_id: platform.id });
  return project ? activated(send, project) : NOT_OPENED;
}

const NOT_OPENED = `"${OWN}" could not be opened: no rows were written.`;
const altered = ({ name }: Row) => `"${OWN}" came back as "${name}": no rows were written.`;

async function activated(send: Send, project: Row): Promise<Row | string> {
  const { status } = await call(send, 'projects.update', { id: project.id, is_active: true });
  return status === 200 ? project : NOT_OPENED;
}

type Page = { next_cursor: string | null };

/** The rows of the first page; none if it can't be read. */
async function rowsOf(surface: Surface, send: Send, noun: string, input: Given, headers = {}): Promise<Row[]> {
  return (await pageOf(surface, send, noun, input, headers))?.rows ?? [];
}

async function pageOf(surface: Surface, send: Send, noun: string, input: Given, headers = {}) {
  const procedure = findProcedure(`${noun}.list`) as RestProcedure;
  const { read } = await callOn(surface, send, { procedure, input, headers });
  const page = read?.data as ({ [noun: string]: Row[] } & Page) | undefined;
  return Array.isArray(page?.[noun]) ? { rows: page[noun], next: page.next_cursor } : undefined;
}

async function findOrCreate(run: Run, noun: string, row: string, more: Given): Promise<Row | undefined> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await pageOf('REST', run.sendLast, noun, { ...more, limit: 200, ...(cursor && { cursor }) });
    if (!page) return undefined;
    const found = page.rows.find(({ name }) => name === OWN);
    if (found) return found;
    cursor = page.next;
  }
  return create(run, noun, row, { ...more, name: OWN });
}

/** With the same key over both surfaces and in runs that follow soon, so that there is one row. */
async function create(run: Run, noun: string, row: string, input: Given): Promise<Row | undefined> {
  const name = `${noun}.create`;
  const headers = { 'idempotency-key': `${OWN}: ${name} ${input.platform_id ?? ''}` };
  const rowOver = async (surface: Surface) => {
    const procedure = findProcedure(name) as RestProcedure;
    const { read } = await callOn(surface, run.sendLast, { procedure, input, headers });
    return (read?.data as Record<string, Row> | undefined)?.[row];
  };
  const created = await rowOver('REST');
  // Without the key, the second call would create another one.
  if (created?.name === OWN && !run.lostHeaders.has('Idempotency-Key') && (await rowOver('RPC'))?.id === created.id)
    run.succeeded.add(name);
  return created;
}

const call = (send: Send, procedure: string, input: Given, headers: Record<string, string> = {}) =>
  callOn('REST', send, { procedure: findProcedure(procedure) as RestProcedure, input, headers });
