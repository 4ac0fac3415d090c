import { byId, element } from '../api/dom.js';
import { codeBlock } from '../api/highlight.js';
import { literal, TYPESCRIPT } from '../api/literal.js';
import { copyButton } from '../copy.js';

/** @typedef {import('../client.js').Client} Client */

const MOST_SHOWN = 50;

/**
 * Wraps a client: shows each call as code, with its outcome. A stream has none, and is left out.
 * @param {Client} client
 * @returns {Client}
 */
export const recorded = (client) => /** @type {Client} */ (at(client, 'client'));

/**
 * @param {unknown} member
 * @param {string} path as in `client.cards.create`
 * @returns {unknown}
 */
function at(member, path) {
  return new Proxy(/** @type {(...parts: unknown[]) => unknown} */ (member), {
    get: (target, name) => {
      const inner = Reflect.get(target, name);
      return typeof name === 'symbol' || inner === undefined ? inner : at(inner, `${path}.${name}`);
    },
    apply: (call, _, /** @type {unknown[]} */ parts) => {
      if (path.endsWith('.follow')) return call(...parts);
      const code = `${path}(${parts.map(inline).join(', ')})`;
      return path.endsWith('.as') ? at(call(...parts), code) : shown(`await ${code};`, () => call(...parts));
    },
  });
}

/**
 * @param {string} code
 * @param {() => unknown} call
 */
async function shown(code, call) {
  const outcome = element('span', { class: 'hint' }, 'waiting …');
  const line = element(
    'li',
    {},
    codeBlock(code),
    outcome,
    copyButton(() => code),
  );
  byId('calls').prepend(line);
  byId('calls').children[MOST_SHOWN]?.remove();

  const started = performance.now();
  /** @param {string} text */
  const end = (text) => {
    outcome.textContent = `${text}, ${Math.round(performance.now() - started)} ms`;
  };
  try {
    const result = await call();
    end('done');
    return result;
  } catch (error) {
    const { status, reason } = /** @type {import('../client.js').DeckhandError} */ (error);
    end(status ? `${status} ${reason ?? ''}` : 'no response');
    outcome.classList.add('failure');
    throw error;
  }
}

/**
 * A short input is written on one line.
 * @param {unknown} input
 */
function inline(input) {
  if (input === undefined) return 'undefined';
  const lines = literal(input, TYPESCRIPT);
  const line = lines.replaceAll(/\n\s*/g, ' ').replaceAll(/, ([}\]])/g, ' $1');
  return line.length <= 80 ? line : lines;
}
