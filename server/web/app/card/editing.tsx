import { type Signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { DeckhandError } from '../../../../client/client.ts';
import { makeTurns } from '../../../../client/events/turns.ts';
import { patchCard } from '../board/boardState.ts';
import { draftOf, ofCard } from '../draft.ts';
import { Button, TextButton } from '../parts/button.tsx';
import { useLoaded } from '../parts/loaded.tsx';
import { sayFailure } from '../parts/message.tsx';
import { canChange, onProjectEvent, tags } from '../project.ts';
import { client, explain } from '../service.ts';
import { dueText, fromField, toField, toLocalField } from './dueDate.ts';
import { readEvents } from './history.tsx';
import { nameOf } from './person.tsx';

export type Card = Awaited<ReturnType<typeof client.cards.get.query>>['card'];
type Saved = { card: Omit<Card, 'is_dismissed'>; version: string };
type At = { id: number; if_version: string };
/** The card as the service has it, with its version. */
export type ShownCard = { state: Signal<{ card: Card; version: string }>; reload: () => Promise<void> };

type Rules = {
  label: string;
  /** The value as text, as it is edited. */
  read: (card: Card) => string;
  send: (text: string, at: At) => Promise<Saved>;
  /** The text for people. */
  show: (text: string) => string;
  isNeeded: boolean;
};

const plain = (name: 'title' | 'description' | 'status' | 'priority', label: string, isNeeded: boolean): Rules => ({
  label,
  isNeeded,
  read: (card) => card[name] ?? '',
  send: (text, at) => client.cards.update.mutate({ ...at, [name]: text || null }),
  show: (text) => text,
});

const reference = (name: 'owner_id' | 'tag_id', label: string, show: (id: number) => string, none: string): Rules => ({
  label,
  isNeeded: false,
  read: (card) => String(card[name] ?? ''),
  send: (id, at) => client.cards.update.mutate({ ...at, [name]: Number(id) || null }),
  show: (id) => (id ? show(Number(id)) : none),
});

const FIELDS = {
  title: plain('title', 'Title', true),
  description: plain('description', 'Description', false),
  status: plain('status', 'Status', true),
  priority: plain('priority', 'Priority', true),
  owner_id: reference('owner_id', 'Owner', nameOf, 'Nobody'),
  tag_id: reference('tag_id', 'Tag', (id) => tags.value.get(id)?.name ?? 'A deleted tag', 'No tag'),
  due_date: {
    label: 'Due',
    isNeeded: false,
    read: ({ due_date }) => toField(due_date),
    send: (text, at) => client.cards.update.mutate({ ...at, due_date: fromField(text) }),
    show: (text) => (text ? dueText(new Date(text)) : 'No due date'),
  },
  snoozed_until: {
    label: 'Snoozed until',
    isNeeded: false,
    read: ({ snoozed_until: until }) => toLocalField(until && until.getTime() > Date.now() ? until : null),
    send: (text, at) => client.cards.snooze.mutate({ ...at, until: text ? new Date(text) : null }),
    show: (text) => (text ? dueText(new Date(text)) : 'Not snoozed'),
  },
} satisfies Record<string, Rules>;

export type EditedField = ReturnType<typeof useField>;
type Typed = { base: string; text: string };

const MOST_TRIES = 4;
/** Each save needs the version that the one before made: two at once would cost the second one another try. */
const inTurn = makeTurns();

/**
 * A field that is saved by itself. What is typed is kept until it is saved, or taken back. If somebody else changes the same field
 * meanwhile, nothing is sent until the person has chosen; changes of other fields only cost another try.
 */
export function useField({ state, reload }: ShownCard, name: keyof typeof FIELDS) {
  const rules = FIELDS[name];
  const { card } = state.value;
  const draftName = ofCard(card.id, name);
  const [draft, keepDraft] = draftOf<Typed>(draftName);
  /** Escape has closed the editor; the draft stays. */
  const isShelved = useSignal(false);
  const isSaving = useSignal(false);
  const failure = useSignal('');
  const place = useRef<HTMLDivElement>(null);
  const saved = () => rules.read(state.peek().card);

  /** Whether it is saved; false if somebody else has changed the field. */
  const send = async ({ base, text }: Typed) => {
    for (let tries = 1; saved() !== text; tries++) {
      if (saved() !== base) return false;
      try {
        const result = await rules.send(text, { id: card.id, if_version: state.peek().version });
        state.value = { card: { ...state.peek().card, ...result.card }, version: result.version };
        patchCard(result.card);
        break;
      } catch (error) {
        if ((error as DeckhandError).reason !== 'row_changed' || tries === MOST_TRIES) throw error;
        await reload();
      }
    }
    return true;
  };
  const save = async () => {
    const sent = draft.peek();
    if (!sent || isSaving.peek()) return;
    const text = sent.text.trim();
    failure.value = text === '' && rules.isNeeded ? `${rules.label} can't be empty.` : '';
    if (failure.peek()) return;
    isSaving.value = true;
    try {
      const isSaved = await inTurn(String(card.id), () => send({ ...sent, text }));
      const later = draft.peek();
      // What was typed after it was sent is still to be saved.
      if (isSaved && later) keepDraft(later.text === sent.text ? undefined : { ...later, base: saved() });
    } catch (error) {
      failure.value = explain(error);
      if (!place.current) sayFailure(error, `${rules.label} of “${card.title}” is not saved. It is kept in the card.`);
      if ((error as DeckhandError).reason === 'not_found') reload();
    }
    isSaving.value = false;
  };

  const now = rules.read(card);
  const { base, text } = draft.value ?? { base: now, text: now };
  const type = (typed: string) => {
    isShelved.value = false;
    keepDraft(typed === now ? undefined : { base, text: typed });
  };
  return {
    ...{ id: `edit-${name}`, cardId: card.id, name, draft: draftName, label: rules.label, show: rules.show },
    ...{ now, text, isSaving, isShelved, failure, place, type, save },
    isEdited: draft.value !== undefined && text.trim() !== now,
    hasConflict: now !== base && now !== text,
    choose: (chosen: string) => {
      type(chosen);
      return save();
    },
    takeBack: () => {
      failure.value = '';
      isShelved.value = false;
      keepDraft(undefined);
    },
    keepMine: () => {
      isShelved.value = false;
      keepDraft({ base: saved(), text });
      return save();
    },
  };
}

type EditedProps = {
  field: EditedField;
  /** The control of people who may change the card. */
  children: ComponentChildren;
  /** What others see, if it is not just the text. */
  view?: ComponentChildren;
  /** Enter begins a new line; with Ctrl it saves. */
  hasLines?: boolean;
};

/** The label of a field, its control, and what becomes of it. Leaving it or Enter saves, Escape closes it and keeps the draft. */
export function Edited({ field, children, view, hasLines = false }: EditedProps) {
  const { id, label, now, isEdited, hasConflict, isSaving, isShelved, failure, place, show, save, takeBack } = field;
  const button = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isShelved.value) button.current?.querySelector('button')?.focus();
  }, [isShelved.value]);
  const text = view ?? <span dir="auto">{show(now) || 'None'}</span>;
  if (!canChange.value)
    return (
      <div class="edited">
        <span class="label">{label}</span>
        {text}
      </div>
    );
  const isClosed = isShelved.value && isEdited;
  const leave = ({ relatedTarget }: FocusEvent) =>
    isShelved.peek() || place.current?.contains(relatedTarget as Node | null) || save();
  const goOn = () => {
    isShelved.value = false;
    requestAnimationFrame(() => document.getElementById(id)?.focus());
  };
  const press = (event: KeyboardEvent) => {
    const { key, target, isComposing, ctrlKey, metaKey } = event;
    if ((target as Element).closest('dialog')) return;
    if (key === 'Escape' && isEdited && !isShelved.peek()) {
      event.stopPropagation();
      isShelved.value = true;
    }
    if (key !== 'Enter' || isComposing || target instanceof HTMLButtonElement || (hasLines && !ctrlKey && !metaKey))
      return;
    event.preventDefault();
    save();
  };
  return (
    <div class="edited" ref={place} onFocusOut={leave} onKeyDown={press} aria-busy={isSaving}>
      <label class="label" for={id}>
        {label} <span role="status">{isSaving.value && 'Saving…'}</span>
      </label>
      {isClosed ? text : children}
      {isEdited && !hasConflict && !isSaving.value && (
        <div onMouseDown={stay} ref={button}>
          <span class="hint">Unsaved draft</span>{' '}
          {isClosed ? <TextButton text="Go on" onClick={goOn} /> : <TextButton text="Save" onClick={save} />}
          <TextButton text="Take back" onClick={takeBack} />
        </div>
      )}
      <p class="failure" role="alert">
        {failure}
      </p>
      {hasConflict && <Conflict field={field} />}
    </div>
  );
}

/** Leaving the field would save. */
const stay = (event: Event) => event.preventDefault();

function Conflict({ field: { cardId, name, now, text, show, keepMine, takeBack } }: { field: EditedField }) {
  const { data: by, reload } = useLoaded(() => whoChanged(cardId, name), [now]);
  // The card may be read before its event.
  const follow = () => onProjectEvent((event) => event?.subject_id === cardId && reload());
  useEffect(follow, [cardId]);
  return (
    <div class="conflict" role="alert" onMouseDown={stay}>
      <p>{by.value ?? 'Somebody'} has changed this while you were editing it. Which one is to stay?</p>
      <dl>
        <dt>Now</dt>
        <dd dir="auto">{show(now) || 'Empty'}</dd>
        <dt>Yours</dt>
        <dd dir="auto">{show(text) || 'Empty'}</dd>
      </dl>
      <div class="choices">
        <Button onClick={keepMine}>Save mine</Button>
        <TextButton text="Leave it as it is now" onClick={takeBack} />
      </div>
    </div>
  );
}

async function whoChanged(cardId: number, field: string): Promise<string | undefined> {
  const last = (await readEvents(cardId)).find(({ data }) => data.fields?.includes(field));
  return last?.user_id ? nameOf(last.user_id) : undefined;
}
