import { eventViolations, type SentEvent } from './event.ts';

/** A successful call of a step. */
export type OwnCall = {
  name: string;
  requestId: string;
  /** Whether a gateway may have given the request another id, which the answer does not tell. */
  isIdUncertain?: boolean;
  answeredAt: number;
  /** The row in its answer, and the number of its version. */
  id?: number | undefined;
  version?: number | undefined;
};

/** A way on which events arrive, and those that did, in order. */
export type Way = {
  /** A stream that has not begun is reported elsewhere. */
  hasBegun: boolean;
  name: string;
  /** `limitedUntil` is the end of the last wait that began before. */
  seen: { event: SentEvent; at: number; limitedUntil: number }[];
  problems: string[];
};

/** An event that arrives more than this after the answer to its call is late. Waits for the rate limit don't count. */
const LATEST_SECONDS = 10;

/** How the events of the own calls on a way differ from the document, from the calls, and from what the other ways showed. */
export function wayProblems(way: Way, ways: Way[], calls: OwnCall[]): string[] {
  const callOf = new Map(calls.map((call, at) => [call.requestId, { ...call, at }]));
  const own = way.seen.flatMap(({ event, at, limitedUntil }) => {
    const call = callOf.get(event.request_id as string);
    return call ? [{ event, call, late: at - Math.max(call.answeredAt, limitedUntil) }] : [];
  });
  const arrived = Map.groupBy(own, ({ event }) => event.id);
  const isBehind = own.some(({ call }, at) => at > 0 && call.at < own[at - 1]!.call.at);
  const problems = [
    ...way.problems,
    ...own.flatMap(({ event }) => eventViolations(event, { isNew: true })),
    ...[...arrived.values()].flatMap(([first, again]) => (again ? `${first!.event.type} arrives twice.` : [])),
    ...(isBehind ? ['events arrive in another order than their changes.'] : []),
    ...own.flatMap(({ event, late }) => lateness(event, late)),
    ...own.flatMap(({ event, call }) => wrongVersion(event, call)),
    ...fallingVersions(own.map(({ event }) => event)),
    ...missingEvents(way, ways, callOf, calls),
  ];
  return [...new Set(problems)].map((problem) => `${way.name}: ${problem}`);
}

/** Whether all events arrived that another way showed, or that an answer requires. */
export const isComplete = (way: Way, ways: Way[], calls: OwnCall[]): boolean =>
  way.seen.length > 0 &&
  missingEvents(way, ways, new Map(calls.map((call) => [call.requestId, call])), calls).length === 0;

function missingEvents(way: Way, ways: Way[], callOf: Map<string, OwnCall>, calls: OwnCall[]): string[] {
  const ids = new Set(way.seen.map(({ event }) => event.id));
  const elsewhere = ways
    .flatMap(({ seen }) => seen)
    .filter(({ event }) => callOf.has(event.request_id as string) && !ids.has(event.id));
  const types = new Set(elsewhere.map(({ event }) => event.type));
  const requests = new Set(ways.flatMap(({ seen }) => seen.map(({ event }) => event.request_id)));
  // The row of a call that changed nothing has the version of before.
  const known = new Map<number, number>();
  const unnoted = calls.filter(({ name, requestId, isIdUncertain, id, version }) => {
    const isTold = id !== undefined && version !== undefined;
    const isChange = isTold ? CHANGES.test(name) && known.get(id) !== version : CERTAIN_CHANGES.test(name);
    if (isTold) known.set(id, version);
    return isChange && !isIdUncertain && !requests.has(requestId);
  });
  return [
    ...[...types].map((type) => `${type} does not arrive.`),
    ...unnoted.map(({ name }) => `${name} has no event.`),
  ];
}

/** Calls that change their row if its version in the answer is a new one, and those that always do. A gateway may drop the `ETag`. */
const CHANGES =
  /^(boards|groups|cards|tags|comments)\.(create|update|configure|snooze|move|markRead|delete|restore|createMany|updateMany)$/;
const CERTAIN_CHANGES = /^(boards|groups|cards|tags|comments)\.(create|markRead|delete|restore|createMany)$/;

function lateness({ type }: SentEvent, milliseconds: number): string[] {
  const seconds = Math.floor(milliseconds / 1000);
  return seconds > LATEST_SECONDS ? [`${type} arrives ${seconds} seconds after its change.`] : [];
}

function wrongVersion({ type, subject_id, data }: SentEvent, { id, version }: OwnCall): string[] {
  if (subject_id !== id || version === undefined || data?.version === undefined || data.version === version) return [];
  return [`${type} has version ${data.version}, the answer to its call ${version}.`];
}

function fallingVersions(events: SentEvent[]): string[] {
  const versions = new Map<string, number>();
  return events.flatMap(({ id, type, subject_id, data }) => {
    const row = `${type.split('.')[0]} ${subject_id}`;
    const [before, version] = [versions.get(row), data?.version];
    if (typeof version !== 'number') return [];
    versions.set(row, version);
    return before !== undefined && version < before
      ? [`${type}: version ${version} follows ${before} (event ${id}).`]
      : [];
  });
}
