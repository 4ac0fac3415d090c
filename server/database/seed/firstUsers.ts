import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import type { Settings } from '../../runtime/env.ts';
import { isLoopback } from '../../runtime/host.ts';
import type { Announce, Log } from '../../runtime/log.ts';
import { startFailure } from '../../runtime/startFailure.ts';
import { hashPassword } from '../../security/passwords.ts';
import { writePrivateFile } from '../../security/privateFile.ts';
import type { Database } from '../connect.ts';
import { isInMemory } from '../embedded/location.ts';
import type { Db } from '../query.ts';
import { DEMO_USER, DEMO_USERS, findDemoUsers, hasDemoPassword } from './demoUsers.ts';

const FIRST_ADMIN = 'admin@deckhand.local';

/** The first superadmin; only a hash of the password is kept. */
export type FirstAdmin = { id: number; email: string; password: string };

/**
 * Adds the first users to an embedded database. One without any rows gets the demo data, whose password is public, on loopback or
 * with DEMO_DATA=on. One that has no users after that gets a superadmin with a random password.
 */
export async function addFirstUsers(
  database: Database,
  { HOST, DATA_DIR, DEMO_DATA = isLoopback(HOST) }: Settings,
  announce: Announce,
): Promise<{ demoUser: typeof DEMO_USER | undefined; firstAdmin: FirstAdmin | undefined }> {
  if (DEMO_DATA) await addDemoData(database);
  else await refuseDemoPasswords(database, HOST);

  const firstAdmin = await addFirstAdmin(database, (admin) => tellPassword(admin, DATA_DIR, announce));
  const [demoUser] = DEMO_DATA ? await findDemoUsers(database.db, [DEMO_USER.email]) : [];
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
    `HOST: on ${host} anybody could sign in as ${emails.join(', ')}, since the demo password is public. Give them other passwords or deactivate them (npx deckhand users update), choose another DATA_DIR, or set DEMO_DATA=on to let everybody in.`,
  );
}

/** On a server users and demo data are added by commands, so that the start only warns. */
export async function warnOfUsers({ db }: Database, { HOST }: Settings, log: Log): Promise<void> {
  if (!(await hasUsers(db))) {
    log.warn(
      'There are no users yet. Create the first superadmin: npx deckhand users create --name NAME --email EMAIL --superadmin --superadmin-billing',
    );
  }
  const emails = isLoopback(HOST) ? [] : await findDemoPasswords(db);
  if (emails.length === 0) return;
  log.warn(
    `Anybody who reaches ${HOST} can sign in as ${emails.join(', ')}, since the demo password is public. Give them other passwords or deactivate them: npx deckhand users update.`,
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

/** Tells the password before the commit: an interrupted start leaves no user whose password nobody knows. */
async function addFirstAdmin(
  { db }: Database,
  tell: (admin: FirstAdmin) => Promise<void>,
): Promise<FirstAdmin | undefined> {
  if (await hasUsers(db)) return undefined;
  const password = randomBytes(18).toString('base64url');
  const password_hash = await hashPassword(password, 'start');
  return db.transaction().execute(async (db) => {
    const { id } = await db
      .insertInto('users')
      .values({ name: 'Admin', email: FIRST_ADMIN, password_hash, superadmin: true, superadmin_billing: true })
      .returning('id')
      .executeTakeFirstOrThrow();
    const admin = { id, email: FIRST_ADMIN, password };
    await tell(admin);
    return admin;
  });
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
