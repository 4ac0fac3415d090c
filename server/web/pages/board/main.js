import { byId, element, whileBusy } from '../api/dom.js';
import { currentSession, followSession } from '../api/session.js';
import { addSession, demoButtons } from '../api/signInDialog.js';
import { createClient } from '../client.js';
import { boardView } from './boardView.js';
import { recorded } from './calls.js';
import { changesOf } from './changes.js';
import { followDrags } from './drag.js';
import { fetchNoted, followProject } from './follow.js';
import { report, showMessage } from './message.js';
import { countCards, withCard, withMove, withoutCard, withUngrouped } from './places.js';
import { showTemplates } from './templates.js';

/** @import { Change } from './changes.js' */

/** A change without a response by then is undone. */
const LONGEST_WAIT_MILLISECONDS = 15_000;

/** Every call of this page is shown below the board, but not the stream that it follows. */
const client = recorded(
  createClient({
    url: location.origin,
    token: () => currentSession()?.token,
    timeoutMilliseconds: LONGEST_WAIT_MILLISECONDS,
    fetch: fetchNoted,
  }),
);

/** Aborts when the session ends: the next user must not see a late response. */
let session = new AbortController();
/** Aborts when something else is opened: the last click wins, not the last response. */
let opening = new AbortController();
/** Aborts when another project is shown, or the session ends. */
let following = new AbortController();
/** The boards that were opened. @type {Map<number, ReturnType<typeof changesOf>>} */
const boards = new Map();
const shown = { userId: 0, projectId: 0, boardId: 0 };

const view = boardView(byId('board'), {
  add: (group_id, title, idempotencyKey) =>
    change({
      send: () =>
        client
          .as({ projectId: shown.projectId })
          .cards.create.mutate({ title, group_id: group_id || null }, ...(idempotencyKey ? [{ idempotencyKey }] : [])),
      apply: (board, result) => (result ? withCard(board, group_id, result.card) : board),
      done: `Added “${title}”.`,
    }),
  remove: ({ id, title }) => {
    if (!confirm(`Delete “${title}”?`)) return;
    change({
      card: id,
      send: () => client.cards.delete.mutate({ id }),
      apply: (board) => withoutCard(board, id),
      done: `Deleted “${title}”.`,
    });
  },
});

addSession();
byId('demo-users').append(
  demoButtons((signIn) =>
    whileBusy(byId('demo-users'), () => signIn().catch(({ message }) => showMessage(message, true))),
  ),
);
followSession(byId('board'), () => {
  const isSignedIn = currentSession() !== undefined;
  session.abort();
  opening.abort();
  following.abort();
  session = new AbortController();
  boards.clear();
  view.clear();
  Object.assign(shown, { projectId: 0, boardId: 0 });
  for (const id of ['projects', 'boards', 'templates', 'calls', 'message', 'not-signed-in']) byId(id).replaceChildren();
  byId('signed-out').hidden = isSignedIn;
  byId('signed-in').hidden = !isSignedIn;
  if (isSignedIn) open(showUser);
});
followDrags(byId('board'), (move) => {
  if (!move) return boards.get(shown.boardId)?.draw();
  const { id, group_id, position, title } = move;
  change({
    card: id,
    send: () => client.cards.move.mutate({ id, group_id: group_id || null, position }),
    apply: (board) => withMove(board, move),
    done: `Moved “${title}”.`,
  });
});

/** @param {Change} change */
const change = async (change) => boards.get(shown.boardId)?.make(change);

/**
 * The projects of the user; for a superadmin all projects, and the templates.
 * @param {AbortSignal} signal
 */
async function showUser(signal) {
  const { account } = await client.account.whoAmI.query();
  const { projects } = await (account.superadmin ? client.projects.list : client.projects.listOwn).query({
    limit: 200,
  });
  signal.throwIfAborted();
  shown.userId = account.id;
  const first = projects.find(({ id }) => id === account.default_project_id) ?? projects[0];
  const options = projects.map(({ id, name }) =>
    element('option', { value: String(id), selected: id === first?.id }, name),
  );
  const select = element('select', { class: 'input', 'aria-label': 'Project' }, ...options);
  const undo = () => {
    select.value = String(shown.projectId);
  };
  select.addEventListener('change', () => open((signal) => showProject(Number(select.value), signal), undo));
  byId('projects').replaceChildren(select);
  if (account.superadmin) attempt((signal) => showTemplates(byId('templates'), client, attempt, signal));
  if (first) await showProject(first.id, signal);
  else showMessage("You aren't in any project yet.");
}

