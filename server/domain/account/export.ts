import { sql } from 'kysely';
import type { ExportGet } from '../../../shared/erasure.ts';
import { badRequest, invalid } from '../../../shared/errors.ts';
import { type Db, query, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import type { AccountContext } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';
import { callForAccountWork } from './accountCall.ts';
import { PERSONAL_DATA } from './personalData.ts';
import { rowsAbout, stillSeen } from './personalRows.ts';
import type { Person } from './reach.ts';
import { lockUser } from './user.ts';

const MOST_EXPORTS_A_DAY = 3;

/** Asks for all rows about the caller, which a process collects; earlier ones are removed. Returns the one that waits, if there is. */
export async function startExport(context: AccountContext) {
  const { id } = context.caller;
  return transact(context.db, async (db) => {
    // One at a time for each user, so that the count is right.
    await lockUser(db, id);
    const recent = await db
      .selectFrom('exports')
      .select('state')
      .where('user_id', '=', id)
      .where('created_at', '>', sql<Date>`now() - interval '1 day'`)
      .execute();
    if (recent.some(({ state }) => state === 'waiting')) return { state: 'waiting' as const };
    if (recent.length >= MOST_EXPORTS_A_DAY)
      throw badRequest(`There are at most ${MOST_EXPORTS_A_DAY} exports a day. Fetch the last one.`, 'place_full');
    await query(
      db,
      sql`delete from export_parts where export_id = any(array(select id from exports where user_id = ${id}))`,
    );
    await db.insertInto('exports').values({ user_id: id }).execute();
    callForAccountWork();
    await writeEvents({ ...context, db }, [{ type: 'export.started', data: { user_id: id } }]);
    return { state: 'waiting' as const };
  });
}

/** A part of the last export of the caller. */
export async function getExport({ db, caller }: AccountContext, { part }: ExportGet) {
  const [found] = await query(
    db,
    sql<{ state: 'waiting' | 'ready' | 'failed'; expires_at: Date | null; parts: number; data: string | null }>`
      select e.state, e.expires_at, case when e.state = 'ready' then (select count(*)::int from export_parts p where p.export_id = e.id) else 0 end as parts,
        (select p.data from export_parts p where p.export_id = e.id and p.number = ${part ?? 1} and e.state = 'ready') as data
      from exports e where e.user_id = ${caller.id} and (e.expires_at is null or e.expires_at > now()) order by e.id desc limit 1`,
  );
  if (!found) return { state: 'none' as const, parts: 0, expires_at: null, rows: [] };
  const { data, ...rest } = found;
  if (rest.state === 'ready' && data === null) throw invalid({ part: `must be from 1 to ${rest.parts}` });
  const rows = data === null ? [] : await stillSeen(db, JSON.parse(data), await findPerson(db, caller.id));
  return { ...rest, rows };
}

/** An address that nobody confirmed may be somebody else's, and so may the mails and invitations to it. */
async function findPerson(db: Db, id: number): Promise<Person> {
  const confirmed = sql<{ email: string }>`
    select lower(email) as email from users where id = ${id} and email_confirmed_at is not null`;
  return { id, addresses: (await query(db, confirmed)).map(({ email }) => email) };
}

/** A killed process is noticed after this time; a working one renews its lease with each part. */
const LEASE = sql`interval '2 minutes'`;
const MOST_ATTEMPTS = 3;
/** An answer has room for 8 MiB, one of an assistant for 1 MiB. */
const PART_BYTES = 500_000;

export const HAS_WAITING_EXPORT = sql`exists (
  select from exports where state = 'waiting' and (leased_until is null or leased_until < now()))`;

/** Makes one export that waits, or whose process was killed. */
export async function makeExport(db: Db): Promise<void> {
  const [claimed] = await query(
    db,
    sql<Claimed>`
      update exports set leased_until = now() + ${LEASE}, attempts = attempts + 1,
        state = case when attempts < ${sql.lit(MOST_ATTEMPTS)} then 'waiting' else 'failed' end,
        expires_at = case when attempts < ${sql.lit(MOST_ATTEMPTS)} then null else now() + interval '1 day' end
      where id = (select id from exports where state = 'waiting' and (leased_until is null or leased_until < now())
        order by id limit 1 for update skip locked)
      returning id, user_id, attempts, state`,
  );
  if (!claimed || claimed.state === 'failed') return;
  await query(db, sql`delete from export_parts where export_id = ${claimed.id}`);
  let number = 0;
  for await (const data of partsAbout(db, claimed.user_id)) {
    number += 1;
    if (!(await addPart(db, claimed, number, data))) return;
  }
  await query(
    db,
    sql`
      update exports set state = 'ready', leased_until = null, expires_at = now() + interval '1 day'
      where id = ${claimed.id} and attempts = ${claimed.attempts} and state = 'waiting'`,
  );
}

type Claimed = { id: number; user_id: number; attempts: number; state: string };

/** False if another process has begun it again, or the person was erased. */
async function addPart(db: Db, { id, attempts }: Claimed, number: number, data: string): Promise<boolean> {
  const added = await query(
    db,
    sql`
      with held as (
        update exports set leased_until = now() + ${LEASE} where id = ${id} and attempts = ${attempts} and state = 'waiting' returning id
      )
      insert into export_parts (export_id, number, data) select id, ${number}::int, ${data}::text from held returning number`,
  );
  return added.length > 0;
}

/** Texts of JSON arrays, about as long as a part may be. */
async function* partsAbout(db: Db, user_id: number): AsyncGenerator<string> {
  const person = await findPerson(db, user_id);
  let rows: string[] = [];
  let bytes = 0;
  for (const table of Object.keys(PERSONAL_DATA)) {
    for await (const page of rowsAbout(db, table, person)) {
      for (const row of page) {
        const text = JSON.stringify({ table, row });
        if (bytes > 0 && bytes + text.length > PART_BYTES) {
          yield `[${rows.join()}]`;
          rows = [];
          bytes = 0;
        }
        rows.push(text);
        bytes += text.length;
      }
    }
  }
  yield `[${rows.join()}]`;
}

export const EXPORT_REMOVAL: Removal = { table: 'exports', due: (now) => sql`t.expires_at < ${now}`, by: 'expires_at' };
