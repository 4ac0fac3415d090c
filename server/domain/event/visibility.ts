import { type RawBuilder, sql } from 'kysely';
import type { EventRow } from './following.ts';

/** What a reader may see of the projects that they read: all events of those that they own, and of their own keys. */
export type Reader = { owned: ReadonlySet<number>; userId: number | null };

/** Only owners may list these, so only they see their events, also those of types that a later version wrote. */
const NOUNS_OF_OWNERS = ['key', 'webhook', 'invitation'];
const isOf = (type: string, noun: string) => type.startsWith(`${noun}.`);

/** Superadmins and webhooks see all events: they have no `reader`. */
export const isShownTo = (reader: Reader | undefined, { type, project_id, data }: EventRow): boolean =>
  !reader ||
  !NOUNS_OF_OWNERS.some((noun) => isOf(type, noun)) ||
  (project_id !== null && reader.owned.has(project_id)) ||
  (isOf(type, 'key') && reader.userId !== null && data.user_id === reader.userId);

/** The same for the rows of a statement. */
export const isShownRow = (reader: Reader | undefined): RawBuilder<boolean> =>
  reader
    ? sql`(split_part(type, '.', 1) <> all(${NOUNS_OF_OWNERS}::text[]) or project_id = any(${[...reader.owned]}::int[])
        or (split_part(type, '.', 1) = 'key' and data->'user_id' = to_jsonb(${reader.userId}::int)))`
    : sql`true`;
