import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import superjson from 'superjson';
import { removeProcesses, startAsScript } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { removeBenchDatabases } from './database.ts';
import { bytesOf, open } from './load.ts';
import { describeRun, writeGrowth } from './page.ts';
import { givenFilledDatabase } from './stage.ts';
import { median, precise, type Table, toText, whole } from './table.ts';
import { watchDatabase } from './usage.ts';

/**
 * How the cost of a call grows with what is stored: `npm run bench:growth`. Each operation is called by one user, one call after
 * the other. With the full number of cards the figures are written to docs/growth.md.
 */

const FULL = { projects: 100_000, cards: 10_000_000, events: 3_000_000, webhooks: 100_000 };
const BOARDS = [10, 100, 1_000, 10_000];
const CALLS = 300;
/** Three groups, eight cards, which nobody changes. */
const DEMO_BOARD = 2;

const options = programOptions('npm run bench:growth --', { share: '1' });
const share = Number(options.share);
const large = Object.fromEntries(
  Object.entries(FULL).map(([name, count]) => [name, Math.round(count * share)]),
) as typeof FULL;

/** What `addBoards` added, without checks. */
const GROUPS = "select g.id from groups g join boards b on b.id = g.board_id where b.title = 'Grown'";
const REMOVE_BOARDS = [
  `delete from cards where group_id in (${GROUPS})`,
  `delete from groups where id in (${GROUPS})`,
  "delete from boards where title = 'Grown'",
];

type Cost = { milliseconds: number; cpuMilliseconds: number };
type Call = { procedure: string; input: object; token?: string };

