import { callAll } from './calls.ts';
import type { Call } from './command.ts';
import { misuse, suggestion } from './misuse.ts';

const WITHOUT_ROWS: Record<string, string> = { docs: '/docs', guides: '/docs/guides', account: '/account' };
const WITH_ROWS: Record<string, string> = { projects: '/projects', rollouts: '/admin/rollouts' };
/** Their addresses begin with a project that only the service knows. */
const IN_PROJECTS = ['boards', 'cards'];

/** What `open` opens, besides the start page. */
export const PAGES = [...Object.keys(WITH_ROWS), ...IN_PROJECTS, ...Object.keys(WITHOUT_ROWS)];

export type Page = { page?: string; id?: number };

/** Throws for a page or an id that can't be opened. */
export function checkPage({ page, id }: { page?: string; id?: unknown }): void {
  if (page === undefined && id !== undefined) throw misuse('--id needs a page: open boards 2.');
  if (page === undefined) return;
  if (!PAGES.includes(page)) {
    throw misuse(`There is no page ${page}.${suggestion(page, PAGES)} There are ${PAGES.join(', ')}.`);
  }
  if (page in WITHOUT_ROWS && id !== undefined) throw misuse(`The page ${page} has no id.`);
  if (IN_PROJECTS.includes(page) && id === undefined) throw misuse(`The id is missing: open ${page} 2.`);
  if (id !== undefined && !/^[1-9]\d{0,9}$/.test(String(id))) throw misuse(`${id} is not an id.`);
}

/** Makes calls in this project; without one, in that of the row that a call names. */
type CallsIn = (project?: number) => Promise<Call>;

/** The path of a checked page. */
export async function pathOf({ page = '', id = 0 }: Page, callsIn: CallsIn): Promise<string> {
  if (page === 'boards') return boardPath(await projectOfBoard(await callsIn(), id), id);
  if (page === 'cards') return cardPath(id, callsIn);
  const path = WITH_ROWS[page];
  if (path === undefined) return WITHOUT_ROWS[page] ?? '/';
  return id === 0 ? path : `${path}/${id}`;
}

type Row = { id: number; project_id: number };

const boardPath = (project: number, board: number) => `/projects/${project}/boards/${board}`;

/** By one of its groups if the board is too large for one answer. */
async function projectOfBoard(call: Call, id: number): Promise<number> {
  const { board } = (await call('boards.get', { id }).catch(async (error: { reason?: string }) => {
    if (error.reason !== 'answer_too_large') throw error;
    const { groups } = (await call('groups.list', { board_id: id, limit: 1 })) as { groups: Row[] };
    return { board: groups[0] };
  })) as { board: Row };
  return board.project_id;
}

async function cardPath(id: number, callsIn: CallsIn): Promise<string> {
  const { card } = (await (await callsIn())('cards.get', { id })) as { card: Row & { group_id: number | null } };
  const call = await callsIn(card.project_id);
  const { boards } = (await call('boards.list', {})) as { boards: Row[] };
  // Every board shows the cards that are in no group.
  const board = card.group_id === null ? boards[0] : await boardOfGroup(call, boards, card.group_id);
  return board ? `${boardPath(card.project_id, board.id)}/cards/${id}` : `/projects/${card.project_id}`;
}

/** A group does not say on which board it is to those who know only its id, so the boards are searched. */
async function boardOfGroup(call: Call, boards: Row[], group: number): Promise<Row | undefined> {
  for (const board of boards) {
    const { groups } = (await callAll(call, 'groups.list', { board_id: board.id })) as { groups: Row[] };
    if (groups.some(({ id }) => id === group)) return board;
  }
  return undefined;
}
