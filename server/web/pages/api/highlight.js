import { copyButton } from '../copy.js';
import { element } from './dom.js';

/** Texts, numbers, and words that all of the shown languages treat alike; enough to read code and JSON. */
const TOKEN =
  /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(-?\d+(?:\.\d+)?)\b|\b(true|false|null|True|False|None|import|from|const|await|with|as|print|curl)\b/g;
const CLASSES = [undefined, 'text', 'number', 'word'];

/**
 * A block of code with colours.
 * @param {string} code
 */
export function codeBlock(code) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let end = 0;
  for (const match of code.matchAll(TOKEN)) {
    const kind = CLASSES[match.findIndex((group, index) => index > 0 && group !== undefined)];
    parts.push(code.slice(end, match.index), element('span', { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  return element('pre', { tabindex: '0' }, element('code', {}, ...parts, code.slice(end)));
}

/**
 * Code with a bar above it, which says what it is and has the button to copy it.
 * @param {string} label
 * @param {string} code
 */
export const codeSample = (label, code) =>
  element(
    'div',
    { class: 'sample' },
    element(
      'div',
      { class: 'sample-bar' },
      label,
      copyButton(() => code),
    ),
    codeBlock(code),
  );
