import { type RawBuilder, sql } from 'kysely';
import type { EventRow } from './following.ts';

/** What a reader may see of the projects that they read: all events of those that they own, and of their own keys. */
export type Reader = { owned: ReadonlySet<number>; userId: number | null };

/** Only owners may list keys, webhooks and invitations, so only they see their events. */
const OF_OWNERS = /^(key|webhook|invitation)\./;
const OF_KEYS = /^key\./;

/** Superadmins and webhooks see all events: they have no `reader`. */
export const isShownTo = (reader: Reader | undefined, { type, project_id, data }: EventRow): boolean =>
  !reader ||
  !OF_OWNERS.test(type) ||
  (project_id !== null && reader.owned.has(project_id)) ||
  (OF_KEYS.test(type) && reader.userId !== null && data.user_id === reader.userId);

/** The same for the rows of a statement. */
export const isShownRow = (reader: Reader | undefined): RawBuilder<boolean> =>
  reader
    ? sql`(type !~ ${sql.lit(OF_OWNERS.source)} or project_id = any(${[...reader.owned]}::int[])
        or (type ~ ${sql.lit(OF_KEYS.source)} and data->'user_id' = to_jsonb(${reader.userId}::int)))`
    : sql`true`;
