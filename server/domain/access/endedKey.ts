import { sql } from 'kysely';
import { unauthorized } from '../../../shared/errors.ts';
import { type Db, query, withShortTimeout } from '../../database/query.ts';
import { isValidKey, maxDays } from './keyEnd.ts';

/** The 401 for the holder of a secret that was valid once; undefined for any other secret. Two look-ups by unique indexes. */
export async function endedKeyError(
  db: Db,
  keyHash: string,
  keyMaxDays: number | undefined,
): Promise<Error | undefined> {
  const [key] = await query(
    db,
    withShortTimeout(sql<{ is_revoked: boolean; is_valid: boolean; is_current: boolean }>`
      select k.revoked_at is not null as is_revoked, ${isValidKey('k', maxDays(keyMaxDays))} as is_valid, is_current
      from (select id, true as is_current from api_keys where secret_hash = ${keyHash}
        union all select id, previous_expires_at > now() from api_keys where previous_hash = ${keyHash}) as sent
      join api_keys k using (id)`),
  );
  if (!key) return undefined;
  if (key.is_revoked) return ended('This API key was revoked. Create another one.');
  if (!key.is_valid) return ended('This API key has expired. Create another one.');
  return key.is_current ? undefined : ended('This secret was replaced when its API key was rotated. Use the new one.');
}

const ended = (message: string) => unauthorized(message, 'key_ended');
