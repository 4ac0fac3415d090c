import type pg from 'pg';

/** Rows for the growth of a database. */

export type Amounts = { projects: number; cards: number; events: number; webhooks: number };

/** Up to so many boards in the project, with a group and a card each. */
export async function addBoards(database: pg.Client, project: number, count: number): Promise<void> {
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
    [project, count],
  );
  await database.query('analyze');
}

const GROUPS = "select g.id from groups g join boards b on b.id = g.board_id where b.title = 'Grown'";

/** Removes what `addBoards` added. */
export const removeBoards = (database: pg.Client) =>
  withoutChecks(database, async () => {
    await database.query(`delete from cards where group_id in (${GROUPS})`);
    await database.query(`delete from groups where id in (${GROUPS})`);
    await database.query("delete from boards where title = 'Grown'");
  });

/** Without indexes while the rows are added, which takes a fifth of the time. */
export const addLarge = (database: pg.Client, { projects, cards, events, webhooks }: Amounts) =>
  withoutChecks(database, async () => {
    const { rows: indexes } = await database.query(
      `select indexname as name, indexdef as text from pg_indexes
       where tablename in ('cards', 'events') and indexname not in (select conname from pg_constraint)`,
    );
    for (const { name } of indexes) await database.query(`drop index "${name}"`);
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
  });

/** Without triggers and checks of references. */
async function withoutChecks(database: pg.Client, work: () => Promise<unknown>): Promise<void> {
  await database.query("set session_replication_role = 'replica'");
  await work();
  await database.query("set session_replication_role = 'origin'");
  await database.query('analyze');
}
