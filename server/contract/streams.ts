import { STREAM_PATH } from '../http/restStream.ts';
import type { Run } from './expectation.ts';
import type { Surface } from './judge.ts';
import type { Place } from './ownPlace.ts';
import { failureOf, type Target } from './sender.ts';

const STREAMS: [Surface, path: string][] = [
  ['REST', `/api${STREAM_PATH}`],
  ['RPC', '/trpc/events.follow?input=%7B%22json%22%3A%7B%7D%7D'],
];

const mayFollow = ({ procedures, denied }: Run) =>
  procedures.some(({ name }) => name === 'events.list') && !denied.has('events.list');

/** Whether a stream begins at once: a proxy that collects the answer first never sends any of it. */
export async function checkStreams(run: Run): Promise<void> {
  if (!mayFollow(run)) return;
  const check = ([surface, path]: (typeof STREAMS)[0]) =>
    run.record('stream', `${surface}: events.follow`, async () => {
      const sent = { method: 'GET', path, headers: ACCEPTED, withinSeconds: run.streamSeconds };
      try {
        const { status, headers, text } = await run.send(sent);
        const isStream = status === 200 && (headers.get('content-type') ?? '').startsWith('text/event-stream');
        if (!isStream) return [`${surface} ${status}: a stream of events was expected.`];
        return /^id: /m.test(text) ? [] : [`${surface}: the stream of events begins without the place in the feed.`];
      } catch (error) {
        if ((error as Error).name !== 'TimeoutError') throw error;
        return [`${surface}: the stream of events does not begin within ${run.streamSeconds} seconds.`];
      }
    });
  await Promise.all(STREAMS.map(check));
}

const ACCEPTED = { accept: 'text/event-stream' };

export type Followed = { check: () => Promise<void>; close: () => void };

/** Follows the events of the own rows, to see that they arrive while the stream is open. */
export function followEvents(run: Run, place: Place): Followed {
  const closing = new AbortController();
  const streams = mayFollow(run)
    ? STREAMS.map(([surface, path]) => ({ surface, seen: watch(run.target, path, place.projectId, closing.signal) }))
    : [];
  return {
    check: async () => {
      if (place.isForeign || ![...run.succeeded].some((name) => name.endsWith('.create'))) return;
      // From now on: the events are there.
      const timer = setTimeout(() => closing.abort(), run.streamSeconds * 1000);
      for (const { surface, seen } of streams) {
        await run.record('stream', `${surface}: an event`, async () =>
          (await seen) === 'silent' ? [`${surface}: an event does not arrive while the stream is open.`] : [],
        );
      }
      clearTimeout(timer);
    },
    close: () => closing.abort(),
  };
}

/** Reads a stream until an own event is in it. One that does not begin has been reported. */
async function watch(
  { url, token, projectId: chosen }: Target,
  path: string,
  own: number | undefined,
  signal: AbortSignal,
) {
  const projectId = own ?? chosen;
  let text = '';
  try {
    const response = await fetch(url + path, {
      signal,
      headers: {
        ...ACCEPTED,
        authorization: `Bearer ${token}`,
        ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
      },
    });
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (/\.(created|updated|deleted)\b/.test(text)) return 'seen';
    }
  } catch (error) {
    if (!signal.aborted) return failureOf(error as Error);
  }
  return text === '' ? 'not begun' : 'silent';
}
