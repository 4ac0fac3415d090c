import { account } from '../account.ts';
import { address } from '../address.ts';
import { CardPanel } from '../card/cardPanel.tsx';
import { More, type Page, usePages, Waiting } from '../parts/loaded.tsx';
import { useReload } from '../parts/reload.ts';
import { inProject, project } from '../project.ts';
import { CardRows } from './cardList.tsx';
import type { BoardCard } from './places.ts';

const WEEK_MILLISECONDS = 7 * 24 * 60 * 60_000;
const FEW_CARDS = 20;

/** Over all boards of the project: what is assigned to the user, and what is due. */
export function DuePage() {
  const { cardId } = address.value;
  return (
    <div class={cardId ? 'board-page with-panel' : 'board-page'}>
      <div>
        <h1>Due and mine</h1>
        <CardSection title="Mine" none="No open card is assigned to you." read={{ owner_id: account.value?.id ?? 0 }} />
        <CardSection
          title="Due within 7 days, or overdue"
          none="Nothing is due."
          read={{ due_before: new Date(Date.now() + WEEK_MILLISECONDS) }}
        />
      </div>
      {cardId !== undefined && <CardPanel key={cardId} id={cardId} />}
    </div>
  );
}

type Wanted = { owner_id?: number; due_before?: Date };

function CardSection({ title, none, read }: { title: string; none: string; read: Wanted }) {
  const pages = usePages((cursor) => readOpen(read, cursor), [project.value?.id]);
  useReload(/^(card|template)\./, pages.reload);
  const cards = pages.data.value ?? [];
  return (
    <section>
      <h2>{title}</h2>
      <Waiting loaded={pages}>
        {cards.length === 0 && !pages.next.value && <p class="hint">{none}</p>}
        <CardRows cards={cards.toSorted((one, other) => dueTime(one) - dueTime(other))} />
        {cards.length > 0 && <More pages={pages} noun="card" />}
      </Waiting>
    </section>
  );
}

/** A page of the service may be short: it looks through a limited number of cards. */
async function readOpen(wanted: Wanted, from: string | undefined): Promise<Page<BoardCard>> {
  const rows: BoardCard[] = [];
  let next = from ?? null;
  do {
    const page = await inProject().cards.list.query({ ...wanted, limit: 100, ...(next && { cursor: next }) });
    rows.push(...page.cards.filter(({ status }) => status !== 'closed'));
    next = page.next_cursor;
  } while (next && rows.length < FEW_CARDS);
  return { rows, next };
}

const dueTime = ({ due_date }: BoardCard) => due_date?.getTime() ?? Number.POSITIVE_INFINITY;
