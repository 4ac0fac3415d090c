import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { procedures } from '../../server/api/procedures.ts';
import { type Db, insertRows, query } from '../../server/database/query.ts';
import type { NewRow, TableName } from '../../server/database/tables.ts';
import { scopesFor } from '../../server/domain/access/scopes.ts';
import { addLink } from '../../server/domain/mail/link.ts';
import { hashKeySecret, makeKeySecret } from '../../server/security/apiKeys.ts';
import type { Role } from '../../shared/user.ts';
import { makeCaller, type TestCaller } from './caller.ts';
import { type TestService, testDatabase, testService, tokens } from './service.ts';

/** Test data. Each function creates new rows, so that tests do not share any. */

export const PASSWORD = 'correct horse battery staple';
/** With the lowest cost that argon2id allows, so that hundreds of sign-ins are fast. */
const PASSWORD_HASH = '$argon2id$v=19$m=8,p=1,t=1$IV3MQ6gR1No8spGoZ7ydJg$gCm3Dp/UPfS9wOxLhQ3L2r1h5rwgFTCvGi5pKPwmsVg';

export const testDb = async (): Promise<Db> => (await testDatabase()).db;

type Id = { id: number };

/** Adds a row; returns its id, if it has one. */
export async function insert<Table extends TableName>(table: Table, row: NewRow<Table>): Promise<number> {
  const columns = sql.join(Object.keys(row).map((column) => sql.ref(column)));
  const values = sql.join(Object.values(row));
  const [added] = await query(
    await testDb(),
    sql<Id>`insert into ${sql.table(table)} as t (${columns}) values (${values}) returning to_json(t)->'id' as id`,
  );
  return added!.id;
}

export type TestProject = { id: number; platform_id: number };
export type TestUser = { id: number; email: string };
/** The outsider owns another project, of another platform. */
type Who = Role | 'outsider' | 'superadmin';
/** With an API key of the superadmin that has every scope. */
type Callers = Record<`as${Capitalize<Who | 'nobody' | 'key'>}`, TestCaller>;
export type World = Callers & { project: TestProject; otherProject: TestProject; users: Record<Who, TestUser> };

/** A project with a viewer, a member and an owner, and another project. One statement, since every test needs it. */
export async function givenWorld(service?: TestService): Promise<World> {
  const { url } = service ?? (await testService());
  const secret = makeKeySecret();
  const rows = await query(
    await testDb(),
    sql<{ who: Who; id: number; email: string; session_id: string; projects: [TestProject, TestProject] }>`
      with platform as (
        insert into platforms (name) values ('A platform'), ('A platform') returning id
      ), project as (
        insert into projects (platform_id, name) select id, 'A project' from platform order by id returning id, platform_id
      ), place as (
        select id, row_number() over (order by id) as number from project
      ), wanted (number, who, place) as (
        values (1, 'viewer', 1), (2, 'member', 1), (3, 'owner', 1), (4, 'outsider', 2), (5, 'superadmin', null)
      ), created as (
        insert into users (name, email, password_hash, superadmin, default_project_id)
        select 'A user', gen_random_uuid() || '@example.test', ${PASSWORD_HASH}, who = 'superadmin',
          (select id from place where number = coalesce(wanted.place, 1))
        from wanted order by number returning id, email
      ), person as (
        select created.*, wanted.who, wanted.place from (select *, row_number() over (order by id) as number from created) as created
        join wanted using (number)
      ), member as (
        insert into members (project_id, user_id, role)
        select place.id, person.id, case when who = 'outsider' then 'owner' else who end from person join place on place.number = person.place
      ), session as (
        insert into sessions (user_id, proven_at, expires_at) select id, now(), now() + interval '1 hour' from person returning id, user_id
      ), key as (
        insert into api_keys (user_id, name, scopes, names_grants, secret_hash, last_used_at)
        select id, 'A key', ${ALL_SCOPES}, true, ${hashKeySecret(secret)}, '2099-01-01' from person where who = 'superadmin'
      )
      select person.who, person.id, person.email, session.id as session_id, (select json_agg(project order by id) from project) as projects
      from person join session on session.user_id = person.id`,
  );
  const [project, otherProject] = rows[0]!.projects;
  const users = Object.fromEntries(rows.map(({ who, id, email }) => [who, { id, email }])) as World['users'];
  const callers = rows.map(({ who, id, session_id }) => [
    `as${who[0]!.toUpperCase()}${who.slice(1)}`,
    makeCaller(url, tokens.sign({ userId: id, sessionId: session_id })),
  ]);
  const others = { asNobody: makeCaller(url), asKey: makeCaller(url, secret) };
  return { project, otherProject, users, ...others, ...Object.fromEntries(callers) };
}

export async function givenProject({
  name = 'A project',
  tools = [] as string[],
  is_active = true,
} = {}): Promise<TestProject> {
  const platform_id = await insert('platforms', { name: 'A platform' });
  const id = await insert('projects', { platform_id, name, is_active });
  for (const tool_key of tools) await insert('project_tools', { project_id: id, tool_key });
  return { id, platform_id };
}

type UserState = Partial<NewRow<'users'>> & { project?: TestProject; role?: Role };

