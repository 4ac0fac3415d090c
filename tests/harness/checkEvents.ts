import { sql } from 'kysely';
import type { SentEvent } from '../../server/contract/event.ts';
import { type Db, query } from '../../server/database/query.ts';

/** Each event that the service has written must be as documented, also if no test has read it. */
export const checkWritten = async (db: Db): Promise<void> => mustBeRight((await findWrong(db)).found);

/** What is wrong with the events after this one, and the last of them. */
export async function findWrong(db: Db, after = '0'): Promise<{ last: string; found: Set<string> }> {
  // Tests that insert rows themselves name neither a request nor a user.
  const written = await query(
    db,
    sql<SentEvent>`
      select id::text, to_json(created_at at time zone 'utc') #>> '{}' || 'Z' as created_at, type, platform_id, project_id, user_id,
        key_id, surface, request_id, subject_id, data
      from events where id > ${after} and (request_id is not null or user_id is not null) order by id`,
  );
  if (written.length === 0) return { last: after, found: new Set() };
  const { eventViolations } = await import('../../server/contract/event.ts');
  const found = new Set(written.flatMap((event) => eventViolations(event, { isNew: true })));
  return { last: written.at(-1)!.id, found };
}

export function mustBeRight(found: Set<string>): void {
  if (found.size > 0) throw new Error(`Events are not as documented:\n${[...found].join('\n')}`);
}
