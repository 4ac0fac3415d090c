import { type RawBuilder, sql } from 'kysely';
import type { Role } from '../../../shared/user.ts';
import { allOf, type Db, live, queryOne, someOf } from '../../database/query.ts';
import { rolesFrom } from '../access/access.ts';
import { isShownRow } from '../event/visibility.ts';
import type { PersonalTable } from './personalData.ts';

/** `addresses` in lower case: those that they have confirmed, now or earlier. Others may be somebody else's. */
export type Person = { id: number; addresses: string[] };

/** What a person may read through the API at this moment. */
export type Reach = { superadmin: boolean; members: { project_id: number; role: Role }[] };

export const findReach = (db: Db, id: number): Promise<Reach> =>
  queryOne(
    db,
    sql<Reach>`
      select u.superadmin and u.is_active as superadmin, coalesce((
        select jsonb_agg(jsonb_build_object('project_id', m.project_id, 'role', m.role))
        from members m join projects p on p.id = m.project_id and p.is_active where m.user_id = u.id and u.is_active), '[]') as members
      from users u where u.id = ${id}`,
  );

/** Whether a row `t` that the person made is theirs, or one that they may read. What is in the trash can't be read. */
export function isSeen(table: string, listed: PersonalTable, person: Person, reach: Reach): RawBuilder<boolean> {
  const [needed] = listed.seen as [(Role | 'superadmin')?];
  if (!needed || reach.superadmin) return sql`true`;
  const ofAddress = isOfAddress(listed, 't', person);
  const conditions = allOf([
    needed === 'superadmin' ? sql`false` : isOfProjects(table, idsOf(reach, needed)),
    listed.other.includes('deletion_id') && live('t'),
    table === 'events' && isShownRow({ owned: new Set(idsOf(reach, 'owner')), userId: person.id }),
  ]);
  return sql`coalesce(${someOf([...ofAddress, sql`(${conditions})`])}, false)`;
}

/** Whether a row has an address of the person, for each column with one. */
export const isOfAddress = ({ address }: PersonalTable, alias: string, { addresses }: Person) =>
  address.map((column) => sql<boolean>`lower(${sql.ref(`${alias}.${column}`)}) = any(${addresses}::text[])`);

const idsOf = ({ members }: Reach, needed: Role) =>
  members.filter(({ role }) => rolesFrom(needed).includes(role)).map(({ project_id }) => project_id);

const isOfProjects = (table: string, ids: number[]) =>
  table === 'checkouts'
    ? sql`t.subscription_id in (select s.id from subscriptions s join projects p on p.platform_id = s.platform_id where p.id = any(${ids}::int[]))`
    : sql`t.project_id = any(${ids}::int[])`;

const TIMES = ['created_at', 'started_at', 'deleted_at', 'hold_until'];

/** What is left of a row that the person made and may not read: its key, its time, and that they made it. */
export function summaryOf({ key, by, other }: PersonalTable, alias: string, { id }: Person): RawBuilder<object> {
  const own = by.map((column) => {
    const value = sql.ref(`${alias}.${column}`);
    return sql`${sql.lit(column)}, case when ${value} = ${id}::int then ${value} end`;
  });
  const time = TIMES.find((name) => other.includes(name));
  const named = [...key, ...(time ? [time] : [])].map(
    (column) => sql`${sql.lit(column)}, ${sql.ref(`${alias}.${column}`)}`,
  );
  return sql`jsonb_strip_nulls(jsonb_build_object(${sql.join([...named, ...own])}))`;
}
