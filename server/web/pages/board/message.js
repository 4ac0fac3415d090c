import { byId } from '../api/dom.js';
import { currentSession, keepSession } from '../api/session.js';
import { DeckhandError } from '../client.js';
import { UNREACHABLE } from '../reach.js';

/**
 * Shows why a call failed. A 401 ends the session.
 * @param {Error} error
 * @param {boolean} isChange
 */
export function report(error, isChange) {
  const { status, reason, data, message } = /** @type {import('./changes.js').DeckhandError} */ (error);
  if (status === 401) keepSession(undefined);
  if (error instanceof DeckhandError && !data)
    showMessage(UNREACHABLE + (isChange ? ' Your change was not saved.' : ''), true);
  else showMessage(reason === 'role_missing' ? 'You can view this project but not change it.' : message, true);
}

/**
 * @param {string} text
 * @param {boolean} isFailure
 */
export function showMessage(text, isFailure = false) {
  const place = byId(currentSession() ? 'message' : 'not-signed-in');
  place.textContent = text;
  place.className = isFailure ? 'failure' : 'good';
}
