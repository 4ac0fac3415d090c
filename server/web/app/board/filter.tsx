import { useEffect } from 'preact/hooks';
import { account } from '../account.ts';
import { address, go, withQuery } from '../address.ts';
import { set, TextButton } from '../parts/button.tsx';
import { SearchField } from '../parts/table.tsx';
import { members, tags } from '../project.ts';
import { addedCards, board } from './boardState.ts';
import { type BoardCard, cardsOf } from './places.ts';

/** What of a board is shown; kept in the address. */
export type Filter = { text: string; owner: string; tag: string; status: string; due: string };

const FIELDS = ['text', 'owner', 'tag', 'status', 'due'] as const;
const DAY_MILLISECONDS = 24 * 60 * 60_000;

export function currentFilter(): Filter {
  const { query } = address.value;
  return Object.fromEntries(FIELDS.map((name) => [name, query.get(name) ?? ''])) as Filter;
}

export const isFiltering = () => Object.values(currentFilter()).some((value) => value !== '');

/** Whether a card passes; everything passes an empty filter. */
export function passes(
  card: BoardCard,
  { text, owner, tag, status, due }: Filter,
  userId: number | undefined,
): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const content = words.length > 0 ? `${card.title} ${card.description ?? ''}`.toLowerCase() : '';
  return (
    words.every((word) => content.includes(word)) &&
    isChosen(owner, card.owner_id, userId) &&
    isChosen(tag, card.tag_id) &&
    (status === '' || card.status === status) &&
    isDue(due, card)
  );
}

const isChosen = (chosen: string, id: number | null, userId?: number) =>
  chosen === '' || (chosen === 'none' ? id === null : id === (chosen === 'me' ? userId : Number(chosen)));

function isDue(due: string, { due_date, is_overdue }: BoardCard): boolean {
  if (due === 'none') return due_date === null;
  if (due === 'overdue') return is_overdue;
  if (due === 'week') return due_date !== null && due_date.getTime() < Date.now() + 7 * DAY_MILLISECONDS;
  return true;
}

/** Narrows what the board shows. */
export function FilterBar() {
  const filter = currentFilter();
  useEffect(() => set(addedCards, new Set<number>()), [JSON.stringify(filter)]);
  const cards = board.value ? cardsOf(board.value) : [];
  const statuses = [...new Set(cards.map(({ status }) => status))].toSorted();
  const owners = [...members.value.values()].filter(({ user_id }) => user_id !== account.value?.id);
  return (
    <search class="filter">
      <SearchField label="Find cards" value={filter.text} onSearch={(text) => change('text', text)} />
      <Pick name="owner" label="Owner" value={filter.owner}>
        {[['me', 'Me'], ['none', 'Nobody'], ...owners.map(({ user_id, name }) => [String(user_id), name])]}
      </Pick>
      <Pick name="tag" label="Tag" value={filter.tag}>
        {[...[...tags.value.values()].map(({ id, name }) => [String(id), name]), ['none', 'No tag']]}
      </Pick>
      <Pick name="status" label="Status" value={filter.status}>
        {statuses.map((status) => [status, status.replaceAll('_', ' ')])}
      </Pick>
      <Pick name="due" label="Due" value={filter.due}>
        {[
          ['overdue', 'Overdue'],
          ['week', 'Within 7 days'],
          ['none', 'No date'],
        ]}
      </Pick>
      {isFiltering() && (
        <TextButton text="Clear" onClick={() => go(withQuery(Object.fromEntries(FIELDS.map((name) => [name, '']))))} />
      )}
    </search>
  );
}

const change = (name: string, value: string) => go(withQuery({ [name]: value }), { replace: true });

function Pick({ name, label, value, children }: { name: string; label: string; value: string; children: string[][] }) {
  return (
    <select
      class={value ? 'input chosen' : 'input'}
      aria-label={label}
      value={value}
      onChange={({ currentTarget }) => change(name, currentTarget.value)}
    >
      <option value="">{label}: all</option>
      {children.map(([choice, text]) => (
        <option key={choice} value={choice}>
          {text}
        </option>
      ))}
    </select>
  );
}
