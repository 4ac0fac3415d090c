import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { query, transact } from '../../server/database/query.ts';
import { median, open, percentiles, whileRepeating } from '../harness/load.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';
import {
  addGroups,
  BOARD,
  COPIES,
  countCopies,
  givenMaster,
  givenTemplateService,
  lastCardId,
} from './templateRows.ts';
import { residentMegabytes } from './usage.ts';
import { listBoards } from './workloads.ts';

const PROJECTS = 5000;
const MANY_PROJECTS = 16_667;
const EMBEDDED_PROJECTS = 1000;
const MOST_ROUNDS = 3;

type Synced = { sync: number; again: number; idsUsed: number; megabytes: number; p99: number; lists: number };

/** Compares a sync of 60 cards to 5,000 projects with one bare `insert … select` of the same 300,000 cards. */
export async function measureSync({ rounds = MOST_ROUNDS }: Run): Promise<Table[]> {
  const bare: number[] = [];
  const synced: Synced[] = [];
  for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++) {
    bare.push(await bareInsert(PROJECTS));
    synced.push(await sync(PROJECTS, { isListing: false }));
  }
  const times = synced.map(({ sync }, round) => sync / bare[round]!);
  const middle = (figure: keyof Synced) => whole(median(synced.map((each) => each[figure])));
  return [
    {
      title: 'Sync of 60 cards to 5,000 projects',
      note: `It uses ${middle('idsUsed')} ids again, and ${middle('megabytes')} MB more memory at most.`,
      columns: ['', 'ms', 'of the bare insert'],
      rows: [
        ['one bare insert … select of 300,000 cards', whole(median(bare)), '1.00'],
        ['sync', middle('sync'), precise(median(times))],
        ['sync again, nothing new', middle('again'), ''],
      ],
    },
  ];
}

/** The same while another user lists boards, to more projects, and on the embedded database. */
export async function measureTemplates({ projects, ...run }: Run): Promise<Table[]> {
  const tables = await measureSync({ ...run, projects });
  const first = await sync(PROJECTS);
  const large = await sync(MANY_PROJECTS);
  const embedded = await sync(EMBEDDED_PROJECTS, { isEmbedded: true });
  const row = (name: string, { sync, again, p99, lists }: Synced, linear = '') => [
    ...[name, whole(sync), whole(again), linear, precise(p99, 1), whole(lists)],
  ];
  const linear = precise(large.sync / first.sync / (MANY_PROJECTS / PROJECTS));
  const table: Table = {
    title: 'Sync of 60 cards while another user lists boards',
    columns: ['projects', 'ms', 'again, nothing new', 'times linear', 'boards/list p99 ms', 'of so many'],
    rows: [
      row(whole(PROJECTS), first),
      row(whole(MANY_PROJECTS), large, linear),
      row(`${whole(EMBEDDED_PROJECTS)}, embedded`, embedded),
    ],
  };
  return [...tables, table];
}

async function bareInsert(projects: number): Promise<number> {
  const { database } = await givenMaster(projects);
  await addGroups(database);
  const time = await milliseconds(() =>
    database.withoutTimeouts(({ db }) =>
      transact(db, async (db) => {
        // The same planner settings as a sync: without them the bare statement takes several times as long.
        await query(db, sql`select set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true)`);
        await query(
          db,
          sql`insert into cards (project_id, platform_id, master_card_id, group_id, title, description, position, sort_order)
        select g.project_id, 1, c.id, g.id, c.title, c.description, c.position, c.sort_order
        from groups g join cards c on c.group_id = g.master_group_id and c.is_master where not g.is_master`,
        );
      }),
    ),
  );
  await database.close();
  return time;
}

async function sync(projects: number, { isListing = true, isEmbedded = false } = {}): Promise<Synced> {
  const { client, database, url, token, stop } = await givenTemplateService(projects, { isEmbedded });
  const before = residentMegabytes(process.pid);
  let most = before;
  const watch = async () => {
    most = Math.max(most, residentMegabytes(process.pid));
    await pause(20);
  };
  const lister = await open(url, { ...listBoards('REST'), token }, 200);
  const lists: number[] = [];
  const list = async () => lists.push(await lister.send());
  const run = () => milliseconds(() => client.masterBoards.sync.mutate(BOARD));
  const synced = await whileRepeating(isListing ? [watch, list] : [watch], run);
  lister.close();
  const idBefore = await lastCardId(database);
  const again = await run();
  const idsUsed = (await lastCardId(database)) - idBefore;
  const copies = await countCopies(database);
  if (copies !== projects * COPIES) throw new Error(`There are ${copies} copies.`);
  await stop();
  const [p99 = Number.NaN] = percentiles(lists, 0.99);
  return { sync: synced, again, idsUsed, megabytes: most - before, p99, lists: lists.length };
}

export async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}
