import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import { callOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import type { Given } from './input.ts';
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
  /** Keeps a created row in mind, to remove it at the end. Says if its project is another one. */
  remember: (procedure: string, id: number, projectId?: number | null) => string[];
  /** Removes all rows, also those that a failure left. */
  close: () => Promise<void>;
  /** What could not be removed. */
  left: string[];
};

/**
 * A project of its own if the caller may create one, else the one that the caller's calls act in. Undefined if its own could not be
 * opened: nobody expects rows in another one.
 */
export async function openPlace(run: Run): Promise<Place | undefined> {
  const mayCreate = !run.denied.has('projects.create');
  const own = mayCreate ? await openProject(run) : undefined;
  if (mayCreate && !own) return undefined;
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
    rows: own ? { project_id: own.id } : {},
    isOwn: own !== undefined,
    isForeign: false,
    remember: (procedure, id, foundIn) => {
      const headers = headersFor(foundIn ?? projectId);
      if (procedure in REMOVED_BY) created.push({ procedure: REMOVED_BY[procedure]!, id, headers });
      if (!projectId || !foundIn || foundIn === projectId) return [];
      place.isForeign = true;
      return [
        `X-Project-Id does not arrive: the row was created in project ${foundIn}, not in ${projectId}. Nothing more was written.`,
      ];
    },
    close: async () => {
      for (const { procedure, id, headers } of created.reverse()) await remove(procedure, id, headers);
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
};

type Row = { id: number; name: string };

/**
 * Projects can't be deleted, so every run uses the same one; between runs it is not active. It is also found in an answer that
 * is not as documented: otherwise each run would create another one.
 */
async function openProject({ sendLast: send }: Run): Promise<{ id: number } | undefined> {
  const platform = await findOrCreate(send, 'platforms', 'platform', {});
  const project = platform && (await findOrCreate(send, 'projects', 'project', { platform_id: platform.id }));
  if (!project) return undefined;
  const { status } = await call(send, 'projects.update', { id: project.id, is_active: true });
  return status === 200 ? { id: project.id } : undefined;
}

async function findOrCreate(send: Send, noun: string, row: string, more: Given): Promise<Row | undefined> {
  for (let cursor: unknown; ; ) {
    const { read } = await call(send, `${noun}.list`, { ...more, limit: 200, ...(cursor ? { cursor } : {}) });
    const page = read?.data as ({ [noun: string]: Row[] } & { next_cursor: string | null }) | undefined;
    if (!Array.isArray(page?.[noun])) return undefined;
    const found = page[noun].find(({ name }) => name === OWN);
    if (found) return found;
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  const { read } = await call(send, `${noun}.create`, { ...more, name: OWN });
  return (read?.data as Record<string, Row> | undefined)?.[row];
}

const call = (send: Send, procedure: string, input: Given, headers: Record<string, string> = {}) =>
  callOn('REST', send, { procedure: findProcedure(procedure) as RestProcedure, input, headers });
