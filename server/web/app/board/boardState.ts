import { computed, effect, signal, untracked } from '@preact/signals';
import type { DeckhandError } from '../../../../client/client.ts';
import { address, withCard as cardAddress, currentPlace, go } from '../address.ts';
import { oncePerBurst } from '../feed.ts';
import { keep } from '../kept.ts';
import { say, sayAloud, sayFailure } from '../parts/message.tsx';
import { inProject, onProjectEvent, project, readBoards } from '../project.ts';
import { client, retryLater } from '../service.ts';
import { type Change, changesOf } from './changes.ts';
import {
  type BoardCard,
  type FullBoard,
  type Group,
  hasSamePlaces,
  type Move,
  NO_GROUP,
  positionOf,
  withCard,
  withGroup,
  withMove,
  withoutCard,
  withPatch,
} from './places.ts';

/** How many cards the column "In no group" shows at most, and a board that is too large for one response. */
const MOST_CARDS = 1000;

/** What is drawn: the board of the address, with changes that are not saved yet. */
export const board = signal<FullBoard | undefined>(undefined);
export const boardFailure = signal<unknown>(undefined);
/** A board that was just made: the focus goes into its title. */
export const madeBoard = signal<number | undefined>(undefined);
/** Cards that were added under this filter: they are shown, whatever it says. */
export const addedCards = signal<ReadonlySet<number>>(new Set());
/** The drag moves elements by itself: the board is drawn again when it has ended. */
export const isDragging = signal(false);

/** The name under which the board is kept that was opened last. */
export const lastBoard = (projectId: number) => `board.${projectId}`;

type Changes = ReturnType<typeof changesOf<FullBoard>>;
let changes: Changes | undefined;

/** Shows the board of the address, and what others change in it, until the returned function is called. */
export function followBoard(): () => void {
  let opened: AbortController | undefined;
  const wanted = computed(() => (project.value?.id === address.value.projectId ? address.value.id : undefined));
  const close = () => {
    opened?.abort();
    changes = undefined;
    board.value = undefined;
    boardFailure.value = undefined;
  };
  const stop = effect(() => {
    const id = wanted.value;
    untracked(() => {
      close();
      opened = new AbortController();
      if (id !== undefined) openBoard(id, opened.signal);
    });
  });
  return () => {
    stop();
    close();
  };
}

/** Reads the board again; after a failure, too. */
export const readBoard = () => changes?.refresh();

/** Shows again what is there, after a drag that ended without a move. */
export const drawBoard = () => changes?.draw();

function openBoard(id: number, ended: AbortSignal): void {
  const current = changesOf<FullBoard>({
    load: () => loadBoard(id),
    show: (shown) => {
      const projectId = shown.project_id;
      if (projectId !== null && projectId !== project.peek()?.id)
        return go(currentPlace().replace(/\d+/, String(projectId)), { replace: true });
      boardFailure.value = undefined;
      if (board.peek()?.id !== id) keep(lastBoard(project.peek()?.id ?? 0), id);
      if (!isDragging.peek()) board.value = shown;
    },
    fail: (error, isChange) => {
      if (isChange) return sayFailure(error, 'Your change was not saved.');
      retryLater(error, () => ended.aborted || current.refresh());
      const isGone = error.reason === 'not_found';
      if (board.peek() && !isGone) return sayFailure(error);
      board.value = undefined;
      boardFailure.value = error;
    },
    isSame: hasSamePlaces,
    signal: ended,
  });
  changes = current;
  current.load();
  const refresh = oncePerBurst(() => ended.aborted || current.refresh());
  const stop = onProjectEvent((event, isOwn) => {
    if (isOwn || (event && !/^(board|group|card|template)\./.test(event.type))) return;
    refresh();
  });
  ended.addEventListener('abort', stop);
}

/** The board, and the cards of the project that are in no group, if there are any, as a last column. */
async function loadBoard(id: number): Promise<FullBoard> {
  const [read, ungrouped] = await Promise.all([readWhole(id), readUngrouped()]);
  const { cards, hasMore } = ungrouped;
  const column = { id: NO_GROUP, title: 'In no group', color: null, cards: inOrder(cards) };
  return { ...read, groups: [...read.groups, ...(cards.length > 0 ? [column] : [])], hasMoreUngrouped: hasMore };
}

/** A list of cards is in the order of the project, not of the group. */
const inOrder = (cards: BoardCard[]) =>
  cards.toSorted((one, other) => one.position - other.position || one.id - other.id);

async function readWhole(id: number) {
  try {
    return { ...(await client.boards.get.query({ id })).board, missing: 0 };
  } catch (error) {
    if ((error as { reason?: string }).reason !== 'answer_too_large') throw error;
    return readPart(id);
  }
}

/** The first cards of a board that is too large for one response. */
async function readPart(id: number) {
  const [{ boards }, groups, { cards }] = await Promise.all([
    inProject().boards.list.query(),
    readGroups(id),
    readCards({ board_id: id }),
  ]);
  const listed = boards.find((one) => one.id === id);
  const missing = Math.max(0, (listed?.cards_count ?? cards.length) - cards.length);
  const filled = groups.map((group) => ({
    ...group,
    cards: inOrder(cards.filter((card) => card.group_id === group.id)),
  }));
  return {
    id,
    project_id: null,
    title: listed?.title ?? '',
    description: null,
    master_board_id: null,
    groups: filled,
    missing,
  };
}

export const readGroups = (board_id: number) => Array.fromAsync(inProject().groups.list.each({ board_id, limit: 200 }));

const readUngrouped = () => readCards({ is_grouped: false });

