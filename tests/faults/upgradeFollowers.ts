import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { readMessages } from '../../client/sse.ts';
import { readRows } from '../harness/process.ts';
import { compareDelivered, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { call, register } from './deliveries.ts';
import { timeUntil } from './outcome.ts';
import type { UpgradeWorld } from './upgradeWorld.ts';

const STREAM = '/api/services/platforms/v1/events/stream';
const LONGEST_DELIVERY_MILLISECONDS = 90_000;

/** The addresses of the ready nodes. */
type Target = { urls: string[] };

/** What a follower has got, and what went wrong. */
type Followed = { seen: string[]; violations: string[] };

/** Follows the events of one project by pages, by a stream and by a webhook, through all nodes in turn. */
export async function startFollowers(target: Target, { superadmin, members }: UpgradeWorld, receiver: WebhookReceiver) {
  const [member] = members as [UpgradeWorld['members'][number]];
  while (target.urls.length === 0) await pause(5);
  const { project_id, after } = await register(receiver, target.urls[0]!, superadmin, member.project);
  const stopped = new AbortController();
  const ofPages = followPages(target, { token: superadmin, project_id, after }, stopped.signal);
  const ofStream = followStream(target, { token: superadmin, project_id, after }, stopped.signal);

  return {
    /** Waits until all events have arrived, and compares them with the log. */
    stop: async (settings: Record<string, string>): Promise<string[]> => {
      const log = await eventsOf(settings, project_id);
      // The log also has what happened before the cursor: the creation of the webhook.
      const expected = log.slice(log.indexOf(ofPages.seen[0] ?? ''));
      const hasAll = (seen: Iterable<string>) => {
        const known = new Set(seen);
        return expected.every((id) => known.has(id));
      };
      await timeUntil(
        async () => [ofPages.seen, ofStream.seen, receiver.seen].every(hasAll),
        LONGEST_DELIVERY_MILLISECONDS,
      );
      stopped.abort();
      const ways = { pages: ofPages, stream: ofStream, webhook: { seen: [...receiver.seen], violations: [] } };
      return Object.entries(ways).flatMap(([way, { seen, violations }]) =>
        [
          ...violations,
          ...(seen.length === new Set(seen).size ? [] : ['an event came twice']),
          ...compareDelivered(expected, new Set(seen)),
        ].map((line) => `followed by ${way}: ${line}`),
      );
    },
  };
}

/** The events of a project in the order of the feed. */
async function eventsOf(settings: Record<string, string>, project: number): Promise<string[]> {
  const found = await readRows(
    settings,
    sql<{
      id: string;
    }>`select id::text as id from events where project_id = ${project} order by transaction_id, events.id`,
  );
  return found.map(({ id }) => id);
}

type Following = { token: string; project_id: number; after: string };

function followPages(target: Target, { token, project_id, after }: Following, signal: AbortSignal): Followed {
  const followed: Followed = { seen: [], violations: [] };
  const read = async () => {
    let cursor = after;
    for (let round = 0; !signal.aborted; round++) {
      const url = target.urls[round % target.urls.length]!;
      try {
        const page = await call(url, token, 'events/list', { project_id, after: cursor, limit: 50 });
        followed.seen.push(...page.events.map(({ id }: { id: string }) => id));
        cursor = page.cursor;
      } catch (error) {
        followed.violations.push(String(error));
      }
      await pause(100);
    }
  };
  void read();
  return followed;
}

/** Reconnects behind the last event, as clients do when a node stops. */
function followStream(target: Target, { token, project_id, after }: Following, signal: AbortSignal): Followed {
  const followed: Followed = { seen: [], violations: [] };
  let last = after;
  const connect = async (url: string) => {
    // Suites check events as this version writes them: those of the previous one lack fields.
    const { unchecked = fetch } = fetch as typeof fetch & { unchecked?: typeof fetch };
    const response = await unchecked(`${url}${STREAM}?project_id=${project_id}`, {
      headers: { authorization: `Bearer ${token}`, 'last-event-id': last },
      signal,
    });
    if (response.status !== 200) followed.violations.push(`${response.status} ${await response.text()}`);
    for await (const { id, data } of readMessages(response.body!)) {
      last = id ?? last;
      const event = data ? JSON.parse(data) : {};
      if (event.id !== undefined) followed.seen.push(event.id);
    }
  };
  const read = async () => {
    for (let round = 0; !signal.aborted; round++) {
      await connect(target.urls[round % target.urls.length]!).catch(() => undefined);
      await pause(100);
    }
  };
  void read();
  return followed;
}
