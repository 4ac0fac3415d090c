import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { sql } from 'kysely';
import { hasDemoData, type Settings } from '../../runtime/env.ts';
import { isForThisMachine, isLoopback } from '../../runtime/host.ts';
import type { Announce, Log } from '../../runtime/log.ts';
import { startFailure } from '../../runtime/startFailure.ts';
import { hashPassword } from '../../security/passwords.ts';
import { writePrivateFile } from '../../security/privateFile.ts';
import type { Database } from '../connect.ts';
import { isInMemory } from '../embedded/location.ts';
import { type Db, query } from '../query.ts';
import { DEMO_USER, DEMO_USERS, findDemoUsers, hasDemoPassword } from './demoUsers.ts';

const FIRST_ADMIN = 'admin@deckhand.local';
const ADMIN = { name: 'Admin', superadmin: true, superadmin_billing: true };

export const randomPassword = () => randomBytes(18).toString('base64url');

/** The first superadmin; only a hash of the password is kept. */
export type FirstAdmin = { id: number; email: string; password: string };

/**
 * Adds the first users to an embedded database. One without any rows gets the demo data, whose password is public, if nobody else
 * reaches this machine or with DEMO_DATA=on. One that has no users after that gets a superadmin with a random password.
 */
export async function addFirstUsers(
  database: Database,
  settings: Settings,
  announce: Announce,
  log: Pick<Log, 'warn'>,
): Promise<{ demoUser: typeof DEMO_USER | undefined; firstAdmin: FirstAdmin | undefined }> {
  const isDemo = hasDemoData(settings);
  if (isDemo) await addDemoData(database);
  else if (settings.DEMO_DATA === false || !isLoopback(settings.HOST))
    await refuseDemoPasswords(database, settings.HOST);

  const tell = (admin: FirstAdmin) => tellPassword(admin, settings.DATA_DIR, announce);
  const firstAdmin = (await hasUsers(database.db)) ? undefined : await addFirstAdmin(database, tell);
  await warnOfDemoPasswords(database, settings, log);
  const [demoUser] = isDemo ? await findDemoUsers(database.db, [DEMO_USER.email]) : [];
  return { demoUser: demoUser && DEMO_USER, firstAdmin };
}

/** Most starts find users, and don't load the demo data. */
async function addDemoData(database: Database): Promise<void> {
  if (await hasUsers(database.db)) return;
  const { fillWithDemoData } = await import('./demo.ts');
  await fillWithDemoData(database);
}

/** A database that was used on loopback before may still have the demo users. */
async function refuseDemoPasswords({ db }: Database, host: string): Promise<void> {
  const emails = await findDemoPasswords(db);
  if (emails.length === 0) return;
  throw startFailure(
    `HOST: on ${host} anybody could sign in as ${emails.join(', ')}, since the demo password is public. Lock them (npx deckhand database lock-demo-users), choose another DATA_DIR, or set DEMO_DATA=on to let everybody in.`,
  );
}

/** On a server users and demo data are added by commands, so that the start only warns. */
export async function warnOfUsers(database: Database, settings: Settings, log: Log): Promise<void> {
  if (!(await hasUsers(database.db))) {
    log.warn(
      'There are no users yet. Create the first superadmin: npx deckhand users create --name NAME --email EMAIL --superadmin --superadmin-billing',
    );
  }
  await warnOfDemoPasswords(database, settings, log);
}

async function warnOfDemoPasswords({ db }: Database, settings: Settings, log: Pick<Log, 'warn'>): Promise<void> {
  const emails = isForThisMachine(settings) ? [] : await findDemoPasswords(db);
  if (emails.length === 0) return;
  log.warn(
    `Anybody who reaches ${settings.PUBLIC_URL ?? settings.HOST} can sign in as ${emails.join(', ')}, since the demo password is public. Lock them: npx deckhand database lock-demo-users.`,
  );
}

/** The e-mail addresses of active users who have the demo password. */
export async function findDemoPasswords(db: Db): Promise<string[]> {
  const users = await findDemoUsers(db, DEMO_USERS);
  const found: string[] = [];
  // Demo users share one hash, so it is verified once instead of six times.
  for (const [hash, others] of Map.groupBy(users, ({ password_hash }) => password_hash)) {
    if (await hasDemoPassword(hash ?? undefined)) found.push(...others.map(({ email }) => email));
  }
  return found;
}

/** The demo users who are to be locked, and the superadmin that was made since there would be none without them. */
export async function replaceDemoUsers(database: Database, tell: (admin: FirstAdmin) => Promise<void>) {
  const emails = await findDemoPasswords(database.db);
  const users = await query(
    database.db,
    sql<{ id: number; email: string }>`select id, email from users where lower(email) = any(${emails}) order by id`,
  );
  const others = sql`
    select from users
    where superadmin and is_active and password_hash is not null and lower(email) <> all(${emails}) limit 1`;
  const isNeeded = users.length > 0 && (await query(database.db, others)).length === 0;
  return { users, admin: isNeeded ? await addFirstAdmin(database, tell) : undefined };
}

/** Tells the password before the commit: an interrupted start leaves no user whose password nobody knows. */
async function addFirstAdmin({ db }: Database, tell: (admin: FirstAdmin) => Promise<void>): Promise<FirstAdmin> {
  const password = randomPassword();
  const password_hash = await hashPassword(password, 'start');
  return db.transaction().execute(async (db) => {
    const email = await freeAddress(db);
    const { id } = await db
      .insertInto('users')
      // Nobody has confirmed this address: a provider that vouches for it does not become this user.
      .values({ ...ADMIN, email, password_hash, email_confirmed_at: null })
      .returning('id')
      .executeTakeFirstOrThrow();
    const admin = { id, email, password };
    await tell(admin);
    return admin;
  });
}

/** The first superadmin of before may be deactivated, and keep the address. */
async function freeAddress(db: Db): Promise<string> {
  for (let number = 1; ; number++) {
    const email = number === 1 ? FIRST_ADMIN : FIRST_ADMIN.replace('@', `-${number}@`);
    const taken = await query(db, sql`select from users where lower(email) = ${email}`);
    if (taken.length === 0) return email;
  }
}

const hasUsers = async (db: Db) =>
  (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined;

/** On a terminal the password is shown once. A log is kept and read by others: there it is in a file that only its owner reads. */
async function tellPassword({ id, email, password }: FirstAdmin, directory: string, announce: Announce): Promise<void> {
  const credentials = `  e-mail    ${email}\n  password  ${password}\n`;
  const ifLost = `If it is lost, stop the service and set another: npx deckhand users update --id ${id} --password`;
  if (announce.isOnTerminal) {
    const text = `
The first superadmin. The password is shown this once and kept nowhere: note it, sign in and change it.
${credentials}${ifLost}`;
    return announce({ text, message: '' });
  }
  if (isInMemory(directory)) return;

  const file = resolve(directory, 'first-superadmin');
  await writePrivateFile(
    file,
    `The first superadmin. Sign in, change the password, and delete this file.\n${credentials}${ifLost}\n`,
  );
  const message = `The first superadmin is ${email}. The password is in ${file}: sign in, change it, and delete the file.`;
  announce({ text: message, message, fields: { email, file } });
}
