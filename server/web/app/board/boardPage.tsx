import './board.css';
import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { account } from '../account.ts';
import { address, go, projectAddress } from '../address.ts';
import { CardPanel } from '../card/cardPanel.tsx';
import { readKept } from '../kept.ts';
import { Button, Hint } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { Editable } from '../parts/editable.tsx';
import { Loading } from '../parts/loaded.tsx';
import { boards, canChange, project } from '../project.ts';
import { explain } from '../service.ts';
import { BoardMenu } from './boardMenu.tsx';
import {
  board,
  boardFailure,
  drawBoard,
  followBoard,
  isDragging,
  lastBoard,
  madeBoard,
  moveCard,
  readBoard,
  renameBoard,
} from './boardState.ts';
import { AddGroup, Column } from './column.tsx';
import { followDrags } from './drag.ts';
import { currentFilter, FilterBar, isFiltering, passes } from './filter.tsx';
import { NewBoard } from './newBoard.tsx';
import { cardsOf, type FullBoard, NO_GROUP } from './places.ts';

/** A board with its groups as columns, and a card in the panel beside it. */
export function BoardPage() {
  useEffect(followBoard, []);
  useEffect(() => effect(openFirstBoard), []);
  useTitle();
  const { id, cardId } = address.value;
  if (boards.value?.length === 0) return <NoBoard />;
  return (
    <div class={cardId ? 'board-page with-panel' : 'board-page'}>
      <div class="board-place">
        {board.value && <Shown board={board.value} />}
        {!board.value && !boardFailure.value && <Loading />}
        {!board.value && boardFailure.value !== undefined && id !== undefined && <Unreadable />}
      </div>
      {cardId !== undefined && <CardPanel key={cardId} id={cardId} />}
    </div>
  );
}

/** The address names no board: the one that was opened last, else the one with the most cards. */
function openFirstBoard(): void {
  const { area, page, id, projectId } = address.value;
  const last = projectId && readKept(lastBoard(projectId));
  const [largest] = boards.value?.toSorted((one, other) => other.cards_count - one.cards_count) ?? [];
  const first = boards.value?.find((one) => one.id === last) ?? largest;
  const isOpen = project.value?.id === projectId && projectId !== undefined;
  if (area === 'project' && (page ?? 'boards') === 'boards' && id === undefined && first && isOpen)
    go(projectAddress(projectId, 'boards', first.id), { replace: true });
}

function useTitle(): void {
  const title = board.value?.title;
  const name = project.value?.name;
  const isPanelOpen = address.value.cardId !== undefined;
  useEffect(() => {
    if (title && !isPanelOpen) document.title = `${title} · ${name} · Deckhand`;
  }, [title, name, isPanelOpen]);
}

function Shown({ board: shown }: { board: FullBoard }) {
  const filter = currentFilter();
  const count = cardsOf(shown).filter(({ group_id }) => group_id !== null).length;
  const isNothingFound = isFiltering() && !cardsOf(shown).some((card) => passes(card, filter, account.value?.id));
  const place = useDrags();
  useEffect(() => {
    if (madeBoard.peek() !== shown.id) return;
    madeBoard.value = undefined;
    document.querySelector<HTMLElement>('.board-head .editable')?.focus();
  }, [shown.id]);
  return (
    <>
      <header class="board-head">
        <h1>
          <Editable
            text={shown.title}
            label="Title of the board"
            draft={`board.${shown.id}.title`}
            canEdit={canChange.value}
            onSave={(title) => renameBoard(shown.id, title)}
          />
        </h1>
        <span class="count">{countText(count, shown.missing)}</span>
        {canChange.value && <BoardMenu />}
        <FilterBar />
      </header>
      {shown.description && (
        <p class="hint" dir="auto">
          {shown.description}
        </p>
      )}
      {isNothingFound && <Hint>No card of this board matches the filter.</Hint>}
      <div class="board" id="board" ref={place}>
        {shown.groups.map((group) => (
          <Column
            key={group.id}
            group={group}
            filter={filter}
            userId={account.value?.id}
            openCard={address.value.cardId}
            hasMore={group.id === NO_GROUP ? shown.hasMoreUngrouped : shown.missing > 0}
          />
        ))}
        {canChange.value && <AddGroup boardId={shown.id} isFirst={!shown.groups.some(({ id }) => id !== NO_GROUP)} />}
      </div>
      {canChange.value && (
        <p id="moving" class="hint">
          Drag a card to move it, press Alt + arrow, or choose “Move to…”.
        </p>
      )}
    </>
  );
}

const countText = (count: number, missing: number) =>
  missing > 0 ? `${count.toLocaleString()} of ${(count + missing).toLocaleString()} cards` : counted(count, 'card');

/** Drags of people who may move cards. */
function useDrags() {
  const place = useRef<HTMLDivElement>(null);
  const canMove = canChange.value;
  useEffect(() => {
    if (!place.current || !canMove) return;
    const ended = new AbortController();
    followDrags(place.current, {
      onStart: () => {
        isDragging.value = true;
      },
      onEnd: (move) => {
        const wasDragged = isDragging.peek();
        isDragging.value = false;
        if (!move) return drawBoard();
        const moved = moveCard(move);
        if (wasDragged) return;
        // The card is another element in its new column; and again if the move is taken back.
        requestAnimationFrame(() => focusCard(move.id));
        moved.then((error) => error && document.activeElement === document.body && focusCard(move.id));
      },
      signal: ended.signal,
    });
    return () => ended.abort();
  }, [canMove]);
  return place;
}

const focusCard = (id: number) => document.querySelector<HTMLElement>(`#card-${id} .title`)?.focus();

const Unreadable = () => (
  <section class="empty">
    <h1>This board can't be shown</h1>
    <p class="failure" role="alert">
      {explain(boardFailure.value)}
    </p>
    <Button onClick={readBoard}>Try again</Button>
  </section>
);

const NoBoard = () => (
  <section class="empty">
    <h1>No board yet</h1>
    <p>A board has groups as columns, and cards in them.</p>
    {canChange.value && <NewBoard />}
  </section>
);
