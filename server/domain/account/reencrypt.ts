import { sql } from 'kysely';
import { type Db, query } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { Context } from '../access/context.ts';

const SEALED_COLUMNS = ['totp_secret', 'totp_pending_secret'] as const satisfies (keyof Row<'users'>)[];

const BATCH = 500;

/**
 * Re-encrypts with the current key what is plain or uses an earlier key. In batches of one statement each, which change only
 * values that are still those that were read, so several nodes can run it at once.
 */
export async function reencryptSecondFactors(
  { db, secretBox, log }: Pick<Context, 'db' | 'secretBox' | 'log'>,
  isStopping: () => boolean = () => false,
): Promise<void> {
  let unreadable = 0;
  for (const column of SEALED_COLUMNS) {
    for (let last = 0; !isStopping(); ) {
      const found = await db
        .selectFrom('users')
        .select(({ ref }) => ['id', ref(column).$notNull().as('sealed')])
        .where('id', '>', last)
        .where(sql<boolean>`not starts_with(${sql.ref(column)}, ${secretBox.prefix})`)
        .orderBy('id')
        .limit(BATCH)
        .execute();
      if (found.length === 0) break;
      last = found.at(-1)?.id ?? last;

      const changes = found.flatMap(({ id, sealed }) => {
        const secret = secretBox.open(sealed, id);
        return secret === undefined ? [] : [{ id, before: sealed, after: secretBox.seal(secret, id) }];
      });
      unreadable += found.length - changes.length;
      await replaceEncrypted(db, column, changes);
    }
  }
  if (unreadable > 0) log.error(`${unreadable} second factors can't be read. ${MISSING_SECRET}`);
}

/** The ids of the keys that second factors are encrypted with. */
export async function secondFactorKeyIds(db: Db): Promise<string[]> {
  const columns = SEALED_COLUMNS.map((column) => sql`select ${sql.ref(column)} as sealed from users`);
  const secrets = sql.join(columns, sql` union all `);
  const found = await query(
    db,
    sql<{ id: string }>`
      select distinct split_part(sealed, '.', 2) as id from (${secrets}) as secrets where sealed like '%.%'`,
  );
  return found.map(({ id }) => id);
}

/** `changed` locks the rows by id, if their values are still those that were read: one lock order prevents deadlocks. */
export async function replaceEncrypted(
  db: Db,
  column: (typeof SEALED_COLUMNS)[number],
  changes: { id: number; before: string; after: string }[],
) {
  await query(
    db,
    sql`
      with changed as (
        select u.id, change.after
        from unnest(
          ${changes.map(({ id }) => id)}::int[], ${changes.map(({ before }) => before)}::text[], ${changes.map(({ after }) => after)}::text[]
        ) as change (id, before, after)
        join users u on u.id = change.id and u.${sql.ref(column)} = change.before
        order by u.id for update of u
      )
      update users u set ${sql.ref(column)} = changed.after from changed where u.id = changed.id`,
  );
}

export const MISSING_SECRET =
  'Put the JWT_SECRET that they were encrypted with into JWT_PREVIOUS_SECRETS and restart. Recovery codes still work.';
