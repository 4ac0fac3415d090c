import { isDeepStrictEqual } from 'node:util';
import { callAnomalies, deliveryAnomalies, feedAnomalies } from './checkEvents.ts';
import { orderAnomalies } from './checkOrder.ts';
import {
  type Anomaly,
  type Call,
  type FeedEvent,
  type Fields,
  type History,
  inWords,
  type Shown,
  subjectOf,
  type Write,
} from './history.ts';

/**
 * What no run of the service may show. Sound: a call without an answer may or may not have happened, and what it did is known by
 * its events alone.
 */
export function anomaliesOf(history: History): Anomaly[] {
  const changes = changesOf(history);
  return [
    ...conditionAnomalies(changes),
    ...valueAnomalies(history, changes),
    ...orderAnomalies(history, changes),
    ...feedAnomalies(history, changes),
    ...callAnomalies(history),
    ...deliveryAnomalies(history),
  ];
}

/** A version of a row that has an event of its own. `isSure` is false if a move may have moved only others. */
export type Change = { version: number; isSure: boolean; event: FeedEvent; call?: Call; write?: Write };
export type Changes = ReadonlyMap<string, Change[]>;

/** The changes of each row, in the order of the feed. */
function changesOf({ calls, events }: History): Changes {
  const byId = new Map(calls.map((call) => [call.id, call]));
  const changes = new Map<string, Change[]>();
  for (const event of events) {
    const row = subjectOf(event);
    if (row === undefined) continue;
    const call = byId.get(event.request_id ?? '');
    const { version = 0, ids } = event.data;
    const isSure = !ids || !event.type.endsWith('.moved');
    const change = { version, isSure, event, call, write: call && writeOf(call, row, event) };
    const own = changes.get(row);
    if (own) own.push(change);
    else changes.set(row, [change]);
  }
  return changes;
}

/** What a call wrote to a row. If its answer was lost, the id of a new row is unknown: a single new row must be this one. */
function writeOf({ writes }: Call, row: string, { type }: FeedEvent): Write | undefined {
  const named = writes.find((write) => write.row === row);
  if (named || !type.endsWith('.created')) return named;
  const [write, ...others] = writes.filter(({ verb }) => verb === 'created');
  return others.length === 0 && write?.row === undefined ? write : undefined;
}

/** A write that required a version follows that version. */
const conditionAnomalies = (changes: Changes): Anomaly[] =>
  [...changes].flatMap(([row, own]) =>
    own.flatMap(({ version, isSure, call, write }) => {
      if (write?.condition === undefined || version === write.condition + 1) return [];
      if (!isSure && version === write.condition) return [];
      const text = `${inWords(call!)} required version ${write.condition} of ${row}, and made version ${version}`;
      return [{ name: 'lost update' as const, text }];
    }),
  );

/** Each answer has what the last write before its version wrote, and two answers of one version are equal. */
function valueAnomalies({ calls, rows, copies }: History, changes: Changes): Anomaly[] {
  const seen = [
    ...calls.flatMap((call) => call.shown.map((shown) => ({ ...shown, by: inWords(call) }))),
    ...rows.map((shown) => ({ ...shown, by: 'the last read' })),
  ].filter((one): one is Seen => one.version !== undefined);
  return [...Map.groupBy(seen, ({ row }) => row)].flatMap(([row, answers]) => {
    const byVersion = answers.toSorted((one, other) => one.version - other.version);
    const own = copies.has(row) ? [] : (changes.get(row) ?? []);
    const equal = [...Map.groupBy(byVersion, ({ version }) => version).values()];
    return [
      ...equal.flatMap(([first, ...others]) =>
        others.flatMap((one) => differences('differing answers', one, () => first)),
      ),
      ...valuesOfRow(byVersion, own),
    ];
  });
}

type Seen = Shown & { version: number; by: string };
type Valued = { fields: Fields; by: string };

/** Each field must have the value of its last write. After an unknown write, nothing is expected. */
function valuesOfRow(byVersion: Seen[], own: Change[]): Anomaly[] {
  const changes = own.toSorted((one, other) => one.version - other.version);
  const written = new Map<string, Valued>();
  let at = 0;
  return byVersion.flatMap((one) => {
    for (; changes[at] && changes[at]!.version <= one.version; at++) {
      const { write, call } = changes[at]!;
      if (!write) written.clear();
      for (const field of Object.keys(write?.fields ?? {})) written.set(field, { ...write!, by: inWords(call!) });
    }
    return differences('wrong value', one, (field) => written.get(field));
  });
}

function differences(name: Anomaly['name'], one: Seen, otherOf: (field: string) => Valued | undefined): Anomaly[] {
  const text = (field: string, { fields, by }: Valued) => `${JSON.stringify(fields[field])} by ${by}`;
  return Object.keys(one.fields).flatMap((field) => {
    const other = otherOf(field);
    if (!other || !(field in other.fields) || isDeepStrictEqual(one.fields[field], other.fields[field])) return [];
    return [
      { name, text: `${field} of ${one.row} at version ${one.version} is ${text(field, one)}, ${text(field, other)}` },
    ];
  });
}
