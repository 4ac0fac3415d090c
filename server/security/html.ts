import sanitize from 'sanitize-html';

/** Deeper HTML than any person writes would cost seconds to read. */
const DEEPEST_HTML = 100;

/** Why the HTML can't be taken, or `undefined` if it can: checked before anything parses it. */
export function refuseHtml(html: string): string | undefined {
  if (depthOf(html) > DEEPEST_HTML) return `must not nest deeper than ${DEEPEST_HTML} elements`;
  return undefined;
}

/** Leaves what shows text and pictures; takes out scripts, event handlers, styles and foreign schemes. */
export function sanitizeHtml(html: string): string {
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
