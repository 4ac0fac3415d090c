import { type RawBuilder, sql } from 'kysely';
import { GRACE_DAYS, type PausedWebhook, RIGHT_LOST } from '../../../shared/webhook.ts';
import type { BackgroundWork } from '../../database/background.ts';
import { type Db, query, transact } from '../../database/query.ts';
import type { Log } from '../../runtime/log.ts';
import { SUPERADMIN_BY_KEY } from '../access/caller.ts';
import type { With } from '../access/context.ts';
import { isValidKey, maxDays } from '../access/keyEnd.ts';
import { isManager } from '../access/permission.ts';
import { BY_THE_SERVICE, type WriteContext, writeEvents } from './event.ts';
import { LEASE_AFTER_CHANGE } from './webhookLease.ts';

/**
 * A webhook sends events for as long as its maker may read them. Its maker is who created it, or who changed its address or
 * activated it since, with the key that they used. Whatever takes the right from them pauses the webhook in the same transaction.
 * A delivery asks again before it begins, and the background work looks for what expired.
 */

type KeyAge = Partial<With<'keyMaxDays'>>;

/** Whether the maker of a webhook `w` may read the events of its project. The operator at the command line always may. */
const hasRight = ({ services }: KeyAge) => sql<boolean>`(w.created_by is null or exists (
  select from users u left join api_keys k on k.id = w.key_id
  where u.id = w.created_by and u.is_active
    and (w.key_id is null or (k.id is not null and ${isValidKey('k', maxDays(services?.keyMaxDays))} and 'events:read' = any(k.scopes)))
    and (case when w.key_id is null then u.superadmin else ${SUPERADMIN_BY_KEY} end or exists (
      select from members m where m.project_id = w.project_id and m.user_id = u.id and ${isManager('m')}))))`;

/** Webhooks that had lost their right before it was checked go on for a while. */
const IN_GRACE = sql`coalesce(w.right_lost_at > now() - make_interval(days => ${sql.lit(GRACE_DAYS)}), false)`;

/** Whether events may be sent to a webhook `w`. */
export const mayReceive = (age: KeyAge) => sql<boolean>`(${IN_GRACE} or ${hasRight(age)})`;

/** Pauses those of these webhooks `w` whose makers have lost their right, in the transaction of the change. Returns them. */
export async function pauseWithoutRight(
  context: WriteContext & KeyAge,
  which: RawBuilder<unknown>,
): Promise<PausedWebhook[]> {
  const paused = await query(
    context.db,
    sql<{ id: number; project_id: number; url: string }>`
      update webhooks w set is_active = false, right_lost_at = coalesce(w.right_lost_at, now()), updated_at = now()
      where w.is_active and ${which} and not ${mayReceive(context)} returning w.id, w.project_id, w.url`,
  );
  await writeEvents(
    context,
    paused.map(({ id, project_id }) => ({
      ...{ type: 'webhook.disabled', project_id, subject_id: id, data: { reason: RIGHT_LOST } },
    })),
  );
  return paused.map(withHost);
}

/** Switches those of these paused webhooks `w` on again whose makers have the right, in the transaction of the change. */
export async function resumeWithRight(
  context: WriteContext & KeyAge,
  which: RawBuilder<unknown>,
): Promise<PausedWebhook[]> {
  const resumed = await query(
    context.db,
    sql<{ id: number; project_id: number; url: string }>`
      update webhooks w set is_active = true, right_lost_at = null, failures = 0, first_failed_at = null,
        next_attempt_at = now(), leased_until = ${LEASE_AFTER_CHANGE}, updated_at = now()
      where not w.is_active and ${which} and ${hasRight(context)} returning w.id, w.project_id, w.url`,
  );
  await writeEvents(
    context,
    resumed.map(({ id, project_id }) => ({
      ...{ type: 'webhook.updated', project_id, subject_id: id, data: { fields: ['is_active'] } },
    })),
  );
  return resumed.map(withHost);
}

/** The rest of the address may be a secret, which not everybody may read who can take a right. */
const withHost = ({ url, ...webhook }: { id: number; project_id: number; url: string }): PausedWebhook => ({
  ...webhook,
  host: URL.parse(url)?.host ?? '',
});

export const madeBy = (user_id: number) => sql`w.created_by = ${user_id}`;

/** The webhooks of a key; found by the index of their makers. */
export const madeWith = ({ id, user_id }: { id: number; user_id: number }) =>
  sql`${madeBy(user_id)} and w.key_id = ${id}`;

/** Pauses what a delivery found to have no right. */
export const pauseByService = (db: Db, age: KeyAge, which: RawBuilder<unknown>): Promise<PausedWebhook[]> =>
  transact(db, (db) => pauseWithoutRight({ ...BY_THE_SERVICE, ...age, db }, which));

/** Pauses webhooks of keys that have expired, and of makers that a node of the previous version removed. */
export const rightLosses = (keyMaxDays: number | undefined, log: Log): BackgroundWork => ({
  table: 'webhooks',
  step: async (db) => {
    const paused = await pauseByService(db, { services: { keyMaxDays } }, sql`true`);
    for (const { id: webhook, project_id: project } of paused.slice(0, MOST_NAMED))
      log.warn({ webhook, project }, 'A webhook was switched off: its maker has lost the right to it.');
    return { count: 0 };
  },
});

const MOST_NAMED = 20;

/** Logs which webhooks are still active although their makers have lost the right to them. */
export async function warnOfLostRights(db: Db, log: Log): Promise<void> {
  const found = await db
    .selectFrom('webhooks')
    .select(['id as webhook', 'project_id as project', 'created_by as maker', 'right_lost_at'])
    .where('is_active', '=', true)
    .where('right_lost_at', 'is not', null)
    .orderBy('id')
    .execute();
  for (const webhook of found.slice(0, MOST_NAMED))
    log.warn(
      webhook,
      `The maker of a webhook is no owner of its project any more. ${GRACE_DAYS} days after right_lost_at it is switched off, unless an owner sets is_active.`,
    );
  const webhooks = found.length - MOST_NAMED;
  if (webhooks > 0) log.warn({ webhooks }, 'Further webhooks have lost their makers, after those named before.');
}
