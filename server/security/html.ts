import { setImmediate } from 'node:timers/promises';
import sanitize from 'sanitize-html';

/** Deeper HTML than any person writes would cost seconds to read. */
const DEEPEST_HTML = 100;

/** Each tag and entity costs microseconds to read, a text full of them a tenth of a second. */
const MOST_MARKS = 3000;

/** Why the HTML can't be taken, or `undefined` if it can: checked before anything parses it. */
export function refuseHtml(html: string): string | undefined {
  if (html.split(/[<&]/, MOST_MARKS + 2).length > MOST_MARKS + 1)
    return `must not hold more than ${MOST_MARKS} of the characters < and &`;
  if (depthOf(html) > DEEPEST_HTML) return `must not nest deeper than ${DEEPEST_HTML} elements`;
  return undefined;
}

/**
 * Leaves what shows text and pictures; takes out scripts, event handlers, styles and foreign schemes, and escapes `<`, `>`
 * and `&` that stand for themselves. At most six times as long as what was sent. Sanitising the result changes nothing.
 */
export async function sanitizeHtml(html: string): Promise<string> {
  if (!/[<>&]/.test(html)) return html;
  if (html.length <= LONGEST_AT_ONCE) return cleanUntilStable(html);

  // One after the other, with time for other requests in between: a batch may hold many.
  const cleaned = lastInLine.then(() => cleanUntilStable(html, setImmediate));
  lastInLine = cleaned.catch(() => undefined);
  return cleaned;
}

/** Read within a fraction of a millisecond. */
const LONGEST_AT_ONCE = 1000;

let lastInLine: Promise<unknown> = Promise.resolve();

/** Two are enough for everything tried; bounded, because an answer must come whatever was sent. */
const MOST_ROUNDS = 4;

/** Without a tag that was taken out, the parser may close others elsewhere: `<a><x <b><a>` needs a second round. */
async function cleanUntilStable(html: string, pause?: () => Promise<unknown>): Promise<string> {
  let cleaned = html;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await pause?.();
    const before = cleaned;
    cleaned = clean(before);
    if (cleaned === before) break;
  }
  return cleaned;
}

function clean(html: string): string {
  return sanitize(html, {
    allowedTags: [...sanitize.defaults.allowedTags, 'img', 'del', 'ins'],
    allowedAttributes: {
      a: ['href', 'title'],
      img: ['src', 'alt', 'title', 'width', 'height'],
      th: ['colspan', 'rowspan'],
      td: ['colspan', 'rowspan'],
    },
    allowedSchemes: ['http', 'https', 'mailto'],
    allowedSchemesByTag: { img: ['http', 'https'] },
    allowProtocolRelative: false,
    disallowedTagsMode: 'discard',
  });
}

const VOID_ELEMENTS = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** How deep opening tags nest, at most; an upper bound is enough. */
function depthOf(html: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [, slash, name] of html.matchAll(/<(\/?)([a-z][^\s/>]*)/gi)) {
    if (VOID_ELEMENTS.has(name!.toLowerCase())) continue;
    depth = slash ? Math.max(0, depth - 1) : depth + 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}
