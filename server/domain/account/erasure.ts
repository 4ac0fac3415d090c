import { sql } from 'kysely';
import type { Erased } from '../../../shared/erasure.ts';
import { badRequest } from '../../../shared/errors.ts';
import type { BackgroundWork } from '../../database/background.ts';
import { lockProjects } from '../../database/projectLock.ts';
import { type Db, query, transact } from '../../database/query.ts';
import { insertRow } from '../../database/rows.ts';
import type { Row } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { AccountContext, ProvisioningContext } from '../access/context.ts';
import { type WriteContext, writeEvents } from '../event/event.ts';
import { madeBy, pauseWithoutRight } from '../event/webhookRight.ts';
import { callForAccountWork } from './accountCall.ts';
import { revokeKeys } from './key.ts';
import { projectsOwnedAlone } from './leaving.ts';
import { deleteMember } from './member.ts';
import { findMentions } from './mention.ts';
import { clearInSlices, removeAbout } from './personalRows.ts';
import type { Person } from './reach.ts';
import { endSessions, mustLeaveASuperadmin, unknownUser } from './user.ts';

/** Erases the caller. */
export const eraseAccount = (context: AccountContext) => erasePerson(context, context.caller.id);

/** Erases any user, for superadmins. */
export const eraseUser = (context: ProvisioningContext, { id }: { id: number }) => erasePerson(context, id);

type Found = Person & Pick<Row<'users'>, 'name' | 'superadmin' | 'created_at'> & { email: string };

/**
 * Blanks a user, whose id stays for what refers to it, and removes what the service has written about them. What has to be searched
 * for in long tables is done before and after the transaction, in short statements.
 *
 * `isRepeated`: it was done before, and a restore has brought them back: it is not refused then, whatever the backup has.
 */
export async function erasePerson(context: WriteContext, id: number, isRepeated = false): Promise<Erased> {
  const person = await findPerson(context.db, id);
  if (!isRepeated) await mustBeErasable(context.db, person);
  const found = isRepeated ? { review: [], is_review_complete: true } : await findMentions(context.db, inTexts(person));
  await clearInSlices(context.db, 'idempotency_keys', 'answer', namesThem(inTexts(person)));
  // What they did now is not kept either.
  const origin = context.caller?.id === id ? { ...context.origin, requestId: null } : context.origin;
  const erased = await transact(context.db, (db) => eraseRows({ ...context, origin, db }, person, isRepeated));
  await sweep(context.db, id, isRepeated ? undefined : performance.now() + LONGEST_SWEEP_MILLISECONDS);
  callForAccountWork();
  return { user_id: id, ...erased, ...found };
}

/** For longer, the background goes on. */
const LONGEST_SWEEP_MILLISECONDS = 5000;

async function findPerson(db: Db, id: number): Promise<Found> {
  const [found] = await query(
    db,
    sql<Found>`
      select u.id, u.name, u.superadmin, u.created_at, lower(u.email) as email, array(
        select lower(u.email) where u.email_confirmed_at is not null
        union select lower(m.email) from mails m where m.user_id = u.id and m.kind <> 'address_confirmation') as addresses
      from users u where u.id = ${id} and u.erased_at is null`,
  );
  if (!found) throw unknownUser();
  return found;
}

/** Texts may name them by an address that they never confirmed. */
const inTexts = ({ email, addresses, ...others }: Found) => ({
  ...others,
  addresses: [...new Set([email, ...addresses])],
});

/** Throws a 400 for the last superadmin who can sign in with a password, and for the last owner of a project. */
async function mustBeErasable(db: Db, { id, superadmin }: Found): Promise<void> {
  if (superadmin) await mustLeaveASuperadmin(db, id);
  const owned = await projectsOwnedAlone(db, id, sql`true`);
  if (owned.length === 0) return;
  const names = owned.slice(0, 10).map(({ project_id, name }) => `${name} (${project_id})`);
  throw badRequest(
    `This is the last owner of ${names.join(', ')}${owned.length > 10 ? ' and others' : ''}. Make somebody else an owner first.`,
    'last_owner',
  );
}

