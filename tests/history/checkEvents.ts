import { compareDelivered } from '../harness/webhookReceiver.ts';
import type { Change, Changes } from './check.ts';
import { type Anomaly, type Call, type FeedEvent, type History, inWords, mentionsOf, subjectOf } from './history.ts';

/** Each version of a row has one event, its own or one that names the row, and its own events are in the order of versions. */
export function feedAnomalies({ events, rows, copies, older }: History, changes: Changes): Anomaly[] {
  const mentioned = Map.groupBy(events.flatMap(mentionsOf), (row) => row);
  const last = new Map(rows.map(({ row, version }) => [row, version]));
  return [...new Set([...changes.keys(), ...mentioned.keys()])].flatMap((row) => {
    const own = changes.get(row) ?? [];
    const seen = new Set<number>();
    const repeated = own.filter(({ version, isSure }) => (seen.has(version) && isSure) || !seen.add(version));
    const swapped = own.filter(
      (change, at) => at > 0 && change.version < own[at - 1]!.version && isAfter(own[at - 1]!, change),
    );
    return [
      ...repeated.map((change) => anomaly('repeated version', `a second event of ${row}: ${eventInWords(change)}`)),
      ...swapped.map((change) =>
        anomaly('events out of order', `${row}: ${eventInWords(change)} follows a later version`),
      ),
      ...(copies.has(row)
        ? []
        : countAnomalies(row, own, mentioned.get(row)?.length ?? 0, { first: older.get(row), last: last.get(row) })),
    ];
  });
}

/** Whether the call of one change began after that of the other had ended. Concurrent calls may be in either order. */
const isAfter = ({ call: one }: Change, { call: other }: Change) =>
  one !== undefined && other?.outcome === 'done' && other.ended < one.begun;

/** A row has as many versions as events, after its first version if it is older than the feed. */
function countAnomalies(
  row: string,
  own: Change[],
  mentions: number,
  { first, last }: { first: number | undefined; last: number | undefined },
): Anomaly[] {
  const versions = new Set(own.map(({ version }) => version));
  const isNew = own.some(({ event }) => event.type.endsWith('.created'));
  const newest = last ?? Math.max(0, ...versions);
  if (!isNew && first === undefined) return [];
  const unnamed: number[] = [];
  for (let version = (first ?? 0) + 1; version <= newest; version++) if (!versions.has(version)) unnamed.push(version);
  const beyond = [...versions].filter((version) => version > newest);
  if (beyond.length > 0)
    return [anomaly('event without change', `${row} is at version ${newest}, with an event of version ${beyond[0]}`)];
  if (unnamed.length > mentions)
    return [anomaly('missing event', `${row}: versions ${unnamed} have no event, and ${mentions} events name it`)];
  // Without the last row, an event may name a later version than is known.
  const unsure = own.filter(({ isSure }) => !isSure).length;
  if (last !== undefined && unnamed.length + unsure < mentions)
    return [anomaly('event without change', `${row}: ${mentions} events name it, for ${unnamed.length} versions`)];
  return [];
}

/** Each call wrote all of its events once, or none. */
export function callAnomalies({ calls, events }: History): Anomaly[] {
  const byRequest = Map.groupBy(events.filter(subjectOf), ({ request_id }) => request_id ?? '');
  const known = new Set(calls.map(({ id }) => id));
  const attempts = Map.groupBy(
    calls.filter(({ writes }) => writes.length > 0),
    ({ id, key }) => key ?? id,
  );
  return [
    ...[...byRequest].flatMap(([id, [event]]) =>
      known.has(id) ? [] : [anomaly('event of nobody', `event ${event!.id}, ${event!.type}, is of request ${id}`)],
    ),
    ...[...attempts.values()].flatMap((some) => attemptAnomalies(some, byRequest)),
  ];
}

function attemptAnomalies(attempts: Call[], byRequest: Map<string, FeedEvent[]>): Anomaly[] {
  const refused = attempts.flatMap((call) => refusedAnomalies(call, byRequest.get(call.id)));
  const executed = attempts.filter(({ id }) => byRequest.has(id));
  if (refused.length > 0) return refused;
  if (executed.length > 1) return [anomaly('executed twice', executed.map(inWords).join(', and '))];
  const done = attempts.find(({ outcome }) => outcome === 'done');
  const call = executed[0] ?? done;
  if (!call) return [];

  // The rows of the answer: without one, new rows have no ids.
  const { writes, shown } = done ?? call;
  const events = byRequest.get(call.id) ?? [];
  const wanted = writes.filter(
    ({ isRefused, mayBeVoid, mayBeRefused }) => !isRefused && !mayBeVoid && (done || !mayBeRefused),
  );
  const lacking = wanted.filter(({ row }) => row !== undefined && !events.some((event) => subjectOf(event) === row));
  const created = events.filter(({ type }) => type.endsWith('.created')).length;
  const creates = writes.filter(({ verb, isRefused }) => verb === 'created' && !isRefused).length;
  const subjects = events.map((event) => `${event.type} ${event.subject_id}`);
  const differing = events.filter(({ type, subject_id, data }) =>
    shown.some(
      ({ row, version }) =>
        row === `${type.split('.')[0]} ${subject_id}` && version !== undefined && version !== data.version,
    ),
  );
  if (created > creates || new Set(subjects).size < subjects.length)
    return [anomaly('executed twice', `${inWords(call)} has the events ${subjects}`)];
  if (lacking.length > 0 || created < creates) {
    const text = `${inWords(call)} has no event of ${lacking.map(({ row }) => row)}, and ${created} of ${creates} new rows`;
    return [anomaly(events.length > 0 ? 'partial write' : 'missing event', text)];
  }
  return differing.map((event) =>
    anomaly(
      'answer and event differ',
      `${inWords(done ?? call)} has another version than event ${event.id}, ${event.data.version}`,
    ),
  );
}

/** A refused call, or a refused row of a call, has no event. */
function refusedAnomalies(call: Call, events: FeedEvent[] = []): Anomaly[] {
  const isRefused = (row: string | undefined) => call.writes.some((write) => write.isRefused && write.row === row);
  return events
    .filter((event) => call.outcome === 'refused' || isRefused(subjectOf(event)))
    .map((event) => anomaly('event of a refused call', `${inWords(call)} has event ${event.id}, ${event.type}`));
}

/** A webhook gets what it asked for, in the order of the feed. Repeats are allowed. */
export const deliveryAnomalies = ({ webhooks, events }: History): Anomaly[] =>
  webhooks.flatMap(({ name, types, arrived }) => {
    const isWanted = ({ type }: FeedEvent) => types === null || types.includes(type);
    const wanted = events.filter(isWanted).map(({ id }) => id);
    const got = new Set(arrived);
    const unwanted = events.filter((event) => !isWanted(event) && got.has(event.id));
    return [
      ...compareDelivered(wanted, got),
      ...unwanted.map(({ id, type }) => `event ${id}, ${type}, is not wanted`),
    ].map((text) => anomaly('wrong delivery', `${name}: ${text}`));
  });

const anomaly = (name: Anomaly['name'], text: string): Anomaly => ({ name, text });
const eventInWords = ({ version, event }: Change) => `event ${event.id}, ${event.type}, of version ${version}`;
