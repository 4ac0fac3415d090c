import { sql } from 'kysely';
import { connect } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { hashPassword } from '../../server/security/passwords.ts';
import { signTokens } from './world.ts';

/** The rows of a service that is to be upgraded, on the tables of any version. */

export type UpgradeWorld = {
  /** Each in a project of its own. */
  members: { token: string; email: string; project: number; groups: number[] }[];
  superadmin: string;
  /** A master group of a board that few projects have. */
  masterGroup: number;
};

export const PASSWORD = 'a password of the load';
const MEMBERS = 12;
const GROUPS = 4;
/** Pushes go to so many projects. */
export const PROJECTS_WITH_TOOL = 10;
/** Each project has so many cards of its own and copies of so many master cards. */
const OWN_CARDS = 180;
const MASTER_CARDS = 120;

/** Half of the cards are plain; the others have HTML, most of it in copies whose project changed the description. */
export async function fillOldTables(
  settings: Record<string, string>,
  cards: number,
  { isRecent }: { isRecent: boolean },
): Promise<UpgradeWorld> {
  const hash = await hashPassword(PASSWORD, 'test');
  const database = await connect(readSettings(settings));
  try {
    const projects = Math.max(MEMBERS, Math.round(cards / (OWN_CARDS + MASTER_CARDS)));
    const world = await database.db.transaction().execute(async (db) => {
      const world = await fill(db, projects, hash);
      if (!isRecent) await addFaultyRows(db);
      return world;
    });
    await query(database.db, sql`analyze`);
    return world;
  } finally {
    await database.close();
  }
}

async function fill(db: Db, projects: number, hash: string): Promise<UpgradeWorld> {
  const write = (text: string) => query(db, sql.raw(text));
  await write(`set local statement_timeout = 0`);
  await write(`insert into platforms (name) select 'Platform ' || n from generate_series(1, ${projects / 4}) n`);
  await write(`
    insert into projects (platform_id, name)
    select (select min(id) from platforms) + n % (select count(*) from platforms), 'Project ' || n from generate_series(1, ${projects}) n`);
  await write(`
    insert into users (name, email, password_hash, default_project_id)
    select 'User ' || id, 'user-' || id || '@example.test', '${hash}', case when id % 2 = 0 then id end from projects order by id`);
  await write(
    `insert into users (name, email, password_hash, superadmin) values ('Admin', 'admin@example.test', '${hash}', true)`,
  );
  await write(`
    insert into members (project_id, user_id, role)
    select p.id, u.id, 'member' from projects p join users u on u.email = 'user-' || p.id || '@example.test'`);
  await write(`
    insert into sessions (user_id, expires_at)
    select id, now() + interval '1 day' * (n % 3 - 1) from users, generate_series(1, 20) n`);

  await write(
    `insert into boards (is_master, title, tool_key) values (true, 'Template', null), (true, 'Rare template', 'rare')`,
  );
  await write(`
    insert into groups (is_master, board_id, title, position)
    select true, id, 'Template group ' || n, n from boards, generate_series(1, ${GROUPS}) n`);
  await write(`
    insert into cards (is_master, group_id, title, description, tour_key)
    select true, (select min(id) from groups) + n % ${GROUPS}, 'Template card ' || n, '<p>Step ' || n || '</p>', case when n % 40 = 0 then 'tour-' || n end
    from generate_series(1, ${MASTER_CARDS}) n`);
  await write(
    `insert into project_tools (project_id, tool_key) select id, 'rare' from projects order by id limit ${PROJECTS_WITH_TOOL}`,
  );

  // The copies of some projects were changed since.
  const changed = `now() + interval '1 second' * (p.id % 2)`;
  await write(`
    insert into boards (project_id, platform_id, master_board_id, title, updated_at)
    select p.id, p.platform_id, (select min(id) from boards), 'Template', ${changed} from projects p`);
  await write(`
    insert into groups (project_id, platform_id, master_group_id, board_id, title, position, updated_at)
    select p.id, p.platform_id, m.id, b.id, m.title, m.position, ${changed}
    from projects p join boards b on b.project_id = p.id
    join groups m on m.board_id = b.master_board_id`);
  await write(`
    insert into cards (project_id, platform_id, master_card_id, group_id, title, description, tour_key, unique_identifier)
    select g.project_id, g.platform_id, m.id, g.id, m.title,
      case when (m.id + g.project_id) % 6 = 0 then m.description
        else '<p onclick="steal()">Step of ' || g.project_id || '</p><script>steal()</script>' end,
      m.tour_key, m.unique_identifier
    from groups g join cards m on m.group_id = g.master_group_id`);

  await write(`
    insert into boards (project_id, platform_id, title) select id, platform_id, 'Own' from projects`);
  await write(`
    insert into groups (project_id, platform_id, board_id, title, position)
    select project_id, platform_id, id, 'Own group ' || n, n from boards, generate_series(1, ${GROUPS}) n where title = 'Own'`);
  await write(`
    insert into cards (project_id, platform_id, group_id, title, description, position, sort_order)
    select project_id, platform_id, id, 'Card ' || n, case when n % 6 = 0 then '<p>HTML ' || n || '</p>' else 'Plain ' || n end, n, n
    from groups, generate_series(1, ${OWN_CARDS / GROUPS}) n where title like 'Own group%'`);

  const commented = `select c.id, c.project_id, m.user_id from cards c join members m on m.project_id = c.project_id where c.title = 'Card 7'`;
  await write(
    `insert into comments (project_id, card_id, user_id, comment) select project_id, id, user_id, 'First' from (${commented}) c`,
  );
  for (const [parent, reply] of [
    ['First', 'Reply'],
    ['Reply', 'Deep reply'],
  ])
    await write(`
      insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
      select project_id, card_id, user_id, id, '${reply}' from comments, generate_series(1, 2) where comment = '${parent}'`);
  await write(`
    insert into tour_dismissals (user_id, card_id)
    select m.user_id, c.id from cards c join members m on m.project_id = c.project_id where c.tour_key is not null and c.project_id % 3 = 0`);
  await write(`
    insert into template_runs (kind, board_id, started_at, finished_at)
    select 'sync', (select min(id) from boards), now() - interval '2 days', now() - interval '1 day' from generate_series(1, 20)`);
  await write(
    `insert into template_outcomes (run_id, project_id, outcome) select r.id, p.id, 'unchanged' from template_runs r, projects p`,
  );

  const members = await query(
    db,
    sql<{ user_id: number; project: number; email: string; groups: number[] }>`
      select m.user_id, m.project_id as project, u.email, array_agg(g.id) as groups
      from members m join users u on u.id = m.user_id join groups g on g.project_id = m.project_id and g.title like 'Own group%'
      group by m.user_id, m.project_id, u.email order by m.user_id limit ${sql.lit(MEMBERS)}`,
  );
  const [admin] = await query(db, sql<{ id: number }>`select id from users where superadmin`);
  const [rare] = await query(
    db,
    sql<{
      id: number;
    }>`select min(g.id) as id from groups g join boards b on b.id = g.board_id where b.is_master and b.tool_key = 'rare'`,
  );
  const tokens = await signTokens(db, [...members.map(({ user_id }) => user_id), admin!.id]);
  return {
    members: members.map(({ email, project, groups }, at) => ({ email, project, groups, token: tokens[at]! })),
    superadmin: tokens.at(-1)!,
    masterGroup: rare!.id,
  };
}

