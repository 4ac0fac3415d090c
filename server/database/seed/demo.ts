import { sql } from 'kysely';
import { hashPassword } from '../../security/passwords.ts';
import { hashRecoveryCode } from '../../security/secondFactor.ts';
import type { Database } from '../connect.ts';
import { entities } from '../entities.ts';
import { type Db, insertRows, query, queryOne, someOf } from '../query.ts';
import type { NewRow, Row, RowChanges, TableName } from '../tables.ts';
import { DEMO_USER, type DemoName, emailOf } from './demoUsers.ts';

/** Fills an empty database with demo data; returns false, without changes, if any table has rows. */
export async function fillWithDemoData({ db }: Database): Promise<boolean> {
  // Before the lock, which would stop the writers of a database in use.
  if (await hasRows(db)) return false;
  return db.transaction().execute(async (db) => {
    await query(db, sql`lock table ${sql.join(TABLES)} in share row exclusive mode`);
    if (await hasRows(db)) return false;

    await addTenants(db);
    await addOnboardingTemplate(db);
    await addRelease(db);
    await addLaunchPlan(db);
    await addBilling(db);
    await addThemes(db);
    await continueIds(db);
    return true;
  });
}

const TABLES = entities.map(({ meta }) => sql.table(meta.tableName));

async function hasRows(db: Db): Promise<boolean> {
  const found = TABLES.map((table) => sql`exists (select from ${table})`);
  return (await queryOne(db, sql<{ hasRows: boolean }>`select ${someOf(found)} as "hasRows"`)).hasRows;
}

/** Platforms, projects and people, without boards. */
export async function addTenants(db: Db) {
  const password_hash = await hashPassword(DEMO_USER.password, 'demo data');
  const user = (id: number, name: DemoName, more: RowChanges<'users'>): NewRow<'users'> => ({
    id,
    name,
    email: emailOf(name),
    password_hash,
    ...more,
  });

  await insertRows(db, 'platforms', [
    { id: 1, name: 'Harbor Studio' },
    { id: 2, name: 'Northwind' },
  ]);
  await insertRows(db, 'projects', [
    { id: 1, platform_id: 1, name: 'Harbor Website' },
    { id: 2, platform_id: 1, name: 'Harbor Shop' },
    { id: 3, platform_id: 2, name: 'Northwind Blog' },
  ]);
  await insertRows(db, 'project_tools', [
    { project_id: 1, tool_key: 'onboarding' },
    { project_id: 1, tool_key: 'seo' },
    { project_id: 2, tool_key: 'onboarding' },
  ]);
  await insertRows(db, 'users', [
    user(1, 'Admin', { superadmin: true, superadmin_billing: true, default_project_id: 1 }),
    user(2, 'Owner', { default_project_id: 1 }),
    user(3, 'Member', { default_project_id: 1, language: 'en' }),
    user(4, 'Viewer', { default_project_id: 1 }),
    user(5, 'Outsider', { default_project_id: 3 }),
    user(6, 'Otp', { default_project_id: 1, totp_secret: 'JBSWY3DPEHPK3PXP' }),
  ]);
  await insertRows(
    db,
    'recovery_codes',
    Array.from({ length: 8 }, (_, index) => ({
      user_id: 6,
      code_hash: hashRecoveryCode(`demo-recovery-${index + 1}`),
    })),
  );
  await insertRows(db, 'members', [
    { project_id: 1, user_id: 2, role: 'owner' },
    { project_id: 2, user_id: 2, role: 'owner' },
    { project_id: 1, user_id: 3, role: 'member' },
    { project_id: 1, user_id: 4, role: 'viewer' },
    { project_id: 3, user_id: 5, role: 'owner' },
    { project_id: 1, user_id: 6, role: 'member' },
  ]);
}

