import { withCard } from '../address.ts';
import { members, tags } from '../project.ts';
import { Chips } from './cardTile.tsx';
import type { BoardCard } from './places.ts';

/** Cards of several boards below each other; each opens in the panel. */
export const CardRows = ({ cards }: { cards: BoardCard[] }) => (
  <ul class="card-rows">
    {cards.map((card) => (
      <li key={card.id} class="card" id={`card-${card.id}`}>
        <a class="title" href={withCard(card.id)} dir="auto">
          {card.title}
        </a>
        <Chips
          card={card}
          tag={card.tag_id === null ? undefined : tags.value.get(card.tag_id)}
          owner={card.owner_id === null ? undefined : (members.value.get(card.owner_id)?.name ?? 'Somebody')}
        />
      </li>
    ))}
  </ul>
);
