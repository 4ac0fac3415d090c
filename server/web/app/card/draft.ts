import { type ReadonlySignal, useSignal } from '@preact/signals';
import { account } from '../account.ts';

/** What was typed and is not saved yet. It outlives the panel and a reload of the page. */
export function useDraft<Draft>(name: string): [ReadonlySignal<Draft | undefined>, (draft: Draft | undefined) => void] {
  const draft = useSignal<Draft | undefined>(JSON.parse(sessionStorage.getItem(keyOf(name)) ?? 'null') ?? undefined);
  const keep = (typed: Draft | undefined) => {
    if (typed === undefined) sessionStorage.removeItem(keyOf(name));
    else sessionStorage.setItem(keyOf(name), JSON.stringify(typed));
    draft.value = typed;
  };
  return [draft, keep];
}

export const hasDraft = (name: string) => sessionStorage.getItem(keyOf(name)) !== null;

/** Another user of the same browser has other drafts. */
const keyOf = (name: string) => `deckhand.draft.${account.peek()?.id}.${name}`;
