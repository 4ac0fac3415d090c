import type { Changes } from './check.ts';
import { type Anomaly, type Call, type History, inWords } from './history.ts';

/** No call that begins after the end of another one gets an older version. */
export function orderAnomalies(history: History, changes: Changes): Anomaly[] {
  const observed = observedIn(history.calls, changes);
  const missing = history.calls.flatMap((call) => call.missing.map((row) => ({ call, row })));
  const rows = new Set([...observed.keys(), ...missing.map(({ row }) => row)]);
  return [...rows].flatMap((row) => {
    const all = observed.get(row) ?? [];
    const deletions = history.calls.filter(
      ({ outcome, writes }) =>
        outcome !== 'refused' && writes.some((write) => write.row === row && write.verb === 'deleted'),
    );
    const absent = missing
      .filter((one) => one.row === row)
      .map(({ call }) => ({ call, version: 0, isWrite: false, isChange: false }));
    const isDeleted = ({ call }: Observed) => deletions.some(({ begun }) => begun < call.ended);
    const judged = [...all, ...absent.filter((one) => !isDeleted(one))];
    return orderOfRow(row, judged);
  });
}

/** A version of a row in an answer, or by the event of a write whose answer has none. */
type Observed = { call: Call; version: number; isWrite: boolean; isChange: boolean };

function observedIn(calls: Call[], changes: Changes): Map<string, Observed[]> {
  const shown = calls.flatMap((call) =>
    call.shown.flatMap(({ row, version }) => (version === undefined ? [] : [{ row, call, version }])),
  );
  const keyOf = ({ row, call }: { row: string; call: Call | undefined }) => `${row} ${call?.id}`;
  const changed = [...changes].flatMap(([row, own]) =>
    own.map(({ call, version, isSure }) => ({ row, call, version, isSure })),
  );
  const [shownKeys, changedKeys] = [
    new Set(shown.map(keyOf)),
    new Set(changed.filter(({ isSure }) => isSure).map(keyOf)),
  ];
  const unshown = changed.filter((one) => one.call?.outcome === 'done' && !shownKeys.has(keyOf(one)));
  const all = [...shown, ...unshown].map((one) => {
    const isWrite = one.call!.writes.length > 0;
    return { ...one, call: one.call!, isWrite, isChange: changedKeys.has(keyOf(one)) };
  });
  return Map.groupBy(all, ({ row }) => row);
}

function orderOfRow(row: string, observed: Observed[]): Anomaly[] {
  const ending = observed.filter(({ version }) => version > 0).sort((one, other) => one.call.ended - other.call.ended);
  const newest = new Map<string, Observed>();
  const keep = (key: string, one: Observed) => {
    if (one.version > (newest.get(key)?.version ?? 0)) newest.set(key, one);
  };
  let ended = 0;
  return observed
    .toSorted((one, other) => one.call.begun - other.call.begun)
    .flatMap((one): Anomaly[] => {
      const { call, version, isChange } = one;
      for (; ending[ended] && ending[ended]!.call.ended < call.begun; ended++) {
        const before = ending[ended]!;
        keep('all', before);
        keep(`${before.isWrite ? 'write' : 'read'} of ${before.call.session}`, before);
      }
      // It may be the stored answer of an earlier attempt.
      if (call.mayBeReplayed) return [];
      const written = newest.get(`write of ${call.session}`);
      const read = newest.get(`read of ${call.session}`);
      const others = newest.get('all');
      const isOlder = (before: Observed | undefined) => before !== undefined && version < before.version;
      const found = (name: Anomaly['name'], before: Observed): Anomaly[] => [
        {
          name,
          text: `${row} has version ${version} in ${inWords(call)}, after ${before.version} in ${inWords(before.call)}`,
        },
      ];
      if (version === 0) {
        const before = written ?? read ?? others;
        return before ? found('missing row', before) : [];
      }
      if (isOlder(written)) return found('own write not read', written!);
      if (isOlder(read)) return found('older read', read!);
      if (isOlder(others)) return found('stale answer', others!);
      return isChange && others?.version === version ? found('version not raised', others) : [];
    });
}
