import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { useDraft } from '../card/draft.ts';
import { Button, set } from '../parts/button.tsx';
import { ask, Dialog } from '../parts/dialog.tsx';
import { Editable } from '../parts/editable.tsx';
import { Field, Form } from '../parts/form.tsx';
import { Menu } from '../parts/menu.tsx';
import { canChange } from '../project.ts';
import { addCard, addGroup, board, deleteGroup, shiftGroup, updateGroup } from './boardState.ts';
import { CardTile, cssColor } from './cardTile.tsx';
import { type Filter, passes } from './filter.tsx';
import { type Group, NO_GROUP } from './places.ts';

type ColumnProps = {
  group: Group;
  filter: Filter;
  userId: number | undefined;
  openCard: number | undefined;
  /** There are, or may be, more cards than were read. */
  hasMore: boolean;
};

/** A group of the board. */
export function Column({ group, filter, userId, openCard, hasMore }: ColumnProps) {
  const filterKey = JSON.stringify(filter);
  const shown = useMemo(() => group.cards.filter((card) => passes(card, filter, userId)), [group, filterKey, userId]);
  const total = `${group.cards.length.toLocaleString()}${hasMore ? '+' : ''}`;
  const canEdit = canChange.value && group.id !== NO_GROUP;
  return (
    <section class="group" style={{ '--group': cssColor(group.color) }} aria-labelledby={`group-${group.id}`}>
      <header>
        <h2 id={`group-${group.id}`}>
          <Editable
            text={group.title}
            label="Title of the group"
            canEdit={canEdit}
            onSave={(title) => updateGroup(group.id, { title })}
          />
        </h2>
        <span class="count">{shown.length < group.cards.length ? `${shown.length} of ${total}` : total}</span>
        {canEdit && <GroupMenu group={group} />}
      </header>
      <ol class="cards" data-group={group.id} aria-label={group.title}>
        {shown.map((card) => (
          <CardTile key={card.id} card={card} isOpen={card.id === openCard} />
        ))}
      </ol>
      {hasMore && group.id === NO_GROUP && (
        <p class="hint">Only the first {total.replace('+', '')} are shown. Move cards to groups to see more.</p>
      )}
      {canChange.value && <AddCard groupId={group.id} group={group.title} />}
    </section>
  );
}

function GroupMenu({ group }: { group: Group }) {
  const isColoring = useSignal(false);
  const groups = board.value?.groups.filter(({ id }) => id !== NO_GROUP) ?? [];
  const at = groups.findIndex(({ id }) => id === group.id);
  return (
    <>
      <Menu label={`Actions for the group ${group.title}`} content="⋯">
        <Button as="item" onClick={set(isColoring, true)}>
          Colour…
        </Button>
        {at > 0 && (
          <Button as="item" onClick={() => shiftGroup(group.id, -1)}>
            Move left
          </Button>
        )}
        {at < groups.length - 1 && (
          <Button as="item" onClick={() => shiftGroup(group.id, 1)}>
            Move right
          </Button>
        )}
        <Button as="item" onClick={() => remove(group)}>
          Delete the group…
        </Button>
      </Menu>
      {isColoring.value && <ColorDialog group={group} onClose={set(isColoring, false)} />}
    </>
  );
}

async function remove(group: Group): Promise<void> {
  const text = `“${group.title}” with its ${group.cards.length} cards goes to the trash.`;
  if (await ask({ title: 'Delete the group?', text, action: 'Delete it' })) deleteGroup(group);
}

export const COLORS = ['#0b6e99', '#2e7d32', '#b26a00', '#b3261e', '#8a4baf', '#5b6b78'];

function ColorDialog({ group, onClose }: { group: Group; onClose: () => void }) {
  const save = async ({ color = '' }: Record<string, string>) => {
    onClose();
    updateGroup(group.id, { color: color.trim() || null });
  };
  return (
    <Dialog title={`Colour of ${group.title}`} onClose={onClose}>
      <Form action="Save" onSubmit={save} onCancel={onClose}>
        <ColorField color={group.color} />
      </Form>
    </Dialog>
  );
}

/** A colour in any way that CSS knows; common ones to choose from. */
export function ColorField({ color }: { color: string | null }) {
  const place = useRef<HTMLDivElement>(null);
  const choose = (chosen: string) => {
    const input = place.current?.querySelector('input');
    if (input) input.value = chosen;
  };
  return (
    <div ref={place}>
      <Field
        label="Colour"
        name="color"
        defaultValue={color ?? ''}
        maxLength={50}
        hint="As in #0b6e99 or teal; none if empty."
      />
      <div class="swatches">
        {COLORS.map((one) => (
          <button
            key={one}
            type="button"
            class="swatch"
            style={{ background: one }}
            aria-label={`Use ${one}`}
            onClick={() => choose(one)}
          />
        ))}
      </div>
    </div>
  );
}

function AddCard({ groupId, group }: { groupId: number; group: string }) {
  const [draft, keepDraft] = useDraft<string>(`add.${groupId}`);
  const isBusy = useSignal(false);
  /** The last text that failed, and its key: sent again, it never makes a second card. */
  const failed = useRef<{ title: string; key: string | undefined }>({ title: '', key: undefined });
  const add = async (event: Event) => {
    event.preventDefault();
    const typed = draft.peek()?.trim() ?? '';
    if (isBusy.peek() || typed === '') return;
    isBusy.value = true;
    const error = await addCard(groupId, typed, typed === failed.current.title ? failed.current.key : undefined);
    isBusy.value = false;
    failed.current = { title: typed, key: error?.idempotencyKey };
    if (!error) keepDraft(undefined);
  };
  return (
    <form class="add" onSubmit={add} aria-busy={isBusy}>
      <input
        class="input"
        aria-label={`Add a card to ${group}`}
        placeholder="Add a card"
        maxLength={255}
        autocomplete="off"
        dir="auto"
        value={draft.value ?? ''}
        readOnly={isBusy}
        onInput={({ currentTarget }) => keepDraft(currentTarget.value || undefined)}
      />
      <button type="submit" class="button quiet">
        Add
      </button>
    </form>
  );
}

export function AddGroup({ boardId }: { boardId: number }) {
  const add = async ({ title = '' }: Record<string, string>, form: HTMLFormElement) => {
    const error = await addGroup(boardId, title.trim());
    if (!error) form.reset();
  };
  return (
    <section class="group new" aria-label="New group">
      <Form action="Add group" isQuiet onSubmit={add} class="add">
        <input
          class="input"
          name="title"
          aria-label="Add a group"
          placeholder="Add a group"
          required
          maxLength={255}
          dir="auto"
        />
      </Form>
    </section>
  );
}