/** A master board, and the copies that a sync made in the projects with its tool. */
async function addOnboardingTemplate(db: Db) {
  const board = {
    title: 'Onboarding',
    description: 'First steps for every new project.',
    tool_key: 'onboarding',
    position: 1,
    created_by: 1,
  };
  const groups = [
    { title: 'Get started', position: 1, created_by: 1 },
    { title: 'Go further', position: 2, created_by: 1 },
  ];
  const cards = [
    { group: 0, title: 'Look around', tour_key: 'welcome', description: '<p>Open each part of the project once.</p>' },
    { group: 0, title: 'Invite your team', tour_key: 'team', description: '<p>Work is more fun together.</p>' },
    { group: 0, title: 'Connect your domain', evaluation_check: 'domain_connected' },
    { group: 1, title: 'Choose a theme', short_description: 'Something that fits you.' },
    { group: 1, title: 'Publish the first page', evaluation_check: 'page_published' },
  ];

  const tenants = [undefined, { project_id: 1, platform_id: 1 }, { project_id: 2, platform_id: 1 }];
  for (const [round, tenant] of tenants.entries()) {
    const copyOf = (column: keyof Row<'boards'> | keyof Row<'groups'> | keyof Row<'cards'>, id: number) =>
      tenant ? { ...tenant, [column]: id } : { is_master: true };
    const syncedValues = (content: object) => (tenant ? { brought: { ...content, is_active: true } } : {});
    const boardId = tenant ? round + 2 : 1;
    const firstGroup = round * groups.length + 1;
    const firstCard = round * cards.length + 1;

    await insertRows(db, 'boards', [
      { id: boardId, ...board, ...copyOf('master_board_id', 1), ...syncedValues(board) },
    ]);
    await insertRows(
      db,
      'groups',
      groups.map((group, at) => ({
        id: firstGroup + at,
        board_id: boardId,
        ...group,
        ...copyOf('master_group_id', at + 1),
        ...syncedValues(group),
      })),
    );
    await insertRows(
      db,
      'cards',
      cards.map(({ group, ...card }, at) => ({
        id: firstCard + at,
        group_id: firstGroup + group,
        position: at + 1,
        sort_order: at + 1,
        unique_identifier: `onboarding-${at + 1}`,
        created_by: 1,
        ...card,
        ...copyOf('master_card_id', at + 1),
      })),
    );
  }
}

/** The release that the copies above came from: the master board as it is, as `publish` in release.ts stores it. */
async function addRelease(db: Db) {
  await query(
    db,
    sql`
      insert into template_rows (id, board_id, group_id, card_id, digest, content)
      select row_number() over (order by board_id, group_id, card_id), board_id, group_id, card_id, md5(content::text), content
      from (
        select id as board_id, null::int as group_id, null::int as card_id, jsonb_build_object(
          'title', title, 'description', description, 'tool_key', tool_key, 'is_active', is_active) as content
        from boards where is_master
        union all
        select null, id, null, jsonb_build_object(
          'title', title, 'description', description, 'type', type, 'color', color, 'icon', icon, 'is_active', is_active,
          'is_collapsed', is_collapsed, 'position', position)
        from groups where is_master
        union all
        select null, null, id, jsonb_build_object(
          'title', title, 'short_description', short_description, 'description', description, 'evaluation_check', evaluation_check,
          'tour_key', tour_key, 'is_active', is_active, 'status', status, 'priority', priority)
        from cards where is_master
      ) as masters`,
  );
  await insertRows(db, 'releases', [{ id: 1, board_id: 1, number: 1, note: 'The first steps.', user_id: 1 }]);
  await query(
    db,
    sql`
      insert into release_rows (release_id, row_id, parent_id, position)
      select 1, r.id, coalesce(g.board_id, c.group_id), coalesce(b.position, g.position, c.position) from template_rows r
      left join boards b on b.id = r.board_id left join groups g on g.id = r.group_id left join cards c on c.id = r.card_id`,
  );
  await insertRows(db, 'project_templates', [
    { project_id: 1, board_id: 1, release_id: 1 },
    { project_id: 2, board_id: 1, release_id: 1 },
  ]);
  await query(db, sql`update cards c set base_id = r.id from template_rows r where r.card_id = c.master_card_id`);
}

