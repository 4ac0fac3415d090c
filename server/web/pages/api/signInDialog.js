import { byId, element, field, whileBusy } from './dom.js';
import { currentSession, followSession, keepSession, loadDemoUsers, signIn, signOut } from './session.js';

/** The place in the bar that says who is signed in. */
export function addSession() {
  followSession(byId('session'), () => {
    const session = currentSession();
    const name = session && element('span', { class: 'who' }, session.name);
    const button = session
      ? element('button', { class: 'button quiet', onclick: signOut }, 'Sign out')
      : element('button', { class: 'button', onclick: openSignIn }, 'Sign in');
    byId('session').replaceChildren(...(name ? [name] : []), button);
  });
}

/** Opens the dialog: a demo user, an e-mail address and password, or a token or API key. */
export async function openSignIn() {
  const failure = element('p', { class: 'failure', role: 'alert' });
  const code = codeFields();
  const close = () => dialog.close();
  /** @param {() => Promise<void>} attempt */
  const attempt = (attempt) =>
    whileBusy(dialog, async () => {
      failure.textContent = '';
      try {
        await attempt();
        close();
      } catch (error) {
        const { message, reason } = /** @type {Error & { reason?: string }} */ (error);
        failure.textContent = message;
        if (reason?.startsWith('code_')) code.show();
      }
    });

  /** @type {HTMLDialogElement} */
  const dialog = element(
    'dialog',
    { 'aria-labelledby': 'sign-in-title', onclose: () => dialog.remove() },
    element('h2', { id: 'sign-in-title' }, 'Sign in'),
    demoButtons(attempt),
    passwordForm(attempt, code),
    failure,
    tokenForm(close),
    element('button', { class: 'button quiet', onclick: close }, 'Cancel'),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** @typedef {(attempt: () => Promise<void>) => Promise<void>} Attempt */

/**
 * Buttons that sign in with a demo account; none where there is no demo data.
 * @param {Attempt} attempt
 */
export function demoButtons(attempt) {
  const place = element('div', {});
  const show = (/** @type {Awaited<ReturnType<typeof loadDemoUsers>>} */ users) => {
    if (users.length === 0) return;
    const buttons = users.map(({ name, email, password }) =>
      element(
        'button',
        { class: 'button quiet', title: email, onclick: () => attempt(() => signIn({ email, password })) },
        name,
      ),
    );
    const text = element('p', { class: 'hint' }, 'Try it with a demo account:');
    place.append(text, element('div', { class: 'choices' }, ...buttons));
  };
  loadDemoUsers().then(show, () => undefined);
  return place;
}

function codeFields() {
  const code = field('Code of the second factor', { name: 'code', autocomplete: 'one-time-code' });
  const recovery = field('It is a recovery code', { type: 'checkbox', name: 'is_recovery' });
  const place = element('div', { hidden: true }, code.label, recovery.label);
  return {
    place,
    show: () => {
      place.hidden = false;
      code.input.focus();
    },
    values: () => (code.input.value ? { code: code.input.value.trim(), is_recovery: recovery.input.checked } : {}),
  };
}

/**
 * @param {Attempt} attempt
 * @param {ReturnType<typeof codeFields>} code
 */
function passwordForm(attempt, code) {
  const email = field('E-mail address', { type: 'email', autocomplete: 'username', required: true });
  const password = field('Password', { type: 'password', autocomplete: 'current-password', required: true });
  const onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    attempt(() => signIn({ email: email.input.value, password: password.input.value, ...code.values() }));
  };
  const button = element('button', { class: 'button' }, 'Sign in');
  return element('form', { onsubmit }, email.label, password.label, code.place, button);
}

/** @param {() => void} close */
function tokenForm(close) {
  const token = field('Token or API key', { type: 'password', autocomplete: 'off', required: true });
  const onsubmit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const given = token.input.value.trim();
    keepSession({ token: given, name: `With a token …${given.slice(-4)}`, isSignedIn: false });
    close();
  };
  const button = element('button', { class: 'button quiet' }, 'Use it');
  const form = element('form', { onsubmit }, token.label, button);
  return element('details', {}, element('summary', {}, 'Use a token or API key'), form);
}
