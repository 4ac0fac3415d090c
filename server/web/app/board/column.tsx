import { useSignal } from '@preact/signals';
import { useMemo, useRef } from 'preact/hooks';
import { newId } from '../../../../client/idempotencyKey.ts';
import { Action } from '../parts/action.tsx';
import { Button, set } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { ask, Dialog } from '../parts/dialog.tsx';
import { Editable } from '../parts/editable.tsx';
import { Field, Form } from '../parts/form.tsx';
import { Menu } from '../parts/menu.tsx';
import { canChange } from '../project.ts';
import { addCard, addedCards, addGroup, board, deleteGroup, shiftGroup, updateGroup } from './boardState.ts';
import { CardTile, cssColor } from './cardTile.tsx';
import { type Filter, passes } from './filter.tsx';
import { type Group, NO_GROUP } from './places.ts';
import { QuickAdd } from './quickAdd.tsx';

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
  const passing = useMemo(
    () => new Set(group.cards.filter((card) => passes(card, filter, userId))),
    [group, filterKey, userId],
  );
  const shown = group.cards.filter((card) => passing.has(card) || addedCards.value.has(card.id));
  const total = `${group.cards.length.toLocaleString()}${hasMore ? '+' : ''}`;
  const canEdit = canChange.value && group.id !== NO_GROUP;
  return (
    <section class="group" style={{ '--group': cssColor(group.color) }} aria-labelledby={`group-${group.id}`}>
      <header>
        <h2 id={`group-${group.id}`}>
          <Editable
            text={group.title}
            label="Title of the group"
            draft={`group.${group.id}.title`}
            canEdit={canEdit}
            onSave={(title) => updateGroup(group.id, { title })}
          />
        </h2>
        <span class="count">{passing.size < group.cards.length ? `${passing.size} of ${total}` : total}</span>
        {canEdit && <GroupMenu group={group} />}
      </header>
      <ol class="cards" data-group={group.id} aria-label={group.title}>
        {shown.map((card) => (
          <CardTile key={card.id} card={card} isOpen={card.id === openCard} isHidden={!passing.has(card)} />
        ))}
      </ol>
      {hasMore && group.id === NO_GROUP && (
        <p class="hint">Only the first {total.replace('+', '')} are shown. Move cards to groups to see more.</p>
      )}
      {group.adding && (
        <ul class="adding" aria-label="Being added">
          {group.adding.map((title, at) => (
            <li key={at} class="pending" dir="auto">
              {title}
            </li>
          ))}
        </ul>
      )}
      {canChange.value && (
        <QuickAdd
          draft={`add.${group.id}`}
          label={`Add a card to ${group.title}`}
          placeholder="Add a card"
          action="Add"
          send={(title, key) => addCard(group.id, title, key)}
        />
      )}
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
  const text = `“${group.title}” with its ${counted(group.cards.length, 'card')} goes to the trash.`;
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
      <Form action="Save" draft={`group.${group.id}.color`} onSubmit={save} onCancel={onClose}>
        <ColorField color={group.color} />
      </Form>
    </Dialog>
  );
}

/** A colour in any way that CSS knows: typed, picked, or one of the common ones. */
export function ColorField({ color }: { color: string | null }) {
  const place = useRef<HTMLDivElement>(null);
  const typed = useSignal(color ?? '');
  const isUnknown = typed.value.trim() !== '' && !cssColor(typed.value.trim());
  const choose = (chosen: string) => {
    const input = place.current?.querySelector('input');
    if (!input) return;
    input.value = chosen;
    input.dispatchEvent(new Event('input', { bubbles: true }));
  };
  return (
    <div ref={place}>
      <Field
        label="Colour"
        name="color"
        defaultValue={color ?? ''}
        maxLength={50}
        hint="As in #0b6e99 or teal; none if empty."
        onInput={({ currentTarget }) => set(typed, currentTarget.value)()}
      />
      <p class="failure" role="alert">
        {isUnknown && `“${typed.value.trim()}” is not a colour that browsers know: it is saved, and not shown.`}
      </p>
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
        <input
          type="color"
          class="swatch"
          aria-label="Pick a colour"
          value={/^#[0-9a-f]{6}$/i.test(typed.value) ? typed.value : COLORS[0]}
          onInput={({ currentTarget }) => choose(currentTarget.value)}
        />
      </div>
    </div>
  );
}

const FIRST_GROUPS = ['To do', 'In progress', 'Done'];
const addFirstGroups = (boardId: number) => Promise.all(FIRST_GROUPS.map((title) => addGroup(boardId, title, newId())));

/** `isFirst`: the board has no group yet. */
export const AddGroup = ({ boardId, isFirst }: { boardId: number; isFirst: boolean }) => (
  <section class="group new" aria-label="New group">
    <QuickAdd
      draft={`addGroup.${boardId}`}
      label="Add a group"
      placeholder="Add a group"
      action="Add group"
      send={(title, key) => addGroup(boardId, title, key)}
    />
    {isFirst && (
      <Action as="quiet" run={() => addFirstGroups(boardId)}>
        Start with {new Intl.ListFormat('en-GB').format(FIRST_GROUPS)}
      </Action>
    )}
  </section>
);
