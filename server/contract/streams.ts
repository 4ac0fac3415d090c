import { STREAM_PATH } from '../http/restStream.ts';
import type { Run } from './expectation.ts';
import type { Surface } from './judge.ts';

export const STREAMS: [Surface, path: string][] = [
  ['REST', `/api${STREAM_PATH}`],
  ['RPC', '/trpc/events.follow?input=%7B%22json%22%3A%7B%7D%7D'],
];

export const mayFollow = ({ procedures, denied }: Run) =>
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

export const ACCEPTED = { accept: 'text/event-stream' };