async function eraseRows(context: WriteContext, person: Found, isRepeated: boolean) {
  const { db } = context;
  const { id } = person;
  // Projects before users, like a change of a membership: one lock order prevents deadlocks.
  const locked = new Set((await lockProjects(db, sql`id in (${projectsOf(id)})`)).map((project) => project.id));
  // Before their own row: of two superadmins who erase each other, the second one stays.
  if (person.superadmin && !isRepeated) await mustLeaveASuperadmin(db, id);
  await db
    .selectFrom('users')
    .select('id')
    .where('id', '=', id)
    .where('erased_at', 'is', null)
    .forUpdate()
    .executeTakeFirstOrThrow(unknownUser);
  const projects = await query(db, projectsOf(id));
  if (projects.some(({ project_id }) => !locked.has(project_id))) throw changedMeanwhile();
  if (!isRepeated) await mustBeErasable(db, person);

  // First, so that all their webhooks are paused here.
  await db.updateTable('users').set(blankOf(id)).where('id', '=', id).execute();
  const paused = await pauseWithoutRight(context, madeBy(id));
  for (const { project_id } of projects) await deleteMember(context, project_id, id, { mayBeLastOwner: isRepeated });
  await withdrawInvitations(context, person);
  await endSignOns(db, person);
  await revokeKeys(context, id);
  await endSessions(db, id);
  await query(
    db,
    sql`update idempotency_keys t set answer = null where ${namesThem(inTexts(person))} and created_at > now() - interval '5 minutes'`,
  );
  await writeEvents(context, [{ type: 'user.erased', subject_id: id }]);
  // Last: it blanks the entries of the audit trail that were written just now, too.
  const removed = await removeAbout(db, person);
  const erasure = { user_id: id, user_created_at: person.created_at, erased_by: context.caller?.id ?? null };
  const { erased_at } = await insertRow(db, 'erasures', erasure, ['erased_at']);
  return { erased_at, removed, paused_webhooks: paused.map((webhook) => webhook.id) };
}

const projectsOf = (id: number) =>
  sql<{ project_id: number }>`select project_id from members where user_id = ${id} order by project_id`;

/** `transact` retries a serialization failure. */
const changedMeanwhile = () => Object.assign(new Error('The person joined a project meanwhile.'), { code: '40001' });

const blankOf = (id: number) => ({
  name: 'Erased user',
  // Somebody may have that address already.
  email: sql<string>`${`erased-${id}`} || case when exists (select from users where lower(email) = ${`erased-${id}@erased.invalid`})
    then '-' || gen_random_uuid() else '' end || '@erased.invalid'`,
  ...{ email_confirmed_at: null, language: null, default_project_id: null, rate_limit_per_minute: null },
  password_hash: null,
  ...{ totp_secret: null, totp_pending_secret: null, totp_last_step: 0, totp_failures: 0, totp_blocked_until: null },
  ...{ superadmin: false, superadmin_billing: false, enable_ai: false, is_active: false },
  ...{ erased_at: NOW, updated_at: NOW },
});

/** Those to the person, and those by them, which nobody could accept any more. */
async function withdrawInvitations(context: WriteContext, { id, addresses }: Person): Promise<void> {
  const withdrawn = await query(
    context.db,
    sql<{ id: number; project_id: number }>`
      delete from invitations where invited_by = ${id} or lower(email) = any(${addresses}::text[]) returning id, project_id`,
  );
  await writeEvents(
    context,
    withdrawn.map(({ id, project_id }) => ({ type: 'invitation.withdrawn', project_id, subject_id: id }) as const),
  );
}

/** Sign-ins at an issuer that are under way: the row has what the issuer says, and no user yet. */
const endSignOns = (db: Db, { id, addresses }: Person) =>
  query(
    db,
    sql`
      delete from sso_flows f where lower(f.claims ->> 'email') = any(${addresses}::text[])
        or exists (select from identities i where i.user_id = ${id} and i.subject = f.claims ->> 'sub')`,
  );

/** Whether a stored answer `t` to somebody else has the name or an address as a value. */
const namesThem = ({
  name,
  addresses,
}: Pick<Found, 'name' | 'addresses'>) => sql`t.answer is not null and (position(${JSON.stringify(name)} in t.answer) > 0
  or exists (select from unnest(${addresses.map((address) => JSON.stringify(address))}::text[]) as address
    where position(address in lower(t.answer)) > 0))`;

/** Blanks what is in the log of events. False if there was not enough time. */
const sweep = (db: Db, id: number, until = Number.POSITIVE_INFINITY): Promise<boolean> =>
  clearInSlices(
    db,
    'events',
    'request_id',
    sql`t.user_id = ${id}::int and t.request_id is not null`,
    () => performance.now() > until,
  );

/** Once more a while later: for what the time did not suffice, or for calls that were under way while somebody was erased. */
export const ERASURE_SWEEP: BackgroundWork = {
  table: 'erasures',
  step: async (db) => {
    const [due] = await query(
      db,
      sql<{ user_id: number }>`
        select user_id from erasures where swept_at is null and erased_at < now() - interval '2 minutes' order by user_id limit 1`,
    );
    if (!due) return { count: 0 };
    await sweep(db, due.user_id);
    await transact(db, (db) => removeAbout(db, { id: due.user_id, addresses: [] }));
    await query(db, sql`update erasures set swept_at = now() where user_id = ${due.user_id}`);
    return { count: 1 };
  },
};
