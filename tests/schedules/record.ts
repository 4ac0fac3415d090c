import type { Call, Shown } from '../history/history.ts';
import type { Pool, Sending } from './operations.ts';

/** What is known of an attempt before its answer. */
export type Begun = Pick<Call, 'id' | 'session' | 'begun'> & { key: string | undefined };

/** How an attempt ended. */
export type Ended =
  | { outcome: 'done'; data: any; isReplayed: boolean }
  | { outcome: 'refused' | 'unknown'; status: number };

/** An attempt as the check of histories reads it. */
export function callOf({ path, writes, card }: Sending, { key, ...begun }: Begun, ended: number, end: Ended): Call {
  const call: Call = {
    ...{ ...begun, operation: path, ended, outcome: end.outcome, ...(key !== undefined && { key }) },
    writes: structuredClone(writes),
    shown: end.outcome === 'done' ? rowsIn(end.data) : [],
    missing: end.outcome === 'refused' && end.status === 404 && card !== undefined ? [`card ${card}`] : [],
  };
  if (end.outcome !== 'done') return call;
  nameRows(call, end.data);
  return { ...call, mayBeReplayed: end.isReplayed };
}

/** Gives new rows their ids, and marks the refused ones of many. */
function nameRows({ writes, shown }: Call, data: any): void {
  for (const [at, write] of writes.entries()) {
    const { card, error } = data?.results?.[at] ?? {};
    if (error) write.isRefused = true;
    else write.row ??= card ? `card ${card.id}` : shown[0]?.row;
  }
}

/** Fields that depend on the time or on the caller. */
const NOT_OF_THE_ROW = new Set(['is_overdue', 'is_dismissed', 'card_type']);

const rowsIn = (data: any): Shown[] =>
  ['card', 'comment', 'tag'].flatMap((noun) => {
    const row = data?.[noun];
    if (!row) return [];
    const fields = Object.entries(row).filter(([field]) => !NOT_OF_THE_ROW.has(field));
    const version = Number.parseInt(data.version, 10);
    return [{ row: `${noun} ${row.id}`, version, fields: Object.fromEntries(fields) }];
  });

/** Others may work on the rows of an acknowledged call, too. */
export function addToPool(pool: Pool, { outcome, writes }: Call): void {
  if (outcome !== 'done') return;
  for (const { row = '', verb } of writes) {
    const [noun, id] = row.split(' ');
    const rows = { card: pool.cards, comment: pool.comments }[noun!];
    if (rows && verb === 'created' && !rows.includes(Number(id))) rows.push(Number(id));
    if (noun === 'card' && verb === 'deleted') pool.deleted.push(Number(id));
  }
}
