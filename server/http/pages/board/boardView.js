import { element } from '../api/dom.js';

/**
 * @typedef {Awaited<ReturnType<import('../../../../client/client.ts').Client['boards']['get']['query']>>['board']} Board
 * @typedef {Board['groups'][number]} Group
 * @typedef {Group['cards'][number]} Card
 * @typedef {{ add: (groupId: number, title: string) => Promise<void>, remove: (card: Card) => Promise<void> }} Actions
 */

/**
 * Shows the groups of a board as columns; what has the focus keeps it.
 * @param {HTMLElement} place
 * @param {Board} board
 * @param {Actions} actions
 */
export function showBoard(place, board, actions) {
  const focused = document.activeElement?.id;
  const scrolled = place.scrollLeft;
  place.replaceChildren(...board.groups.map((group) => column(group, actions)));
  place.scrollLeft = scrolled;
  if (focused) document.getElementById(focused)?.focus();
}

/**
 * @param {Group} group
 * @param {Actions} actions
 */
function column(group, actions) {
  const title = element('h3', { id: `group-${group.id}` }, group.title);
  const count = element('span', { class: 'hint' }, String(group.cards.length));
  const cards = element('ol', {
    class: 'cards',
    'data-group': String(group.id),
    'aria-labelledby': `group-${group.id}`,
  });
  cards.append(...group.cards.map((card) => cardOf(card, actions)));
  return element('section', { class: 'group' }, element('header', {}, title, count), cards, addForm(group, actions));
}

/**
 * @param {Card} card
 * @param {Actions} actions
 */
function cardOf(card, actions) {
  const due = card.due_date?.toLocaleDateString(undefined, { dateStyle: 'medium' });
  const details = element(
    'p',
    { class: 'hint' },
    element('span', { class: `priority ${card.priority}` }, card.priority),
    due ? element('span', { class: card.is_overdue ? 'failure' : '' }, ` due ${due}`) : undefined,
  );
  const remove = element(
    'button',
    { class: 'remove', 'aria-label': `Delete ${card.title}`, title: 'Delete', onclick: () => actions.remove(card) },
    '×',
  );
  return element(
    'li',
    {
      class: 'card',
      id: `card-${card.id}`,
      tabindex: '0',
      'data-card': String(card.id),
      'aria-describedby': 'moving',
    },
    element('span', { class: 'handle', 'aria-hidden': 'true' }, '⠿'),
    element('div', {}, element('strong', { class: 'title' }, card.title), details),
    remove,
  );
}

/**
 * @param {Group} group
 * @param {Actions} actions
 */
function addForm(group, actions) {
  const input = element('input', {
    class: 'input',
    id: `add-${group.id}`,
    placeholder: 'Add a card',
    'aria-label': `Add a card to ${group.title}`,
    maxlength: '255',
    required: true,
    autocomplete: 'off',
  });
  const onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    actions.add(group.id, input.value);
  };
  return element('form', { class: 'add', onsubmit }, input, element('button', { class: 'button' }, 'Add'));
}
