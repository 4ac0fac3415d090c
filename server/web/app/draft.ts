import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { account } from './account.ts';
import { keep, namesKept, readKept } from './kept.ts';

const PREFIX = 'draft.';
const drafts = new Map<string, Signal<unknown>>();
const names = signal<ReadonlySet<string>>(new Set());

/**
 * What was typed and is not saved yet, with a function that keeps it; undefined drops it. It outlives Escape, a reload and the end
 * of a session. All tabs share it.
 */
export function draftOf<Draft>(
  name: string,
): [ReadonlySignal<Draft | undefined>, keepDraft: (draft: Draft | undefined) => void] {
  const draft = drafts.get(name) ?? signal<unknown>(readKept(PREFIX + name));
  drafts.set(name, draft);
  const keepDraft = (typed: Draft | undefined) => {
    draft.value = typed;
    keep(PREFIX + name, typed);
    if (names.peek().has(name) !== (typed !== undefined)) readNames();
  };
  return [draft as ReadonlySignal<Draft | undefined>, keepDraft];
}

export const hasDraft = (name: string) => names.value.has(name);

/** Whether anything of a card is not saved: a field, a comment or a reply. */
export const hasCardDraft = (id: number) => [...names.value].some((name) => name.startsWith(ofCard(id, '')));
export const ofCard = (id: number, name: string) => `card.${id}.${name}`;

function readNames(): void {
  names.value = new Set(namesKept(PREFIX).map((name) => name.slice(PREFIX.length)));
}

effect(() => {
  if (account.value) readNames();
});

/** Another tab has changed a draft. */
addEventListener('storage', ({ key }) => {
  if (!key?.includes(PREFIX)) return;
  for (const [name, draft] of drafts) if (key.endsWith(`.${PREFIX}${name}`)) draft.value = readKept(PREFIX + name);
  readNames();
});
