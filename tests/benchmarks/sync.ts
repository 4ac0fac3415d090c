import { median, precise, type Table, whole } from './table.ts';
import { bareInsert, measureSync, onFreshDatabase } from './templates.ts';
import type { Length } from './throughput.ts';

const PROJECTS = 5000;
const MOST_ROUNDS = 3;

/** Compares a sync of 60 cards to 5,000 projects with one bare `insert … select` of the same 300,000 cards. */
export async function measureTemplates({ rounds }: Length): Promise<Table> {
  const bare: number[] = [];
  const synced: Awaited<ReturnType<typeof measureSync>>[] = [];
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++) {
    bare.push(await onFreshDatabase((database) => bareInsert(database, PROJECTS)));
    synced.push(await onFreshDatabase((database) => measureSync(database, PROJECTS, { isListing: false })));
  }
  const times = synced.map(({ sync }, round) => sync / bare[round]!);
  return {
    title: 'Sync of 60 cards to 5,000 projects',
    columns: ['', 'ms', 'of the bare insert'],
    rows: [
      ['one bare insert … select of 300,000 cards', whole(median(bare)), '1.00'],
      ['sync', whole(median(synced.map(({ sync }) => sync))), precise(median(times))],
      ['sync again, nothing new', whole(median(synced.map(({ again }) => again))), ''],
    ],
  };
}
