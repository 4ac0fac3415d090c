import { sql } from 'kysely';
import { isPassword } from '../../security/passwords.ts';
import type { Database } from '../connect.ts';
import type { Db } from '../query.ts';

export const DEMO_USER = { email: 'member@demo.test', password: 'demo-password' };

const NAMES = ['Admin', 'Owner', 'Member', 'Viewer', 'Outsider', 'Otp'] as const;
export type DemoName = (typeof NAMES)[number];

export const emailOf = (name: DemoName) => `${name.toLowerCase()}@demo.test`;

export const DEMO_USERS = NAMES.map(emailOf);

/** What a page needs to sign in a demo user. */
export type DemoSignIn = { name: string; email: string; password: string };

/** Finds the demo users who can sign in with the public password alone; none without demo data. */
export function makeDemoUsers({ db }: Pick<Database, 'db'>): () => Promise<DemoSignIn[]> {
  // Verifying is expensive, so each hash is verified once.
  const isDemoHash = new Map<string, boolean>();

  return async () => {
    const users = (await findDemoUsers(db, DEMO_USERS)).filter(({ totp_secret }) => totp_secret === null);
    const found: DemoSignIn[] = [];
    for (const { name, email, password_hash } of users) {
      if (password_hash === null) continue;
      if (!isDemoHash.has(password_hash)) isDemoHash.set(password_hash, await hasDemoPassword(password_hash));
      if (isDemoHash.get(password_hash)) found.push({ name, email, password: DEMO_USER.password });
    }
    return found;
  };
}

export const hasDemoPassword = (hash: string | undefined) => isPassword(DEMO_USER.password, hash, 'start');

/** The active users with these e-mail addresses. */
export const findDemoUsers = (db: Db, emails: readonly string[]) =>
  db
    .selectFrom('users')
    .select(['name', 'email', 'password_hash', 'totp_secret'])
    .where('is_active', 'is', true)
    .where(sql<boolean>`lower(email) = any(${emails})`)
    .orderBy('id')
    .execute();
