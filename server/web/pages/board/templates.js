import { element } from '../api/dom.js';

/** @typedef {import('../client.js').Client} Client */

/**
 * For superadmins: the master boards, and what a sync of each would do to the projects.
 * @param {HTMLElement} place
 * @param {Client} client
 * @param {(calls: (signal: AbortSignal) => Promise<unknown>) => unknown} attempt
 * @param {AbortSignal} signal
 */
export async function showTemplates(place, client, attempt, signal) {
  const { boards } = await client.masterBoards.list.query();
  signal.throwIfAborted();
  const outcome = element('div', { role: 'status' });
  /** @type {object} */
  let newest;
  const rows = boards.map((board) => {
    const onclick = () => {
      newest = board;
      return attempt(() => preview(outcome, client, board, () => newest === board));
    };
    return element(
      'li',
      {},
      element('strong', {}, board.title),
      element('span', { class: 'hint' }, ` ${board.groups_count} groups, ${board.cards_count} cards `),
      element('button', { class: 'button quiet', onclick }, 'Preview a sync'),
    );
  });
  place.replaceChildren(
    element('h2', {}, 'Templates'),
    element(
      'p',
      { class: 'hint' },
      'A sync copies a master board to every project with access. A preview changes nothing.',
    ),
    element('ul', { class: 'templates' }, ...rows),
    outcome,
  );
}

/**
 * @param {HTMLElement} place
 * @param {Client} client
 * @param {{ id: number, title: string }} board
 * @param {() => boolean} isNewest
 */
async function preview(place, client, board, isNewest) {
  const { projects, next_cursor } = await client.masterBoards.previewSync.query({ board_id: board.id, limit: 20 });
  if (!isNewest()) return;
  const rows = projects.map(({ project_name, outcome, reason, boards_added, groups_added, cards_added }) => {
    const texts = [project_name, reason ? `${outcome}: ${reason}` : outcome, boards_added, groups_added, cards_added];
    return element('tr', {}, ...texts.map((text) => element('td', {}, String(text))));
  });
  const head = ['Project', 'Outcome', 'Boards', 'Groups', 'Cards'].map((text) => element('th', {}, text));
  place.replaceChildren(
    element('h3', {}, `A sync of “${board.title}” would add`),
    element('table', {}, element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)),
    next_cursor ? element('p', { class: 'hint' }, 'These are the first 20 projects.') : '',
  );
}
