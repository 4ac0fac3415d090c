import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { median, open } from '../harness/load.ts';
import { startAsScript } from '../harness/process.ts';
import { type Amounts, addBoards, addLarge, removeBoards } from './grownRows.ts';
import { givenUsers } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';
import { type DatabaseUsage, watchDatabase } from './usage.ts';
import type { Users } from './users.ts';
import { call, DEMO_BOARD } from './workloads.ts';

const FULL: Amounts = { projects: 100_000, cards: 10_000_000, events: 3_000_000, webhooks: 100_000 };
const BOARDS = [10, 100, 1_000, 10_000];
const CALLS = 300;

type Cost = { milliseconds: number; cpuMilliseconds: number };
type Call = { procedure: string; input: object; token: string };
type CostsOf = (calls: Call[]) => Promise<Cost[]>;

/** How the cost of a call grows with what is stored. Each operation is called by one user, one call after the other. */
export async function measureGrowth({ share, rounds = CALLS }: Run): Promise<Table[]> {
  const { settings, users } = await givenUsers();
  const large = Object.fromEntries(
    Object.entries(FULL).map(([name, count]) => [name, Math.round(count * share)]),
  ) as Amounts;
  const database = new pg.Client(settings.DATABASE_URL);
  // After a failure the database is dropped; this error would hide the real one.
  database.on('error', () => undefined);
  await database.connect();
  const service = await startAsScript(settings);
  const usage = await watchDatabase(settings.DATABASE_URL!);
  const calls = callsOf(users);
  const costsOf: CostsOf = (all) => measureCosts(service.url, usage, all, rounds);

  const project = await givenOwner(database, users);
  const small = await costsOf(calls);
  const boards = await measureBoards(database, project, calls, costsOf);
  await removeBoards(database);
  await addLarge(database, large);
  await untilQuiet(usage);
  const costs = await costsOf(calls);
  await Promise.all([usage.stop(), database.end(), service.stop()]);
  return [
    {
      title: 'What is stored by others',
      note: `Small: 200 projects with 20,000 cards. Large: also ${whole(large.projects)} projects with ${whole(large.cards)} cards, ${whole(large.events)} events and ${whole(large.webhooks)} webhooks.`,
      columns: ['', 'small: ms', 'CPU ms', 'large: ms', 'CPU ms', 'times'],
      rows: calls.map(({ procedure }, at) => [
        ...[procedure, ...cells(small[at]!), ...cells(costs[at]!)],
        precise(costs[at]!.milliseconds / small[at]!.milliseconds, 1),
      ]),
    },
    boards,
  ];
}

function callsOf({ readers, writers }: Users): Call[] {
  const { token, card_id, group_id } = writers[0]!;
  const own = (procedure: string, input: object) => ({ procedure, input, token });
  return [
    own('boards.list', {}),
    // Nobody changes it.
    { procedure: 'boards.get', input: { id: DEMO_BOARD }, token: readers[0]!.token },
    own('cards.get', { id: card_id }),
    own('cards.list', { limit: 50 }),
    own('cards.create', { title: 'One more', group_id }),
    own('cards.update', { id: card_id, title: 'Another title' }),
    own('comments.create', { card_id, comment: 'One more' }),
    own('comments.list', { card_id, limit: 50 }),
    ...['tags.list', 'events.list', 'webhooks.list'].map((procedure) => own(procedure, { limit: 50 })),
    own('projects.listOwn', {}),
    own('account.whoAmI', {}),
  ];
}

/** The project of the writers, who may also list its webhooks. */
async function givenOwner(database: pg.Client, { writers }: Users): Promise<number> {
  const { rows } = await database.query('select project_id as id from groups where id = $1', [writers[0]!.group_id]);
  await database.query("update members set role = 'owner' where project_id = $1", [rows[0].id]);
  return rows[0].id;
}

async function measureBoards(database: pg.Client, project: number, calls: Call[], costsOf: CostsOf): Promise<Table> {
  const grown = calls.filter(({ procedure }) => ['boards.list', 'boards.get', 'cards.create'].includes(procedure));
  const rows: string[][] = [];
  for (const count of BOARDS) {
    await addBoards(database, project, count);
    rows.push([whole(count), ...(await costsOf(grown)).flatMap(cells)]);
  }
  const columns = ['boards', ...grown.flatMap(({ procedure }) => [`${procedure}: ms`, 'CPU ms'])];
  return { title: 'Boards in the project', columns, rows };
}

async function measureCosts(url: string, usage: DatabaseUsage, calls: Call[], count: number): Promise<Cost[]> {
  const costs: Cost[] = [];
  for (const { procedure, input, token } of calls) {
    const { send, close } = await open(url, { ...call('RPC', '', procedure, input), token }, 200);
    for (let warm = 0; warm < count / 3; warm++) await send();
    const before = await usage.cpuMilliseconds();
    const times: number[] = [];
    while (times.length < count) times.push(await send());
    const cpuMilliseconds = ((await usage.cpuMilliseconds()) - before) / count;
    costs.push({ milliseconds: median(times), cpuMilliseconds });
    close();
  }
  return costs;
}

/** Until the service has looked at the new webhooks for the first time. */
async function untilQuiet(usage: DatabaseUsage): Promise<void> {
  for (let before = Number.NEGATIVE_INFINITY; ; await pause(2_000)) {
    const now = await usage.cpuMilliseconds();
    if (now - before < 100) return;
    before = now;
  }
}

const cells = ({ milliseconds, cpuMilliseconds }: Cost) => [precise(milliseconds, 1), precise(cpuMilliseconds)];
