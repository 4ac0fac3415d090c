import { sql } from 'kysely';
import type { SentEvent } from '../../server/contract/event.ts';
import { type Db, query } from '../../server/database/query.ts';

/** Each event that the service has written after another one must be as documented, also if no test has read it. Returns the last. */
export async function checkWritten(db: Db, after = '0'): Promise<string> {
  // Tests that insert rows themselves name neither a request nor a user.
  const written = await query(
    db,
    sql<SentEvent>`
      select id::text, to_json(created_at at time zone 'utc') #>> '{}' || 'Z' as created_at, type, platform_id, project_id, user_id,
        key_id, surface, request_id, subject_id, data
      from events where id > ${after} and (request_id is not null or user_id is not null) order by id`,
  );
  if (written.length === 0) return after;
  const { eventViolations } = await import('../../server/contract/event.ts');
  const found = new Set(written.flatMap((event) => eventViolations(event, { isNew: true })));
  if (found.size > 0) throw new Error(`Events are not as documented:\n${[...found].join('\n')}`);
  return written.at(-1)!.id;
}
