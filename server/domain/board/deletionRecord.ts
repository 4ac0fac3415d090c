import { type RawBuilder, sql } from 'kysely';
import { NOW } from '../../database/timestamp.ts';
import { bound } from '../access/permission.ts';
import { actorOf, type EventContext } from '../event/event.ts';

/** The id of a new deletion. */
export const NEXT_DELETION = sql<number>`nextval('deletions_id_seq')::int`;

/** The changes that mark what a deletion takes along. */
export const deletedBy = (deletion_id: number | RawBuilder<number>) => ({
  deleted_at: NOW,
  updated_at: NOW,
  deletion_id,
});

/** The changes that bring a row back. */
export const RESTORED = { deleted_at: null, deletion_id: null, updated_at: NOW };

/** The part `recorded` of a statement, which records the deletion of rows, with `id`, `project_id` and `deletion_id`. */
export const recordDeletions = (
  context: EventContext,
  noun: string,
  rows: RawBuilder<unknown>,
  cause_id: number | null = null,
): RawBuilder<unknown> => sql`
  recorded as (
    insert into deletions (id, project_id, noun, subject_id, user_id, cause_id)
    select deletion_id, project_id, ${noun}, id, ${bound(actorOf(context))('actor_id')}::int, ${cause_id}::int from (${rows}) as deleted)`;
