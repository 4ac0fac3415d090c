import { type RawBuilder, sql } from 'kysely';
import { type Db, query } from '../../database/query.ts';
import type { ProvisioningContext } from '../access/context.ts';
import { countValidKeys } from '../access/keyEnd.ts';
import { isManager } from '../access/permission.ts';
import { madeBy, pauseWithoutRight, resumeWithRight } from '../event/webhookRight.ts';

/** What a user who was just deactivated held, in the same transaction. The database refuses keys of such users by itself. */
export async function refuseHoldings(context: ProvisioningContext, userId: number) {
  const keys_refused = await countValidKeys(context, userId);
  const paused_webhooks = await pauseWithoutRight(context, madeBy(userId));
  return {
    keys_refused,
    paused_webhooks,
    sole_owner_of: await projectsOwnedAlone(context.db, userId, sql`p.is_active`),
  };
}

/** What a user who was just activated gets back: webhooks only if that deactivation paused them, and nobody changed them since. */
export async function giveBack(context: ProvisioningContext, userId: number, deactivatedAt: Date | null) {
  const keys_accepted = await countValidKeys(context, userId);
  const isPausedThen = sql`${madeBy(userId)} and w.right_lost_at = ${deactivatedAt} and w.disabled_reason is null`;
  const resumed_webhooks = deactivatedAt ? await resumeWithRight(context, isPausedThen) : [];
  return { keys_accepted, resumed_webhooks };
}

/** Projects `p` where nobody else who is active may manage members. */
export const projectsOwnedAlone = (db: Db, userId: number, which: RawBuilder<unknown>) =>
  query(
    db,
    sql<{ project_id: number; name: string }>`
      select p.id as project_id, p.name from members m join projects p on p.id = m.project_id
      where ${which} and m.user_id = ${userId} and ${isManager('m')} and not exists (
        select from members o join users u on u.id = o.user_id and u.is_active
        where o.project_id = p.id and o.user_id <> ${userId} and ${isManager('o')})
      order by p.id`,
  );