const { settings, tenants } = await givenFilledDatabase({ isEmbedded: false });
try {
  const database = new pg.Client(settings.DATABASE_URL);
  // After a failure the database is dropped; this error would hide the real one.
  database.on('error', () => undefined);
  await database.connect();
  const [writer] = tenants.writers;
  const { url } = await startAsScript(settings);
  const usage = await watchDatabase(settings.DATABASE_URL!);
  const run = describeRun(usage.version);
  console.log(`${run}\n`);

  const [project] = (await database.query('select project_id as id from groups where id = $1', [writer!.group_id]))
    .rows;
  // For webhooks.list.
  await database.query("update members set role = 'owner' where project_id = $1", [project.id]);
  const calls: Call[] = [
    { procedure: 'boards.list', input: {} },
    { procedure: 'boards.get', input: { id: DEMO_BOARD }, token: tenants.readers[0]!.token },
    { procedure: 'cards.get', input: { id: writer!.card_id } },
    { procedure: 'cards.list', input: { limit: 50 } },
    { procedure: 'cards.create', input: { title: 'One more', group_id: writer!.group_id } },
    { procedure: 'cards.update', input: { id: writer!.card_id, title: 'Another title' } },
    { procedure: 'comments.create', input: { card_id: writer!.card_id, comment: 'One more' } },
    { procedure: 'comments.list', input: { card_id: writer!.card_id, limit: 50 } },
    { procedure: 'tags.list', input: { limit: 50 } },
    { procedure: 'events.list', input: { limit: 50 } },
    { procedure: 'webhooks.list', input: { limit: 50 } },
    { procedure: 'projects.listOwn', input: {} },
    { procedure: 'account.whoAmI', input: {} },
  ];
  const small = await costsOf(calls);
  const ofBoards: { count: number; costs: Cost[] }[] = [];
  const grown = calls.filter(({ procedure }) => ['boards.list', 'boards.get', 'cards.create'].includes(procedure));
  for (const count of BOARDS) {
    await addBoards(count);
    ofBoards.push({ count, costs: await costsOf(grown) });
  }
  await database.query("set session_replication_role = 'replica'");
  for (const statement of REMOVE_BOARDS) await database.query(statement);
  await addLarge();
  await untilQuiet();
  const grownCosts = await costsOf(calls);

  const tables = [tableOfSizes(), tableOfBoards()];
  for (const table of tables) console.log(toText(table));
  if (share === 1) await writeGrowth(run, tables);
  await usage.stop();
  await database.end();

  async function costsOf(all: Call[]): Promise<Cost[]> {
    const costs: Cost[] = [];
    for (const { procedure, input, token = writer!.token } of all) {
      const body = JSON.stringify(superjson.serialize(input));
      const { send, close } = await open(url, bytesOf(url, { path: `/trpc/${procedure}`, body, token }), 200);
      for (let call = 0; call < CALLS / 3; call++) await send();
      const before = await usage.cpuMilliseconds();
      const times: number[] = [];
      for (let call = 0; call < CALLS; call++) times.push(await send());
      costs.push({
        milliseconds: median(times),
        cpuMilliseconds: ((await usage.cpuMilliseconds()) - before) / CALLS,
      });
      close();
    }
    return costs;
  }

  /** Until the service has looked at the new webhooks for the first time. */
  async function untilQuiet(): Promise<void> {
    for (let before = Number.NEGATIVE_INFINITY; ; await pause(2_000)) {
      const now = await usage.cpuMilliseconds();
      if (now - before < 100) return;
      before = now;
    }
  }

  /** Up to so many boards in the project, with a group and a card each. */
  async function addBoards(count: number): Promise<void> {
    await database.query(
      `with board as (
        insert into boards (project_id, platform_id, title, position)
        select $1, p.platform_id, 'Grown', n from projects p, generate_series((select count(*) + 1 from boards where project_id = $1), $2) as n
        where p.id = $1 returning id, project_id, platform_id
      ), added as (
        insert into groups (project_id, platform_id, board_id, title, position)
        select project_id, platform_id, id, 'Group', 1 from board returning id, project_id, platform_id
      )
      insert into cards (project_id, platform_id, group_id, title, position, sort_order)
      select project_id, platform_id, id, 'Card', 1, 1 from added`,
      [project.id, count],
    );
    await database.query('analyze');
  }

  /** Without indexes and checks while the rows are added, which takes a fifth of the time. */
  async function addLarge(): Promise<void> {
    const { rows: indexes } = await database.query(
      `select indexname as name, indexdef as text from pg_indexes
       where tablename in ('cards', 'events') and indexname not in (select conname from pg_constraint)`,
    );
    for (const { name } of indexes) await database.query(`drop index "${name}"`);
    const { projects, cards, events, webhooks } = large;
    console.log(
      `Adds ${whole(projects)} projects, ${whole(cards)} cards, ${whole(events)} events, ${whole(webhooks)} webhooks…`,
    );
    await database.query(
      `with project as (
        insert into projects (platform_id, name) select 2, 'Grown ' || n from generate_series(1, ${projects}) as n returning id
      ), board as (
        insert into boards (project_id, platform_id, title, position) select id, 2, 'Board', 1 from project returning id, project_id
      )
      insert into groups (project_id, platform_id, board_id, title, position)
      select project_id, 2, id, 'Group ' || n, n from board, generate_series(1, 2) as n`,
    );
    await database.query(
      `insert into cards (project_id, platform_id, group_id, title, position, sort_order)
       select g.project_id, 2, g.id, 'Card ' || n, n, n * 2 + g.position
       from groups g join projects p on p.id = g.project_id and p.name like 'Grown %', generate_series(1, ${Math.round(cards / projects / 2)}) as n`,
    );
    await database.query(
      `insert into events (type, platform_id, project_id, subject_id, data, user_id, surface)
       select 'card.created', 2, p.id, n, '{}', 3, 'rest'
       from projects p, generate_series(1, ${Math.round(events / projects)}) as n where p.name like 'Grown %'`,
    );
    await database.query(
      `insert into webhooks (project_id, url, secret, after_transaction, after_event, created_by)
       select id, 'https://receiver.example/', 'none', pg_current_xact_id(), (select max(id) from events), 3
       from projects where name like 'Grown %' limit ${webhooks}`,
    );
    for (const { text } of indexes) await database.query(text);
    await database.query("set session_replication_role = 'origin'");
    await database.query('analyze');
  }

  function tableOfSizes(): Table {
    return {
      title: 'What is stored by others',
      note: `Small: 200 projects with 20,000 cards. Large: also ${whole(large.projects)} projects with ${whole(large.cards)} cards, ${whole(large.events)} events and ${whole(large.webhooks)} webhooks.`,
      columns: ['', 'small: ms', 'CPU ms', 'large: ms', 'CPU ms', 'times'],
      rows: calls.map(({ procedure }, at) => [
        procedure,
        ...cells(small[at]!),
        ...cells(grownCosts[at]!),
        precise(grownCosts[at]!.milliseconds / small[at]!.milliseconds, 1),
      ]),
    };
  }

  function tableOfBoards(): Table {
    return {
      title: 'Boards in the project',
      columns: ['boards', ...grown.flatMap(({ procedure }) => [`${procedure}: ms`, 'CPU ms'])],
      rows: ofBoards.map(({ count, costs }) => [whole(count), ...costs.flatMap(cells)]),
    };
  }
} finally {
  await removeProcesses();
  await removeBenchDatabases();
}

function cells({ milliseconds, cpuMilliseconds }: Cost): string[] {
  return [precise(milliseconds, 1), precise(cpuMilliseconds)];
}
