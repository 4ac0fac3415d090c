import { sql } from 'kysely';
import type { z } from 'zod';
import type { User, UserCreate, UserList, UserUpdate } from '../../shared/user.ts';
import type { Provisioning } from '../context.ts';
import { type Db, orRefuse, query, transact } from '../database/query.ts';
import { invalid, notFound } from '../errors.ts';
import { refusePassword } from '../security/commonPasswords.ts';
import { hashPassword } from '../security/passwords.ts';
import { NO_FAILURES } from './code.ts';
import { readCursor, toPage } from './page.ts';
import { assignments, unlessNull } from './row.ts';

export type UserRow = z.input<typeof User>;

/** What superadmins see of a user `u`. */
export const USER_COLUMNS = sql`u.id, u.name, u.email, u.language, u.superadmin, u.superadmin_billing, u.enable_ai, u.is_active,
  u.default_project_id, u.totp_secret is not null as has_second_factor, u.created_at, u.updated_at`;

const unknownUser = () => notFound('There is no such user.');

const REFUSALS = {
  users_email_unique: () => invalid({ email: 'belongs to another user' }),
  users_default_project_id_foreign: () => invalid({ default_project_id: 'names no project' }),
};

export async function createUser({ db, address }: Provisioning, { password, ...fields }: UserCreate) {
  mustBeGoodPassword('password', password, fields);
  const user = { ...unlessNull(fields), password_hash: await hashPassword(password, address) };
  const inserted = query(
    db,
    sql<UserRow>`
      insert into users as u (${sql.join(Object.keys(user).map((column) => sql.ref(column)))})
      values (${sql.join(Object.values(user))}) returning ${USER_COLUMNS}`,
  );
  const [created] = await orRefuse(inserted, REFUSALS);
  return { user: created! };
}

/** Changes what was sent of a user. Whoever gets another password, or is deactivated, is signed out everywhere. */
export async function updateUser(
  { db, address }: Provisioning,
  { id, password, language, default_project_id, ...fields }: UserUpdate,
) {
  const password_hash = password == null ? undefined : await hashPassword(password, address);
  const changes = { ...unlessNull(fields), language, default_project_id, password_hash };

  return transact(db, async (db) => {
    const updated = query(
      db,
      sql<UserRow>`update users as u set ${assignments(changes)} where u.id = ${id} returning ${USER_COLUMNS}`,
    );
    const [user] = await orRefuse(updated, REFUSALS);
    if (!user) throw unknownUser();
    if (password != null) mustBeGoodPassword('password', password, user);
    if (password_hash !== undefined || fields.is_active === false) await endSessions(db, id);
    // Whoever guessed codes knew the old password.
    if (password_hash !== undefined) await query(db, sql`update users set ${NO_FAILURES} where id = ${id}`);
    return { user };
  });
}

/** Refuses what is easily guessed, for the field that it was sent in. */
export function mustBeGoodPassword(field: string, password: string, user: { email: string; name: string }): void {
  const reason = refusePassword(password, user);
  if (reason) throw invalid({ [field]: reason });
}

/** Users in the order in which they were created. */
export async function listUsers({ db }: Provisioning, { search, cursor, limit }: UserList) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    db,
    sql<UserRow>`
      select ${USER_COLUMNS} from users u
      where u.id > ${after} and (${search ?? null}::text is null
        or position(lower(${search ?? ''}) in lower(u.name)) > 0 or position(lower(${search ?? ''}) in lower(u.email)) > 0)
      order by u.id limit ${limit + 1}`,
  );
  const { rows: users, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { users, next_cursor };
}

/** Signs a user out everywhere. */
export async function signOutUser({ db }: Provisioning, { id }: { id: number }): Promise<void> {
  await mustExist(db, id);
  await endSessions(db, id);
}

/** For a user who has lost the second factor and the recovery codes. */
export async function dropSecondFactorOf({ db }: Provisioning, { id }: { id: number }): Promise<void> {
  await mustExist(db, id);
  await removeSecondFactor(db, id);
}

/** Whatever stands on these sessions is over with the next request: tokens, and devices that are remembered. */
export async function endSessions(db: Db, userId: number): Promise<void> {
  await query(db, sql`update sessions set revoked_at = now() where user_id = ${userId} and revoked_at is null`);
}

/** Takes the second factor off an account. */
export async function removeSecondFactor(db: Db, userId: number): Promise<void> {
  await transact(db, async (db) => {
    await query(
      db,
      sql`update users set totp_secret = null, totp_pending_secret = null, ${NO_FAILURES}, updated_at = now() where id = ${userId}`,
    );
    await query(db, sql`delete from recovery_codes where user_id = ${userId}`);
    await forgetDevices(db, userId);
  });
}

/** A device that was remembered for another second factor is asked for a code of the new one. */
export async function forgetDevices(db: Db, userId: number): Promise<void> {
  await query(db, sql`update sessions set second_factor_at = null where user_id = ${userId}`);
}

async function mustExist(db: Db, id: number): Promise<void> {
  const found = await query(db, sql`select from users where id = ${id}`);
  if (found.length === 0) throw unknownUser();
}