export async function givenUser({ project, role = 'member', ...state }: UserState = {}): Promise<TestUser> {
  const row = { name: 'A user', email: `${randomUUID()}@example.test`, password_hash: PASSWORD_HASH, ...state };
  const user = { id: await insert('users', row), email: row.email };
  if (project) await givenMember(user, project, role);
  return user;
}

/** A user that calls with keys alone. */
export const givenServiceAccount = (state: UserState = {}) =>
  givenUser({ kind: 'service', password_hash: null, ...state });

export type KeyState = Partial<NewRow<'api_keys'>>;

/** A key with its secret; it has every scope, unless the state says otherwise. */
export async function givenKey(
  { id: user_id }: TestUser,
  state: KeyState = {},
): Promise<{ id: number; secret: string }> {
  const secret = makeKeySecret();
  const made = { name: 'A key', scopes: ALL_SCOPES, names_grants: true, secret_hash: hashKeySecret(secret) };
  const row = { user_id, ...made, ...state };
  return { id: await insert('api_keys', row), secret };
}

export const ALL_SCOPES = [...new Set(procedures.flatMap((procedure) => scopesFor(procedure) ?? []))];

export async function givenMember(user: TestUser, project: TestProject, role: Role): Promise<void> {
  await insert('members', { project_id: project.id, user_id: user.id, role });
}

type SessionState = Partial<NewRow<'sessions'>>;

/** A token of a user who has just given their password, unless the state says otherwise. */
export async function givenToken(user: TestUser, state: SessionState = {}): Promise<string> {
  const times = { proven_at: new Date(), expires_at: new Date(Date.now() + 3_600_000) };
  const sessionId = await insert('sessions', { user_id: user.id, ...times, ...state });
  return tokens.sign({ userId: user.id, sessionId: String(sessionId) });
}

export const givenInvitation = (project: TestProject, { email }: { email: string }, state: object = {}) =>
  insert('invitations', { project_id: project.id, email, role: 'member', ...state });

/** The secret of the link in a mail that was sent. */
export async function givenLink(mail: NewRow<'mails'>, validSeconds = 1800): Promise<string> {
  return addLink(await testDb(), await insert('mails', { state: 'sent', ...mail }), validSeconds);
}

/** Before all events. */
export const givenWebhook = (project: TestProject, state: object = {}) =>
  insert('webhooks', {
    project_id: project.id,
    url: 'https://example.com/hook',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    after_transaction: '0',
    after_event: '0',
    ...state,
  });

const ownedBy = ({ id: project_id, platform_id }: TestProject) => ({ project_id, platform_id });

export const givenBoard = (project: TestProject, state: object = {}) =>
  insert('boards', { ...ownedBy(project), title: 'A board', ...state });

export const givenGroup = (project: TestProject, board_id: number, state: object = {}) =>
  insert('groups', { ...ownedBy(project), board_id, title: 'A group', ...state });

export const givenCard = (project: TestProject, state: object = {}) =>
  insert('cards', { ...ownedBy(project), title: 'A card', ...state });

export const givenTag = ({ id: project_id }: TestProject, state: object = {}) =>
  insert('tags', { project_id, name: 'A tag', ...state });

export const givenComment = (project: TestProject, card_id: number, user: TestUser, state: object = {}) =>
  insert('comments', { project_id: project.id, card_id, user_id: user.id, comment: 'A comment', ...state });

/** For templates, which belong to no project. */
export const NOWHERE = { id: null, platform_id: null } as unknown as TestProject;

/** A master board with a group and a card in it. */
export async function givenMasterBoard(states: { board?: object; group?: object; card?: object } = {}) {
  const is_master = true;
  const board = await givenBoard(NOWHERE, { is_master, tool_key: 'nobody-has-this', ...states.board });
  const group = await givenGroup(NOWHERE, board, { is_master, ...states.group });
  return { board, group, card: await givenCard(NOWHERE, { is_master, group_id: group, ...states.card }) };
}

/** Reads a row. */
export async function stored(table: string, id: number): Promise<any> {
  const [row] = await query(await testDb(), sql`select * from ${sql.table(table)} where id = ${id}`);
  return row;
}

/** A new product: a plan with a price for a month and a year, and one that is free for a month. */
export async function givenProduct(): Promise<string> {
  const product = `product-${randomUUID()}`;
  await insertRows(await testDb(), 'plans', [
    { product, plan: 'free', period: 'month', price_cents: 0 },
    { product, plan: 'pro', period: 'month', price_cents: 1900 },
    { product, plan: 'pro', period: 'year', price_cents: 19_000 },
  ]);
  return product;
}

/** A trial that ends in an hour, unless the state says otherwise. */
export async function givenTrial({ platform_id }: TestProject, state: object = {}) {
  const product = await givenProduct();
  const trial_ends_at = new Date(Date.now() + 3_600_000);
  const id = await insert('subscriptions', { platform_id, product, status: 'trial', trial_ends_at, ...state });
  return { id, product };
}

export const givenTheme = ({ platform_id }: TestProject) => insert('themes', { platform_id, name: 'A theme' });

/** Approved and published, unless the state says otherwise. */
export async function givenThemeVersion(project: TestProject, state: object = {}): Promise<number> {
  const theme_id = await givenTheme(project);
  const published = { approval_status: 'approved', theme_status: 'published', published_at: new Date() } as const;
  return insert('theme_versions', { theme_id, version: randomUUID(), ...published, ...state });
}