async function addLaunchPlan(db: Db) {
  const tenant = { project_id: 1, platform_id: 1, created_by: 2 };
  const day = (offset: number) => new Date(Date.now() + offset * 24 * 60 * 60 * 1000);

  await insertRows(db, 'boards', [{ id: 2, ...tenant, title: 'Launch plan', tool_key: 'seo', position: 2 }]);
  await insertRows(
    db,
    'groups',
    ['To do', 'In progress', 'Done'].map((title, at) => ({
      id: 7 + at,
      ...tenant,
      board_id: 2,
      title,
      position: at + 1,
    })),
  );
  await insertRows(db, 'tags', [
    { id: 1, project_id: 1, name: 'Content', color: '#0b6e99', icon: 'pen', position: 1, created_by: 2 },
    { id: 2, project_id: 1, name: 'Technical', color: '#8a4baf', icon: 'wrench', position: 2, created_by: 2 },
  ]);
  const cards = [
    {
      group_id: 7,
      title: 'Write the launch post',
      tag_id: 1,
      owner_id: 3,
      due_date: day(7),
      priority: 'high' as const,
    },
    { group_id: 7, title: 'Collect keywords', tag_id: 1 },
    { group_id: 7, title: 'Add a sitemap', tag_id: 2 },
    { group_id: 8, title: 'Describe every picture', tag_id: 1, owner_id: 3, status: 'in_progress' },
    {
      group_id: 8,
      title: 'Make the start page faster',
      tag_id: 2,
      owner_id: 2,
      status: 'in_progress',
      due_date: day(-1),
      priority: 'urgent' as const,
    },
    { group_id: 8, title: 'Check links', tag_id: 2, status: 'to_check' },
    { group_id: 9, title: 'Choose a domain', owner_id: 2, status: 'closed' },
    { group_id: 9, title: 'Draw the logo', status: 'closed', priority: 'low' as const },
  ];
  const COPIED_CARDS = 5;
  await insertRows(
    db,
    'cards',
    cards.map((card, at) => {
      const position = cards.slice(0, at).filter(({ group_id }) => group_id === card.group_id).length + 1;
      return {
        id: 16 + at,
        ...tenant,
        ...card,
        unique_identifier: `launch-${at + 1}`,
        position,
        sort_order: COPIED_CARDS + at + 1,
      };
    }),
  );
  await insertRows(db, 'comments', [
    { id: 1, project_id: 1, card_id: 16, user_id: 3, comment: 'A first draft is ready. Who reads it?' },
    { id: 2, project_id: 1, card_id: 16, user_id: 2, parent_comment_id: 1, comment: 'I do, tomorrow morning.' },
    {
      id: 3,
      project_id: 1,
      card_id: 20,
      user_id: 2,
      comment: 'The pictures are the slow part.',
      is_read: true,
      read_at: day(0),
    },
  ]);
}

async function addBilling(db: Db) {
  const prices = { starter: [0, 0], pro: [1900, 19_000], business: [4900, 49_000] };
  await insertRows(
    db,
    'plans',
    Object.entries(prices).flatMap(([plan, [month, year]], at) => [
      { id: at * 2 + 1, product: 'websites', plan, period: 'month' as const, price_cents: month! },
      { id: at * 2 + 2, product: 'websites', plan, period: 'year' as const, price_cents: year! },
    ]),
  );
  const week = 7 * 24 * 60 * 60 * 1000;
  await insertRows(db, 'subscriptions', [
    { id: 1, platform_id: 1, product: 'websites', status: 'trial', trial_ends_at: new Date(Date.now() + 2 * week) },
    { id: 2, platform_id: 2, product: 'websites', status: 'trial', trial_ends_at: new Date(Date.now() - week) },
  ]);
}

async function addThemes(db: Db) {
  await insertRows(db, 'themes', [
    { id: 1, platform_id: 1, name: 'Breakwater' },
    { id: 2, platform_id: 2, name: 'Compass' },
  ]);
  await insertRows(db, 'theme_versions', [
    {
      id: 1,
      theme_id: 1,
      version: '1.0.0',
      approval_status: 'approved',
      theme_status: 'published',
      published_at: new Date(),
    },
    { id: 2, theme_id: 1, version: '1.1.0', approval_status: 'pending', theme_status: 'draft' },
    { id: 3, theme_id: 1, version: '1.2.0', approval_status: 'rejected', theme_status: 'draft' },
    {
      id: 4,
      theme_id: 2,
      version: '2.0.0',
      approval_status: 'approved',
      theme_status: 'published',
      published_at: new Date(),
    },
  ]);
}

/** The rows above have fixed ids: sets the sequences after them. */
export async function continueIds(db: Db) {
  const tables = [
    'platforms',
    'projects',
    'users',
    'boards',
    'groups',
    'cards',
    'template_rows',
    'releases',
    'tags',
    'comments',
    'plans',
    'subscriptions',
    'themes',
    'theme_versions',
  ] satisfies TableName[];
  for (const table of tables) {
    await query(
      db,
      sql`select setval(pg_get_serial_sequence(${table}, 'id'), (select max(id) from ${sql.table(table)}))`,
    );
  }
}
