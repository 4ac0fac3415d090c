/** The elements that the service allows in HTML, and the attributes that are shown. */
export const ALLOWED_ELEMENTS = new Set(
  `address article aside footer header h1 h2 h3 h4 h5 h6 hgroup main nav section blockquote dd div dl dt figcaption figure hr li
  menu ol p pre ul a abbr b bdi bdo br cite code data dfn em i kbd mark q rb rp rt rtc ruby s samp small span strong sub sup time u
  var wbr caption col colgroup table tbody td tfoot th thead tr img del ins details summary`.split(/\s+/),
);
const ATTRIBUTES = ['title', 'alt', 'width', 'height', 'colspan', 'rowspan', 'open'];
const WITHOUT_CONTENT = /^(script|style|textarea|option|noscript|template|iframe|object|title)$/;

export type Shown = { name: string; attributes: Record<string, string>; text?: string; align?: string };

const ALIGNMENT = 'data-align';

/** The only style that the service lets through, as an attribute of another name: the policy of the page forbids to parse it. */
export const withoutStyles = (html: string) =>
  html.replaceAll(/(<[^<>]*) style="text-align:([a-z]+)"/g, `$1 ${ALIGNMENT}="$2"`);

/** How an element is shown; `contents` without itself, `nothing` not at all. `page` is the address of this page. */
export function shownElement(
  name: string,
  attribute: (name: string) => string | null,
  page: string,
): Shown | 'contents' | 'nothing' {
  if (WITHOUT_CONTENT.test(name)) return 'nothing';
  if (!ALLOWED_ELEMENTS.has(name)) return 'contents';
  const textOf = (one: string) => attribute(one) ?? '';
  const attributes = Object.fromEntries(
    ATTRIBUTES.flatMap((one) => (attribute(one) === null ? [] : [[one, textOf(one)]])),
  );
  if (name === 'img') return picture(URL.parse(textOf('src'), page), attributes, page);
  if (name === 'a') Object.assign(attributes, linkTo(URL.parse(attribute('href') ?? 'none:', page)));
  return { name: withinCard(name), attributes, align: textOf(ALIGNMENT) };
}

/** No landmarks of the page, and headings below those of the panel. */
const withinCard = (name: string) =>
  /^(main|header|footer|nav|aside)$/.test(name)
    ? 'div'
    : name.replace(/^h([1-6])$/, (_, level) => `h${Math.min(6, +level + 2)}`);

const linkTo = (url: URL | null): Record<string, string> =>
  /^(https?|mailto):$/.test(url?.protocol ?? '')
    ? { href: url?.href ?? '', rel: 'noopener noreferrer', target: '_blank' }
    : {};

/** Another host would learn who reads the card. */
function picture(url: URL | null, attributes: Record<string, string>, page: string): Shown {
  if (url && (url.origin === new URL(page).origin || /^data:image\//i.test(url.href)))
    return { name: 'img', attributes: { ...attributes, src: url.href } };
  const { alt } = attributes;
  return { name: 'em', attributes: {}, text: `Picture from another host is not shown${alt ? `: ${alt}` : '.'}` };
}
