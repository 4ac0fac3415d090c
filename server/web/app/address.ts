import { computed, signal } from '@preact/signals';

/** What the address names: `/projects/7/boards/3/cards/12?text=harbour`. */
export type Address = {
  area: 'start' | 'project' | 'account' | 'admin' | 'sso' | 'link' | 'unknown';
  projectId?: number | undefined;
  /** The page in that area: `members`, or `boards` for a board. In the area `link`, what the link of a mail is for. */
  page?: string | undefined;
  /** The row that the page shows: a board, a webhook, a rollout. */
  id?: number | undefined;
  /** The card in the panel beside the board. */
  cardId?: number | undefined;
  query: URLSearchParams;
};

const place = signal(location.pathname + location.search);

export const address = computed(() => parseAddress(place.value));

/** The path and query of this moment, to come back to. */
export const currentPlace = () => place.value;

addEventListener('popstate', () => {
  place.value = location.pathname + location.search;
});

/** Opens a page of the app. With `replace`, the back button skips the one before. */
export function go(to: string, { replace = false } = {}): void {
  if (to === place.value) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  place.value = to;
}

/** Links within the app do not load a new page. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || event.defaultPrevented || event.button !== 0 || isForNewTab(event) || link.target) return;
    if (link.origin !== location.origin || parseAddress(link.pathname).area === 'unknown' || link.hash) return;
    event.preventDefault();
    go(link.pathname + link.search);
    scrollTo(0, 0);
  });
}

const isForNewTab = ({ ctrlKey, metaKey, shiftKey, altKey }: MouseEvent) => ctrlKey || metaKey || shiftKey || altKey;

export function parseAddress(text: string): Address {
  const { pathname, searchParams: query } = new URL(text, 'http://page');
  const [area, ...parts] = pathname.split('/').filter((part) => part !== '');
  if (area === undefined) return { area: 'start', query };
  if (area === 'projects') return { ...projectParts(parts), query };
  if (area === 'sso') return { area, query };
  if (parts.length === 0 && LINKS.has(area)) return { area: 'link', page: area, query };
  if (area !== 'account' && area !== 'admin') return { area: 'unknown', query };
  const [page, id] = parts;
  return { area, page, id: toId(id), query };
}

/** What the links in mails open; the server has the same addresses. */
const LINKS = new Set(['reset-password', 'invitation', 'confirm-address']);

function projectParts([project, page, ...rest]: string[]): Omit<Address, 'query'> {
  const projectId = toId(project);
  if (projectId === undefined) return { area: project === undefined ? 'start' : 'unknown' };
  const at = rest.indexOf('cards');
  const cardId = at < 0 ? undefined : toId(rest[at + 1]);
  return { area: 'project', projectId, page, id: toId(at === 0 ? undefined : rest[0]), cardId };
}

const toId = (text: string | undefined) => (text && /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined);

export const projectAddress = (projectId: number, page?: string, id?: number) =>
  ['', 'projects', projectId, page, id].filter((part) => part !== undefined).join('/');

/** The page of now with another card in its panel, or with none. */
export function withCard(cardId: number | undefined): string {
  const { pathname, search } = new URL(place.value, 'http://page');
  const path = pathname.replace(/\/cards\/\d+$/, '').replace(/\/$/, '');
  return (cardId === undefined ? path : `${path}/cards/${cardId}`) + search;
}

/** The page of now with other values in its query; an empty one is left out. */
export function withQuery(changes: Record<string, string | undefined>): string {
  const { pathname, searchParams } = new URL(place.value, 'http://page');
  for (const [name, value] of Object.entries(changes)) {
    if (value) searchParams.set(name, value);
    else searchParams.delete(name);
  }
  const search = searchParams.toString();
  return pathname + (search && `?${search}`);
}
