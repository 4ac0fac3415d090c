import { sql } from 'kysely';
import { badRequest, forbidden, invalid } from '../../../shared/errors.ts';
import type { KeyRotateSelf } from '../../../shared/key.ts';
import { transact } from '../../database/query.ts';
import type { KeyContext } from '../access/context.ts';
import { endOfKey, maxDays } from '../access/keyEnd.ts';
import { isValid, keyColumns, keyEnded, replaceSecret } from './key.ts';

/** The key of the call, its user, and until when the secret that was sent is valid. */
export async function describeOwnKey(context: KeyContext) {
  const { id, secretHash } = context.caller.key;
  const end = endOfKey('api_keys', maxDays(context.services.keyMaxDays));
  const { user_name, kind, secret_expires_at, ...key } = await context.db
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.user_id')
    .select(keyColumns(context))
    .select(['users.name as user_name', 'users.kind'])
    .select(
      sql<Date | null>`case when secret_hash = ${secretHash} then ${end} else least(previous_expires_at, ${end}) end`.as(
        'secret_expires_at',
      ),
    )
    .where('api_keys.id', '=', id)
    .executeTakeFirstOrThrow(keyEnded);
  return { user: { id: key.user_id, name: user_name, kind }, key, secret_expires_at };
}

/**
 * Gives the key of the call a new secret. Only the current secret may do this: whoever has the previous one could otherwise
 * take the key back, and of two rotations at once, the second would end the secret of the first.
 */
export async function rotateOwnKey(context: KeyContext, { previous_valid_hours, scopes }: KeyRotateSelf) {
  const { id, secretHash, scopes: own } = context.caller.key;
  if (scopes?.some((scope) => !own.includes(scope))) throw invalid({ scopes: 'must be scopes that the key has' });

  return transact(context.db, async (db) => {
    const current = await db
      .selectFrom('api_keys')
      .innerJoin('users', 'users.id', 'api_keys.user_id')
      .select(['secret_hash', 'rule_id'])
      .where('api_keys.id', '=', id)
      .where('users.is_active', '=', true)
      .where(isValid(context))
      .forUpdate('api_keys')
      .executeTakeFirstOrThrow(keyEnded);
    if (current.rule_id !== null)
      throw forbidden(
        'This credential came from auth.exchange, and ends soon: exchange another token.',
        'key_not_allowed',
      );
    if (current.secret_hash !== secretHash)
      throw badRequest('This secret was replaced by a rotation: use the new one.', 'secret_replaced');

    const narrowed = scopes == null ? {} : { scopes: [...new Set(scopes)].sort() };
    return replaceSecret({ ...context, db }, { id, previous_valid_hours, ...narrowed });
  });
}
