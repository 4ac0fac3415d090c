import { useComputed, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { address, withCard } from '../address.ts';
import { dueChip } from '../card/dueDate.ts';
import { MoveDialog } from '../card/moveDialog.tsx';
import { hasCardDraft } from '../draft.ts';
import { Initials } from '../frame.tsx';
import { Button, set } from '../parts/button.tsx';
import { Menu } from '../parts/menu.tsx';
import { canChange, members, tags } from '../project.ts';
import { deleteCard } from './boardState.ts';
import type { BoardCard } from './places.ts';

/** `isHidden`: shown although the filter hides it. */
type TileProps = { card: BoardCard; isOpen: boolean; isHidden: boolean };

/** A card on the board. It is drawn again only if something of it changed: boards have a thousand. */
export function CardTile({ card, isOpen, isHidden }: TileProps) {
  const isMoving = useSignal(false);
  const owner = card.owner_id === null ? undefined : members.value.get(card.owner_id);
  const tag = card.tag_id === null ? undefined : tags.value.get(card.tag_id);
  const canMove = canChange.value;
  const href = withCard(card.id);
  return useMemo(
    () => (
      <li class={`card ${isOpen ? 'open' : ''} ${canMove ? 'movable' : ''}`} id={`card-${card.id}`} data-card={card.id}>
        {canMove && (
          <span class="handle" aria-hidden="true">
            ⠿
          </span>
        )}
        <a class="title" href={href} dir="auto" aria-describedby={canMove ? 'moving' : undefined}>
          {card.title}
        </a>
        {canMove && (
          <Menu label={`Actions for ${card.title}`} content="⋯">
            <Button as="item" onClick={set(isMoving, true)}>
              Move to…
            </Button>
            <Button as="item" onClick={() => removeAndFocusNext(card)}>
              Delete
            </Button>
          </Menu>
        )}
        <Chips card={card} tag={tag} owner={owner?.name ?? (card.owner_id === null ? undefined : 'Somebody')} />
        {isHidden && <span class="hint filtered">hidden by the filter</span>}
        {isMoving.value && <MoveDialog card={card} onClose={set(isMoving, false)} />}
      </li>
    ),
    [card, isOpen, isHidden, owner, tag, canMove, href, isMoving.value],
  );
}

type ChipsProps = {
  card: Pick<BoardCard, 'id' | 'due_date' | 'is_overdue' | 'priority' | 'status' | 'snoozed_until'>;
  tag: { name: string; color: string | null } | undefined;
  owner: string | undefined;
};

/** What is worth seeing at a glance; nothing for what is usual. */
export function Chips({ card, tag, owner }: ChipsProps) {
  const due = dueChip(card);
  const isDrafted = useComputed(() => hasCardDraft(card.id) && address.value.cardId !== card.id).value;
  const isSnoozed = card.snoozed_until !== null && card.snoozed_until.getTime() > Date.now();
  const chips = [
    tag && <TagChip key="tag" {...tag} />,
    due && (
      <span key="due" class={`chip ${due.isOverdue ? 'overdue' : ''}`}>
        <span class="unseen">{due.isOverdue ? 'Overdue: ' : 'Due '}</span>
        {due.text}
      </span>
    ),
    card.priority !== 'normal' && (
      <span key="priority" class={`chip priority ${card.priority}`}>
        {card.priority}
      </span>
    ),
    card.status !== 'open' && (
      <span key="status" class="chip" dir="auto">
        {card.status.replaceAll('_', ' ')}
      </span>
    ),
    isSnoozed && (
      <span key="snoozed" class="chip">
        snoozed
      </span>
    ),
    isDrafted && (
      <span key="draft" class="chip draft">
        unsaved draft
      </span>
    ),
    owner && (
      <span key="owner" class="owner">
        <span class="unseen">Owner: {owner}</span>
        <Initials name={owner} />
      </span>
    ),
  ].filter(Boolean);
  return chips.length > 0 ? <div class="chips">{chips}</div> : null;
}

/** A colour is free text: one that CSS does not know is left out. */
export const cssColor = (color: string | null) =>
  color && !/(var|env|url)\s*\(/i.test(color) && CSS.supports('color', color) ? color : undefined;

export const TagChip = ({ name, color }: { name: string; color: string | null }) => (
  <span class="chip tag" style={{ '--tag': cssColor(color) }} dir="auto">
    {name}
  </span>
);

function removeAndFocusNext(card: BoardCard): void {
  const tile = document.getElementById(`card-${card.id}`);
  const next = tile?.nextElementSibling ?? tile?.previousElementSibling;
  deleteCard(card);
  requestAnimationFrame(() => next?.querySelector<HTMLElement>('.title')?.focus({ preventScroll: true }));
}