/** What the tables of the first version allowed: equal identifiers of templates, and free plans that count as paid. */
async function addFaultyRows(db: Db): Promise<void> {
  const write = (text: string) => query(db, sql.raw(text));
  await write(`
    with master as (select id from cards where is_master order by id limit 3)
    update cards set unique_identifier = 'same' where id in (select id from master) or master_card_id in (select id from master)`);
  await write(`insert into plans (product, plan, period, price_cents) values ('boards', 'free', 'month', 0)`);
  await write(`
    insert into subscriptions (platform_id, product, status, trial_ends_at, plan_id, paid_at)
    select p.id, 'boards', 'paid', now(), (select max(id) from plans), now() from platforms p`);
  await write(`
    insert into checkouts (subscription_id, plan_id, provider, status, price_cents, currency)
    select id, plan_id, 'test', 'paid', 0, 'EUR' from subscriptions`);
}

/** A line for each kind of row that the migrations from the first version must have rewritten, and have not. */
export async function findNotRewritten(db: Db): Promise<string[]> {
  const found = await query(db, sql.raw<{ what: string; rows: number }>(NOT_REWRITTEN));
  return found.filter(({ rows }) => rows > 0).map(({ what, rows }) => `${rows} rows: ${what}`);
}

const NOT_REWRITTEN = Object.entries({
  'descriptions of copies have scripts': `cards where description ~ 'steal'`,
  'descriptions of copies lost their text': `cards where master_card_id is not null and description !~ '^<p>Step (of )?[0-9]+</p>$' and group_id in (select id from groups where master_group_id is not null) and title like 'Template card%'`,
  'copies have another identifier than their template': `cards c join cards m on m.id = c.master_card_id where c.unique_identifier <> m.unique_identifier and c.deleted_at is null`,
  'master cards share an identifier': `cards c join cards o using (unique_identifier) where c.is_master and o.is_master and o.id < c.id`,
  'boards do not know what was brought': `boards where master_board_id is not null and brought is null`,
  'groups do not know what was brought': `groups where master_group_id is not null and brought is null`,
  'replies do not know their thread': `comments where (parent_comment_id is null) <> (root_comment_id is null)`,
  'replies do not know their depth': `comments c join comments p on p.id = c.parent_comment_id where c.depth <> p.depth + 1`,
  'members have no default project': `users where default_project_id is null and not superadmin`,
  'free plans count as paid': `subscriptions where status <> 'free'`,
  'runs do not know their projects': `template_runs where finished_at < now() - interval '1 hour' and projects_total <> (select count(*) from template_outcomes o where o.run_id = template_runs.id)`,
  'dismissals do not know their key': `tour_dismissals where tour_key is null`,
})
  .map(([what, rows]) => `select '${what}' as what, count(*)::int as rows from ${rows}`)
  .join(' union all ');
