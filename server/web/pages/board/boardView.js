import { element, whileBusy } from '../api/dom.js';
import { dayOf } from './dueDate.js';

/**
 * @typedef {Awaited<ReturnType<import('../client.js').Client['boards']['get']['query']>>['board']} Board
 * @typedef {Board['groups'][number]} Group
 * @typedef {Group['cards'][number]} Card
 * @typedef {import('../client.js').DeckhandError} DeckhandError
 * @typedef {object} Actions
 * @property {(groupId: number, title: string, key?: string) => Promise<DeckhandError | undefined>} add
 * @property {(card: Card) => unknown} remove
 */

/**
 * Shows the groups of a board as columns. Columns and unchanged cards stay the same elements: they keep the focus, typed text
 * and its selection.
 * @param {HTMLElement} place
 * @param {Actions} actions
 */
export function boardView(place, actions) {
  /** @type {Map<number, ReturnType<typeof columnOf>>} */
  const columns = new Map();
  /** @type {Map<number, { item: HTMLElement, content: string }>} */
  const items = new Map();

  /** @param {Card} card */
  const itemOf = (card) => {
    const { title, priority, due_date, is_overdue } = card;
    const content = JSON.stringify([title, priority, due_date, is_overdue]);
    const kept = items.get(card.id);
    if (kept?.content === content) return kept.item;
    const item = cardOf(card, actions);
    items.set(card.id, { item, content });
    return item;
  };

  /** @param {Group} group */
  const sectionOf = (group) => {
    const column = columns.get(group.id) ?? columnOf(group.id, actions);
    columns.set(group.id, column);
    column.show(group, group.cards.map(itemOf));
    return column.section;
  };

  return {
    /** @param {Board} board */
    show: (board) => {
      // The drag ends with a new drawing.
      if (place.querySelector('.dragged')) return;
      keepFocus(() => arrange(place, board.groups.map(sectionOf)));
    },
    hide: () => place.replaceChildren(),
    /** Forgets typed text, too. */
    clear: () => {
      columns.clear();
      items.clear();
      place.replaceChildren();
    },
  };
}

/**
 * @param {number} id
 * @param {Actions} actions
 */
function columnOf(id, actions) {
  const title = element('h3', { id: `group-${id}` });
  const count = element('span', { class: 'hint' });
  const cards = element('ol', { class: 'cards', 'data-group': String(id), 'aria-labelledby': title.id });
  const { form, input } = addForm(id, actions);
  return {
    section: element('section', { class: 'group' }, element('header', {}, title, count), cards, form),
    /**
     * @param {Group} group
     * @param {HTMLElement[]} items
     */
    show: (group, items) => {
      title.textContent = group.title;
      count.textContent = String(items.length);
      input.ariaLabel = `Add a card to ${group.title}`;
      arrange(cards, items);
    },
  };
}

/**
 * Gives an element these children in this order, and leaves alone what is at its place.
 * @param {HTMLElement} parent
 * @param {HTMLElement[]} children
 */
function arrange(parent, children) {
  for (const child of [...parent.children]) if (!children.includes(/** @type {any} */ (child))) child.remove();
  for (const [index, child] of children.entries()) {
    const there = parent.children[index];
    if (there !== child) parent.insertBefore(child, there ?? null);
  }
}

/**
 * An element that moves loses the focus; a card that was deleted leaves it to the next one. The page does not scroll to it.
 * @param {() => void} change
 */
function keepFocus(change) {
  const focused = /** @type {HTMLElement} */ (document.activeElement ?? document.body);
  const card = focused.closest('.card');
  const near = card?.nextElementSibling ?? card?.previousElementSibling;
  change();
  if (document.activeElement === focused) return;
  const next = focused.isConnected ? focused : ((card && document.getElementById(card.id)) ?? near);
  /** @type {HTMLElement | undefined} */ (next)?.focus({ preventScroll: true });
}

/**
 * @param {Card} card
 * @param {Actions} actions
 */
function cardOf(card, actions) {
  const due = card.due_date && dayOf(card.due_date);
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
 * @param {number} groupId
 * @param {Actions} actions
 */
function addForm(groupId, actions) {
  const input = element('input', {
    class: 'input',
    id: `add-${groupId}`,
    placeholder: 'Add a card',
    maxlength: '255',
    required: true,
    autocomplete: 'off',
  });
  /** The last text that failed, and its key: sent again, it never makes a second card. */
  let failed = { title: '', key: /** @type {string | undefined} */ (undefined) };

  const add = async () => {
    const title = input.value;
    input.readOnly = true;
    const error = await actions.add(groupId, title, title === failed.title ? failed.key : undefined);
    input.readOnly = false;
    failed = { title, key: error?.idempotencyKey };
    if (!error) input.value = '';
  };
  const onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    whileBusy(form, add);
  };
  const form = element('form', { class: 'add', onsubmit }, input, element('button', { class: 'button' }, 'Add'));
  return { form, input };
}
