import { sql } from 'kysely';
import { pino } from 'pino';
import { expect, vi } from 'vitest';
import { start } from '../../server/boot/start.ts';
import { connect } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller } from './caller.ts';
import { codeAt } from './codes.ts';
import { signIn } from './process.ts';

/** For tests that move a whole database: whether a service with demo data still knows all that callers have of it. */

/** A node in this process, on a free port. */
export const startNode = (settings: Record<string, string>) =>
  start(readSettings({ PORT: '0', ...settings }), pino({ level: 'silent' }), () => undefined);

const CREATE = '/services/operations/v1/operations/cards/create';
const KEYED = { 'Idempotency-Key': 'sent before and after' };

/** What callers keep: a token, an API key, the answer to a call with an idempotency key. */
export type Used = { token: string; apiKey: string; created: unknown; lastId: number };

export async function useService(url: string): Promise<Used> {
  const member = await signIn(url);
  const { body } = await member.post(CREATE, { title: 'A "title", {with} \\ and 😀\n' }, KEYED);
  await member.rpc.comments.create.mutate({ card_id: body.data.card.id, comment: 'A comment' });
  const { secret } = await member.rpc.keys.create.mutate({ name: 'a key', scopes: ['boards:read'] });
  const admin = await signIn(url, 'admin@demo.test');
  await admin.rpc.masterBoards.sync.mutate({ board_id: 1 });
  const last = await member.rpc.cards.create.mutate({ title: 'The last one' });
  expect((await signInWithCode(url)).status).toBe(200);
  return { token: member.token!, apiKey: secret, created: body, lastId: last.card.id };
}

/** Signs in with a second factor. No code works twice, so that each call moves the clock of the suite; needs `holdTimeStep`. */
export function signInWithCode(url: string) {
  lastSignIn = Math.max(Date.now(), lastSignIn + 30_000);
  vi.setSystemTime(lastSignIn);
  return makeCaller(url).post('/v1/authenticate', {
    email: 'otp@demo.test',
    password: 'demo-password',
    code: codeAt(0),
  });
}

let lastSignIn = 0;

export async function expectStillUsed(url: string, { token, apiKey, created, lastId }: Used): Promise<void> {
  const member = makeCaller(url, token);
  const repeated = await member.post(CREATE, { title: 'A "title", {with} \\ and 😀\n' }, KEYED);
  expect(repeated.body).toEqual(created);
  expect(repeated.headers.get('Idempotent-Replayed')).toBe('true');
  expect((await makeCaller(url, apiKey).rpc.boards.list.query()).boards.length).toBeGreaterThan(0);
  expect((await signInWithCode(url)).status).toBe(200);
  const { card } = await member.rpc.cards.create.mutate({ title: 'One more' });
  expect(card.id).toBe(lastId + 1);
}

/**
 * All rows of all tables as text, the sequences, and the constraints and triggers. Without what a database says about itself, and
 * without the sequences of events and of the audit trail: a restored or copied database has its own.
 */
export async function everythingOf(settings: Record<string, string>) {
  const database = await connect(readSettings(settings));
  try {
    return await everythingIn(database.db);
  } finally {
    await database.close();
  }
}

export async function everythingIn(db: Db) {
  const names = await query(
    db,
    sql<{
      name: string;
    }>`select tablename::text as name from pg_tables where schemaname = 'public'
      and tablename not in ('mikro_orm_migrations', 'database_state', 'incarnations') order by 1`,
  );
  const tables: Record<string, unknown[]> = {};
  for (const { name } of names) {
    tables[name] = await query(db, sql`select to_jsonb(t)::text as row from ${sql.table(name)} t order by 1`);
  }
  const sequences = await query(
    db,
    sql`select sequencename::text, last_value::text from pg_sequences where schemaname = 'public' and sequencename not like 'mikro%'
      and sequencename not in ('events_id_seq', 'audit_entries_id_seq') order by 1`,
  );
  const rules = await query(
    db,
    sql`select conrelid::regclass::text as table, conname::text as name, pg_get_constraintdef(oid) as rule from pg_constraint
        where connamespace = 'public'::regnamespace and contype <> 'n'
      union all
      select tgrelid::regclass::text, tgname::text, tgenabled::text from pg_trigger where not tgisinternal
      order by 1, 2`,
  );
  return { tables, sequences, rules };
}