/**
 * @param {number} projectId
 * @param {AbortSignal} signal
 */
async function showProject(projectId, signal) {
  // Before a board is read, so that no change is missed.
  const followed = follow(projectId);
  const { boards } = await listBoards(projectId, signal).catch((error) => {
    followed.abort();
    throw error;
  });
  following.abort();
  following = followed;
  Object.assign(shown, { projectId, boardId: 0 });
  const tabs = boards.map(({ id, title, cards_count }) =>
    element(
      'button',
      { class: 'tab', id: `board-${id}`, onclick: () => open((signal) => openBoard(id, signal)) },
      tabText(title, cards_count),
    ),
  );
  byId('boards').replaceChildren(...tabs);
  view.hide();
  const first = boards.find(({ cards_count }) => cards_count > 0) ?? boards[0];
  if (first) await openBoard(first.id, signal);
  else showMessage('This project has no board yet.');
}

/**
 * @param {number} projectId
 * @param {AbortSignal} signal
 */
async function listBoards(projectId, signal) {
  const list = await client.as({ projectId }).boards.list.query();
  signal.throwIfAborted();
  return list;
}

/**
 * What others change reaches the shown board, and one that is being opened.
 * @param {number} projectId
 */
const follow = (projectId) =>
  followProject(client, projectId, {
    place: byId('board'),
    userId: shown.userId,
    read: () => {
      for (const [id, changes] of boards) changes.refresh(id === shown.boardId);
    },
  });

/**
 * @param {number} id
 * @param {AbortSignal} signal
 */
async function openBoard(id, signal) {
  const { signal: ended } = session;
  const { projectId } = shown;
  const changes =
    boards.get(id) ??
    changesOf({
      load: () => loadBoard(projectId, id),
      show: (board) => {
        const tab = document.getElementById(`board-${id}`);
        if (tab) tab.textContent = tabText(board.title, countCards(board));
        if (shown.boardId === id) view.show(board);
      },
      showMessage,
      fail: (error, isChange) => ended.aborted || report(error, isChange),
      signal: ended,
    });
  boards.set(id, changes);
  if (!(await changes.load()) || signal.aborted) return;

  shown.boardId = id;
  for (const tab of byId('boards').children) tab.setAttribute('aria-current', String(tab.id === `board-${id}`));
  changes.draw();
}

/**
 * The board, and the cards of the project that are in no group, if there are any, as a last column.
 * @param {number} projectId
 * @param {number} id
 */
async function loadBoard(projectId, id) {
  const [{ board }, { cards }] = await Promise.all([
    client.boards.get.query({ id }),
    client.as({ projectId }).cards.list.query({ is_grouped: false, limit: 200 }),
  ]);
  return withUngrouped(board, cards);
}

/**
 * @param {string} title
 * @param {number} count
 */
const tabText = (title, count) => `${title} (${count})`;

/**
 * Opens something instead of what is being opened.
 * @param {(signal: AbortSignal) => Promise<unknown>} calls
 * @param {() => void} [undo]
 */
function open(calls, undo) {
  opening.abort();
  opening = new AbortController();
  showMessage('');
  return attempt(calls, opening.signal, undo);
}

/**
 * Makes calls, and shows an error unless the signal has aborted.
 * @param {(signal: AbortSignal) => Promise<unknown>} calls
 * @param {AbortSignal} signal
 * @param {() => void} [undo]
 */
async function attempt(calls, signal = session.signal, undo) {
  try {
    await calls(signal);
  } catch (error) {
    if (signal.aborted) return;
    undo?.();
    report(/** @type {Error} */ (error), false);
  }
}
