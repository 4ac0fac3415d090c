import { reach } from '../reach.js';

/**
 * The sign-in that all calls use, on this page and on the board, in all tabs.
 * @typedef {{ token: string, name: string, isSignedIn: boolean }} Session
 */

const KEY = 'deckhand.session';

/** @type {Map<Element, () => void>} */
const listeners = new Map();

/** @returns {Session | undefined} */
export function currentSession() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '') ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {Session | undefined} session */
export function keepSession(session) {
  if (session) localStorage.setItem(KEY, JSON.stringify(session));
  else forget();
  showSession();
}

/** The board keeps drafts for whoever is signed in. */
function forget() {
  localStorage.removeItem(KEY);
  for (const key of Object.keys(localStorage)) if (key.startsWith('deckhand.kept.')) localStorage.removeItem(key);
}

// A sign-in or sign-out in another tab; without a key, all of the storage was cleared.
globalThis.addEventListener?.('storage', ({ key }) => {
  if (key === KEY || key === null) showSession();
});

function showSession() {
  for (const [place, show] of listeners) {
    if (place.isConnected) show();
    else listeners.delete(place);
  }
}

/**
 * Shows the session now, and again when it changes, as long as the place is on the page.
 * @param {Element} place
 * @param {() => void} show
 */
export function followSession(place, show) {
  listeners.set(place, show);
  show();
}

/**
 * Signs in; throws an error with the reason if that fails.
 * @param {{ email: string, password: string, code?: string, is_recovery?: boolean }} credentials
 */
export async function signIn(credentials) {
  const { response, body } = await call('/v1/authenticate', credentials);
  if (!response.ok || !body) {
    const reason = response.headers.get('x-error-reason');
    throw Object.assign(new Error(body?.message ?? `Signing in failed with status ${response.status}.`), { reason });
  }
  keepSession({ token: body.data.token, name: body.data.email, isSignedIn: true });
}

/** Ends the session at the service, too; a pasted token or key is only forgotten. */
export async function signOut() {
  const session = currentSession();
  keepSession(undefined);
  if (session?.isSignedIn) await call('/v1/account/sign-out', undefined, session.token).catch(() => undefined);
}

/**
 * @param {string} path
 * @param {object} [input]
 * @param {string} [token]
 */
async function call(path, input, token) {
  const { response, text } = await reach(`/api${path}`, {
    method: 'POST',
    headers: {
      ...(input && { 'Content-Type': 'application/json' }),
      ...(token && { Authorization: `Bearer ${token}` }),
    },
    ...(input && { body: JSON.stringify(input) }),
  });
  const isJson = response.headers.get('content-type')?.includes('json');
  return { response, body: isJson ? JSON.parse(text) : undefined };
}

/** @returns {Promise<{ name: string, email: string, password: string }[]>} */
export async function loadDemoUsers() {
  const { response, text } = await reach('/pages/demo-users.json');
  return response.ok ? JSON.parse(text) : [];
}
