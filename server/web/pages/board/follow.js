const TYPES = /** @type {const} */ ([
  ...['board.created', 'board.updated', 'board.reordered', 'board.deleted'],
  ...['group.created', 'group.updated', 'group.reordered', 'group.deleted'],
  ...['card.created', 'card.updated', 'card.moved', 'card.deleted', 'template.applied', 'template.removed'],
]);
const PAUSE_MILLISECONDS = 300;
const TYPING_MILLISECONDS = 1000;

/** The requests of this page, which reads the board after them anyway. @type {Set<string | null>} */
const own = new Set();

/** Sends a request of the client. @type {typeof fetch} */
export const fetchNoted = (address, init) => {
  if (String(address).endsWith('&kind=mutation')) own.add(new Headers(init?.headers).get('x-request-id'));
  return fetch(address, init);
};

/**
 * Whether this page made the change. Anybody can send a request with the same id, so the user counts, too; the page has no key.
 * @param {{ request_id: string | null, user_id: number | null, key_id: number | null }} event
 * @param {number} userId
 */
export const isOwn = ({ request_id, user_id, key_id }, userId) =>
  own.has(request_id) && user_id === userId && key_id === null;

/**
 * Calls `read` soon after others changed the project, but not during a drag, a click or typing. A hidden tab follows nothing, and
 * reads when it is visible again. Without a stream, the page only misses what others do.
 * @param {import('../client.js').Client} client
 * @param {number} project_id
 * @param {{ place: HTMLElement, userId: number, read: () => void }} page
 * @returns {AbortController} ends it
 */
export function followProject(client, project_id, { place, userId, read }) {
  const ended = new AbortController();
  const { signal } = ended;
  let stream = new AbortController();
  let typedAt = Number.NEGATIVE_INFINITY;
  let isDue = false;

  const isInUse = () => performance.now() - typedAt < TYPING_MILLISECONDS || place.matches(':active, :has(.dragged)');
  const readSoon = () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      if (signal.aborted) return;
      (isInUse() ? readSoon : read)();
    }, PAUSE_MILLISECONDS);
  };
  const follow = async (isBack = false) => {
    stream.abort();
    stream = new AbortController();
    if (document.hidden) return;
    const options = { signal: AbortSignal.any([stream.signal, signal]) };
    // Without a cursor, it begins when the stream is open.
    const latest = await client.events.list.query({ after: 'latest', project_id }, options).catch(() => undefined);
    if (isBack) readSoon();
    const events = client.events.follow({ types: [...TYPES], project_id, after: latest?.cursor }, options);
    for await (const event of events) if (!isOwn(event, userId)) readSoon();
  };
  const start = (isBack = false) => follow(isBack).catch(() => undefined);
  place.addEventListener('input', () => (typedAt = performance.now()), { signal });
  document.addEventListener('visibilitychange', () => start(true), { signal });
  start();
  return ended;
}