async function readCards(input: { board_id?: number; is_grouped?: boolean }) {
  const cards: BoardCard[] = [];
  for await (const page of inProject()
    .cards.list.each({ ...input, limit: 200 })
    .pages()) {
    cards.push(...page.cards);
    if (cards.length >= MOST_CARDS && page.next_cursor) return { cards, hasMore: true };
  }
  return { cards, hasMore: false };
}

/** Makes a change of the board that is shown. Resolves to the error if it was not saved. */
export const change = (made: Change<FullBoard>) => changes?.make(made) ?? sendAlone(made);

/** Where no board is shown, as beside a list of cards. */
async function sendAlone({ send, done }: Change<FullBoard>): Promise<DeckhandError | undefined> {
  try {
    done?.(await send());
    return undefined;
  } catch (error) {
    sayFailure(error, 'Your change was not saved.');
    return error as DeckhandError;
  }
}

/** Shows what the panel has saved. */
export const patchCard = (patch: Partial<BoardCard> & { id: number }) =>
  changes?.patch((shown) => withPatch(shown, patch));

export const addCard = (groupId: number, title: string, idempotencyKey: string) =>
  change({
    send: () => inProject().cards.create.mutate({ title, group_id: groupId || null }, { idempotencyKey }),
    apply: (shown, result) =>
      result
        ? withCard(shown, groupId, (result as { card: BoardCard }).card)
        : withGroup(shown, groupId, (group) => ({ ...group, adding: [...(group.adding ?? []), title] })),
    done: (result) => {
      addedCards.value = new Set([...addedCards.peek(), (result as { card: BoardCard }).card.id]);
      say(`Added “${title}”.`);
    },
  });

/** Moves a card before another one, or to a position from 1; to the end without either. */
export async function moveCard({ position: wanted, ...given }: Move & { position?: number }): Promise<unknown> {
  const shown = board.peek();
  const group = shown?.groups.find(({ id }) => id === given.group_id);
  if (!shown || !group) return undefined;
  const others = group.cards.filter(({ id }) => id !== given.id);
  const move = wanted === undefined ? given : { ...given, before: others[wanted - 1]?.id };
  const position = positionOf(shown, move);
  const count = others.length + 1;
  return change({
    card: move.id,
    send: () => client.cards.move.mutate({ id: move.id, group_id: move.group_id || null, position }),
    apply: (board) => withMove(board, move),
    done: () => sayAloud(`Moved “${move.title}” to ${group.title}, place ${position} of ${count}.`),
  });
}

export async function deleteCard({ id, title }: { id: number; title: string }): Promise<void> {
  if (address.peek().cardId === id) go(cardAddress(undefined));
  const undo = async () => {
    const restored = await client.cards.restore.mutate({ id }).catch((error) => sayFailure(error));
    await readBoard();
    if (restored) say(`“${title}” is back.`);
  };
  await change({
    send: () => client.cards.delete.mutate({ id }),
    apply: (board) => withoutCard(board, id),
    done: () => say(`Deleted “${title}”.`, { label: 'Undo', run: undo }),
  });
}

export const addGroup = (boardId: number, title: string, idempotencyKey: string) =>
  change({
    send: () => client.groups.create.mutate({ board_id: boardId, title }, { idempotencyKey }),
    apply: (shown, result) => {
      if (!result) return shown;
      const { group } = result as { group: Omit<Group, 'cards'> };
      const at = shown.groups.findIndex(({ id }) => id === NO_GROUP);
      return {
        ...shown,
        groups: shown.groups.toSpliced(at < 0 ? shown.groups.length : at, 0, { ...group, cards: [] }),
      };
    },
    done: () => say(`Added the group “${title}”.`),
  });

export const updateGroup = (id: number, values: { title?: string; color?: string | null }) =>
  change({
    send: () => client.groups.update.mutate({ id, ...values }),
    apply: (shown) => withGroup(shown, id, (group) => ({ ...group, ...values })),
    done: () => say('Saved.'),
  });

/** Moves a group by one place, to the left or to the right. */
export function shiftGroup(id: number, step: -1 | 1): void {
  const groups = board.peek()?.groups.filter((group) => group.id !== NO_GROUP) ?? [];
  const from = groups.findIndex((group) => group.id === id);
  const group = groups[from];
  if (!group || !groups[from + step]) return;
  const ordered = groups.toSpliced(from, 1).toSpliced(from + step, 0, group);
  change({
    send: () => client.groups.reorder.mutate({ groups: ordered.map(({ id }, index) => ({ id, position: index + 1 })) }),
    apply: (shown) => ({
      ...shown,
      groups: shown.groups.toSorted((one, other) => rank(ordered, one) - rank(ordered, other)),
    }),
    done: () => sayAloud(`Moved the group “${group.title}” to place ${from + step + 1} of ${groups.length}.`),
  });
}
const rank = (ordered: Group[], { id }: Group) => {
  const at = ordered.findIndex((group) => group.id === id);
  return at < 0 ? ordered.length : at;
};

export const deleteGroup = ({ id, title }: Pick<Group, 'id' | 'title'>) =>
  change({
    send: () => client.groups.delete.mutate({ id }),
    apply: (shown) => ({ ...shown, groups: shown.groups.filter((group) => group.id !== id) }),
    done: () => {
      const undo = () =>
        change({
          send: () => client.groups.restore.mutate({ id }),
          apply: (shown) => shown,
          done: () => say(`The group “${title}” is back.`),
        });
      say(`Deleted the group “${title}”.`, { label: 'Undo', run: undo });
    },
  });

export const renameBoard = (id: number, title: string) =>
  change({
    send: () => client.boards.update.mutate({ id, title }),
    apply: (shown) => ({ ...shown, title }),
    done: () => {
      say('Saved.');
      readBoards();
    },
  });
