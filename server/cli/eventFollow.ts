import { createClient, type DeckhandError } from '../../client/client.ts';
import type { Hooks } from '../../client/hooks.ts';
import type { EventFollow } from '../../shared/event.ts';
import { counted } from '../runtime/count.ts';
import type { Outcome as Delivery } from '../security/outgoing.ts';
import type { Given, Outcome } from './command.ts';
import { type FollowedEvent, type Forward, makeForward } from './forward.ts';
import { misuse } from './misuse.ts';
import { credentialFor, withRemedy } from './onService.ts';
import { serviceUrl } from './serviceUrl.ts';
import type { Terminal } from './terminal.ts';

type Filter = Pick<EventFollow, 'types' | 'project_id' | 'after'>;
type Options = Filter & { forward?: string; secret?: string };

/** Prints events as they happen, until Ctrl-C. Each is sent and printed before the next one is read. */
export async function followEvents(given: Given): Promise<Outcome> {
  const { terminal, environment, chosen } = given;
  const { forward: address, secret, ...filter } = given.input as Options;
  if (secret !== undefined && address === undefined) throw misuse('--secret is for --forward.');
  const forward = address === undefined ? undefined : makeForward(address, secret);
  const url = await serviceUrl(given);
  const { token, email } = await credentialFor(url, environment);
  const client = createClient({ url, token, projectId: chosen.project, ...notesOn(terminal) });

  const stop = new AbortController();
  const endInterrupts = terminal.onInterrupt(() => stop.abort());
  let cursor: string | undefined;
  let events = 0;
  try {
    // Refuses what is wrong before anything is followed, and tells where it begins.
    const { after = 'latest' } = filter;
    const now = await client.events.list.query({ ...filter, after, limit: 1 }, { signal: stop.signal });
    cursor = after === 'latest' ? now.cursor : (after ?? now.cursor);
    terminal.write(beginning(filter, forward, email === undefined ? url : `${url} as ${email}`));
    for await (const event of client.events.follow({ ...filter, after: cursor }, { signal: stop.signal })) {
      if (!(await show(event, given, forward, stop.signal))) break;
      cursor = event.cursor;
      events++;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return PRINTED;
    if (!stop.signal.aborted) {
      if (cursor !== undefined) terminal.write(ending(events, cursor));
      throw withRemedy(error as DeckhandError, url, email);
    }
  } finally {
    endInterrupts();
    forward?.close();
  }
  if (cursor !== undefined) terminal.write(ending(events, cursor));
  return PRINTED;
}

const PRINTED: Outcome = { result: undefined, isPrinted: true };

/** Returns false if Ctrl-C ended the delivery: then the event counts as not seen. */
async function show(
  event: FollowedEvent & { cursor: string },
  { terminal, chosen }: Given,
  forward: Forward | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (!chosen.json) await terminal.print(lineOf(event));
  const delivery = await forward?.send(event, signal);
  if (signal.aborted && delivery?.error !== undefined) return false;
  if (chosen.json) await terminal.print(JSON.stringify({ ...event, delivery }));
  else if (delivery) await terminal.print(`  ${deliveryLine(delivery)}`);
  return true;
}

/** When, what, where, which row, and who did it. */
export function lineOf({ created_at, type, project_id, subject_id, user_id, key_id, surface }: FollowedEvent): string {
  const time = `${new Date(created_at).toISOString().slice(0, 19).replace('T', ' ')}Z`;
  const [noun = ''] = type.split('.');
  const who = user_id === null ? surface : `user ${user_id}`;
  return [
    time,
    type,
    project_id === null ? 'no project' : `project ${project_id}`,
    ...(subject_id === null ? [] : [`${noun} ${subject_id}`.replaceAll('_', ' ')]),
    `by ${who.replaceAll('_', ' ')}${key_id === null ? '' : ` with key ${key_id}`}`,
  ].join('  ');
}

export const deliveryLine = ({ status, error, milliseconds }: Delivery) =>
  error === undefined ? `→ ${status} in ${milliseconds} ms` : `→ not delivered in ${milliseconds} ms: ${error}`;

function beginning({ types, project_id, after }: Filter, forward: Forward | undefined, where: string): string {
  const which = `${types ? types.join(', ') : 'all events'}${project_id ? ` of project ${project_id}` : ''}`;
  const from = after && after !== 'latest' ? `behind ${after}` : 'from now on';
  const lines = [`Follows ${which} on ${where}, ${from}. Ctrl-C ends it.`];
  if (forward) lines.push(`Each is sent to ${forward.address} once, signed with this secret:`, forward.secret);
  return `${lines.join('\n')}\n`;
}

const ending = (events: number, cursor: string) =>
  `${counted(events, 'event')}. To go on behind the last one: --after ${cursor}\n`;

/** Says when the connection is lost and when it is back. The client connects again by itself. */
function notesOn(terminal: Terminal): Hooks {
  let isLost = false;
  return {
    onRetry: ({ kind, status, reason }) => {
      if (kind === 'subscription' && !isLost) {
        const why = status === undefined ? '' : ` (${[status, reason].filter(Boolean).join(' ')})`;
        terminal.write(`The connection is lost${why}. It is tried again until it is back.\n`);
        isLost = true;
      }
    },
    onResponse: ({ kind, status }) => {
      if (kind === 'subscription' && isLost && status === 200) {
        terminal.write('The connection is back. No event was missed.\n');
        isLost = false;
      }
    },
  };
}
