import { byId, element } from '../api/dom.js';
import { currentSession, followSession, keepSession } from '../api/session.js';
import { addSession, demoButtons } from '../api/signInDialog.js';
import { createClient } from '../client.js';
import { showBoard } from './boardView.js';
import { recorded } from './calls.js';
import { followDrags } from './drag.js';
import { showTemplates } from './templates.js';

/**
 * @typedef {import('../../../../client/client.ts').Client} Client
 * @typedef {import('../../../../client/client.ts').DeckhandError} DeckhandError
 */

/**
 * The client of this page; every call that it makes is shown below the board.
 * @type {Client}
 */
const client = recorded(
  /** @type {any} */ (createClient({ url: location.origin, token: () => currentSession()?.token })),
);

/** What the page shows now. */
const shown = { projectId: 0, boardId: 0 };

addSession();
byId('demo-users').append(demoButtons(attemptToSignIn));
followSession(byId('board'), () => {
  const isSignedIn = currentSession() !== undefined;
  byId('signed-out').hidden = isSignedIn;
  byId('signed-in').hidden = !isSignedIn;
  Object.assign(shown, { projectId: 0, boardId: 0 });
  for (const id of ['projects', 'boards', 'board', 'templates', 'calls']) byId(id).replaceChildren();
  tell('');
  if (isSignedIn) attempt(showUser);
});
followDrags(byId('board'), ({ id, group_id, position, title }) =>
  change(() => client.cards.move.mutate({ id, group_id, position }), `Moved “${title}”.`),
);

/** The projects of the user; for a superadmin all projects, and the templates. */
async function showUser() {
  const { account } = await client.account.whoAmI.query();
  const { projects } = await (account.superadmin ? client.projects.list : client.projects.listOwn).query({
    limit: 200,
  });
  const first = projects.find(({ id }) => id === account.default_project_id) ?? projects[0];
  if (first) await showProject(first.id);
  else tell('You are a member of no project.');

  const options = projects.map(({ id, name }) =>
    element('option', { value: String(id), selected: id === first?.id }, name),
  );
  const onchange = (/** @type {Event} */ { target }) =>
    attempt(() => showProject(Number(/** @type {HTMLSelectElement} */ (target).value)));
  byId('projects').replaceChildren(
    element('select', { class: 'input', 'aria-label': 'Project', onchange }, ...options),
  );
  if (account.superadmin) await showTemplates(byId('templates'), client, attempt);
}

/** @param {number} projectId */
async function showProject(projectId) {
  const { boards } = await client.as({ projectId }).boards.list.query();
  Object.assign(shown, { projectId, boardId: 0 });
  const tabs = boards.map(({ id, title, cards_count }) =>
    element(
      'button',
      { class: 'tab', 'data-board': String(id), onclick: () => attempt(() => openBoard(id)) },
      `${title} (${cards_count})`,
    ),
  );
  byId('boards').replaceChildren(...tabs);
  byId('board').replaceChildren();
  const first = boards.find(({ cards_count }) => cards_count > 0) ?? boards[0];
  if (first) await openBoard(first.id);
  else tell('This project has no board yet.');
}

/** @param {number} id */
async function openBoard(id) {
  const { board } = await client.boards.get.query({ id });
  shown.boardId = id;
  for (const tab of byId('boards').children) {
    tab.setAttribute('aria-current', String(tab.getAttribute('data-board') === String(id)));
  }
  showBoard(byId('board'), board, {
    add: (group_id, title) =>
      change(
        () => client.as({ projectId: shown.projectId }).cards.create.mutate({ title, group_id }),
        `Added “${title}”.`,
      ),
    remove: async (card) => {
      if (!confirm(`Delete “${card.title}”?`)) return;
      await change(() => client.cards.delete.mutate({ id: card.id }), `Deleted “${card.title}”.`);
    },
  });
}

/**
 * Changes something, and shows the board as the service has it then, also after a refusal.
 * @param {() => Promise<unknown>} call
 * @param {string} done
 */
async function change(call, done) {
  const isDone = await attempt(call);
  if (shown.boardId) await attempt(() => openBoard(shown.boardId));
  if (isDone) tell(done);
}

/**
 * Makes calls, and tells the person if one is refused. Returns whether all were accepted.
 * @param {() => Promise<unknown>} calls
 */
async function attempt(calls) {
  try {
    await calls();
    return true;
  } catch (error) {
    const { status, message } = /** @type {DeckhandError} */ (error);
    if (status === 401) keepSession(undefined);
    tell(message, true);
    return false;
  }
}

/** @param {() => Promise<void>} signIn */
async function attemptToSignIn(signIn) {
  await signIn().catch((/** @type {Error} */ { message }) =>
    byId('demo-users').append(element('p', { class: 'failure' }, message)),
  );
}

/**
 * @param {string} text
 * @param {boolean} isRefused
 */
function tell(text, isRefused = false) {
  const place = byId('told');
  place.textContent = text;
  place.classList.toggle('failure', isRefused);
}
