import { setImmediate } from 'node:timers/promises';
import { CONTROL_CHARACTER } from '../../shared/fields.ts';

export const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** Parsing deeper HTML takes seconds; nobody writes it by hand. */
const DEEPEST_HTML = 100;

/** Each tag and entity takes microseconds to parse; a text full of them a tenth of a second. */
const MOST_MARKS = 3000;

/** Whether the text has no tag when a page inserts it as HTML. A `<` at the end counts: the page's next text may complete a tag. */
const isPlainText = (html: string) => !/<(?:[a-z/!?]|$)/i.test(html);

/** The error message for HTML that is too large to parse; undefined if it is fine. */
export function refuseHtml(html: string): string | undefined {
  if (isPlainText(html)) return undefined;
  if (html.split(/[<&]/, MOST_MARKS + 2).length > MOST_MARKS + 1)
    return `must not contain more than ${MOST_MARKS} of the characters < and &`;
  if (depthOf(html) > DEEPEST_HTML) return `must not nest deeper than ${DEEPEST_HTML} elements`;
  return undefined;
}

/**
 * Keeps text, images and everyday markup; removes scripts, event handlers, styles other than `text-align`, other URL schemes and
 * control characters, and escapes `<`, `>` and `&` between tags. The result is at most six times as long, and sanitising it again
 * changes nothing. Plain text is returned as it is.
 */
export async function sanitizeHtml(html: string): Promise<string> {
  if (isPlainText(html)) return html;
  if (html.length <= LONGEST_AT_ONCE) return cleanUntilStable(html);

  // One at a time, yielding to other requests in between: a batch may contain many.
  const cleaned = lastInLine.then(() => cleanUntilStable(html, setImmediate));
  lastInLine = cleaned.catch(() => undefined);
  return cleaned;
}

/** Parsed in a fraction of a millisecond. */
const LONGEST_AT_ONCE = 1000;

let lastInLine: Promise<unknown> = Promise.resolve();

/** Two were always enough; limited, so that the loop always ends. */
const MOST_ROUNDS = 4;

/** After removing a tag, the parser may close others elsewhere: `<a><x <b><a>` needs a second round. */
async function cleanUntilStable(html: string, pause?: () => Promise<unknown>): Promise<string> {
  const clean = await loadCleaner();
  let cleaned = html;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    await pause?.();
    const before = cleaned;
    cleaned = clean(before);
    if (cleaned === before) break;
  }
  return cleaned;
}

/** Loaded with the first HTML. */
async function loadCleaner(): Promise<(html: string) => string> {
  const { default: sanitize } = await import('sanitize-html');
  const options = {
    allowedTags: [...sanitize.defaults.allowedTags, 'img', 'del', 'ins', 'details', 'summary'],
    allowedAttributes: {
      // Not `name`: without it an `id` can't replace a property of `document`.
      '*': ['class', 'id', 'style'],
      a: ['href', 'title', 'target', 'rel'],
      details: ['open'],
      img: ['src', 'alt', 'title', 'width', 'height'],
      th: ['colspan', 'rowspan'],
      td: ['colspan', 'rowspan'],
    },
    allowedSchemes: ['http', 'https', 'mailto', 'tel'],
    allowedSchemesByTag: { img: ['http', 'https'] },
    allowProtocolRelative: false,
    disallowedTagsMode: 'discard' as const,
    transformTags: {
      a: (tagName: string, { target, rel, ...attribs }: Attributes) => ({
        tagName,
        attribs: target?.toLowerCase() === '_blank' ? { ...attribs, ...NEW_WINDOW } : attribs,
      }),
      '*': (tagName: string, { style, ...attribs }: Attributes) => ({
        tagName,
        attribs: { ...attribs, ...alignmentIn(style) },
      }),
    },
    // `alignmentIn` has left nothing to parse; the library's CSS parser would take several times as long as the rest.
    parseStyleAttributes: false,
  };
  // Entities can name control characters, which texts must not contain.
  return (html) => sanitize(html, options).replaceAll(CONTROL_CHARACTERS, '');
}

const CONTROL_CHARACTERS = new RegExp(CONTROL_CHARACTER, 'gu');

type Attributes = Record<string, string>;

/** The opened page gets no access to this one, and does not learn its URL. */
const NEW_WINDOW = { target: '_blank', rel: 'noopener noreferrer' };

/** The only style that is kept; of several the last one counts, as in a browser. */
function alignmentIn(style = ''): { style?: string } {
  const [, alignment] = [...style.matchAll(TEXT_ALIGN)].at(-1) ?? [];
  return alignment === undefined ? {} : { style: `text-align:${alignment.toLowerCase()}` };
}
const TEXT_ALIGN = /(?:^|;)\s*text-align\s*:\s*(left|right|center|justify|start|end)\s*(?=;|$)/gi;

const VOID_ELEMENTS = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** An upper bound of the nesting depth. */
function depthOf(html: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [, slash, name = ''] of html.matchAll(/<(\/?)([a-z][^\s/>]*)/gi)) {
    if (VOID_ELEMENTS.has(name.toLowerCase())) continue;
    depth = slash ? Math.max(0, depth - 1) : depth + 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}
