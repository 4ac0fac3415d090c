import { sql } from 'kysely';
import { KEY_PREFIX } from '../../../shared/key.ts';
import { hashKeySecret, RANDOM_LENGTH, withChecksum } from '../../security/apiKeys.ts';
import type { Database } from '../connect.ts';
import { emptyTables } from '../emptyTables.ts';
import { type Db, insertRows, query, transact } from '../query.ts';
import { addTenants, continueIds, fillWithDemoData } from './demo.ts';
import { DEMO_USER, type DemoName, emailOf } from './demoUsers.ts';

/** What a sandbox begins with; a rollout follows when the service runs. */
type State = 'empty' | 'demo' | 'large_board' | 'expired_trial' | 'rollout';

/** Replaces all rows. They have the same ids and keys each time, and so do rows that are created afterwards. */
export async function fillSandbox(database: Database, state: State, scopes: string[]) {
  const { db } = database;
  await emptyTables(db, { id: 0 });
  await query(
    db,
    sql`
      select setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false) from pg_sequences
      where schemaname = current_schema`,
  );
  if (state === 'empty' || state === 'large_board') await addTenants(db);
  else await fillWithDemoData(database);
  if (state === 'large_board') await addLargeBoard(db);
  if (state === 'expired_trial')
    await query(db, sql`update subscriptions set trial_ends_at = now() - interval '1 day' where platform_id = 1`);
  const people = await addKeys(db, scopes);
  await continueIds(db);
  return people;
}

const GROUPS = 10;
const CARDS = 5000;

async function addLargeBoard(db: Db): Promise<void> {
  const tenant = { project_id: 1, platform_id: 1, created_by: 2 };
  await insertRows(db, 'boards', [{ id: 1, ...tenant, title: 'Large board', position: 1 }]);
  const groups = Array.from({ length: GROUPS }, (_, at) => at + 1);
  await insertRows(
    db,
    'groups',
    groups.map((id) => ({ id, ...tenant, board_id: 1, title: `Group ${id}`, position: id })),
  );
  await transact(db, async (db) => {
    // Without checks of references, which would take a second.
    await query(db, sql`set local session_replication_role = replica`);
    await query(
      db,
      sql`
      insert into cards (id, group_id, project_id, platform_id, created_by, title, unique_identifier, position, sort_order)
      select n, (n - 1) % ${GROUPS}::int + 1, 1, 1, 2, 'Card ' || n, 'card-' || n, (n - 1) / ${GROUPS}::int + 1, n
      from generate_series(1, ${CARDS}::int) as n`,
    );
  });
}

/** A key with all scopes for each role, and a service beside the people of the demo data. */
async function addKeys(db: Db, scopes: string[]): Promise<Person[]> {
  const { password } = DEMO_USER;
  const person = (role: Role, id: number, name: DemoName): Person => ({
    ...{ role, id, email: emailOf(name), password },
    key: secretFor(role),
  });
  const service: Person = { role: 'service', id: 7, email: 'service@demo.test', key: secretFor('service') };
  const people: Person[] = [
    person('superadmin', 1, 'Admin'),
    person('owner', 2, 'Owner'),
    person('member', 3, 'Member'),
    person('viewer', 4, 'Viewer'),
    person('outsider', 5, 'Outsider'),
    service,
  ];
  const { id, email } = service;
  await insertRows(db, 'users', [{ id, name: 'Service', email, kind: 'service', default_project_id: 1 }]);
  await insertRows(db, 'members', [{ project_id: 1, user_id: id, role: 'member' }]);
  await insertRows(
    db,
    'api_keys',
    people.map(({ id: user_id, role, key }) => ({
      ...{ user_id, name: `Key of the ${role}`, scopes, names_grants: true },
      secret_hash: hashKeySecret(key),
    })),
  );
  return people;
}
type Person = { role: Role; id: number; email: string; password?: string; key: string };
type Role = 'superadmin' | 'owner' | 'member' | 'viewer' | 'outsider' | 'service';

/** Readable, since it protects nothing. */
const secretFor = (role: Role) => withChecksum(KEY_PREFIX + `Sandbox${role}`.padEnd(RANDOM_LENGTH, '0'));

/** An event as a node of a later version may write it. */
export async function writeLaterEvent(db: Db): Promise<void> {
  await query(
    db,
    sql`
      insert into events (type, platform_id, project_id, surface, subject_id, data)
      values ('card.from_a_later_version', 1, 1, 'later_surface', 1, '{"from_a_later_version": true}')`,
  );
}

/** After the clock was set back: webhooks would wait for the time of their last message. */
export async function wakeWebhooks(db: Db): Promise<void> {
  await query(db, sql`update webhooks set next_attempt_at = now() where failures = 0 and next_attempt_at > now()`);
}
