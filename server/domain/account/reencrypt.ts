import { sql } from 'kysely';
import { type Db, query } from '../../database/query.ts';
import type { Row } from '../../database/tables.ts';
import type { OwnerKind } from '../../security/secretBox.ts';
import type { Context, With } from '../access/context.ts';

type SealedColumn =
  | { table: 'users'; column: keyof Row<'users'>; kind: OwnerKind }
  | { table: 'webhooks'; column: keyof Row<'webhooks'>; kind: OwnerKind };

const SEALED_COLUMNS: SealedColumn[] = [
  { table: 'users', column: 'totp_secret', kind: 'user' },
  { table: 'users', column: 'totp_pending_secret', kind: 'user' },
  { table: 'webhooks', column: 'secret', kind: 'webhook' },
  { table: 'webhooks', column: 'previous_secret', kind: 'webhook' },
];

const BATCH = 500;

/**
 * Re-encrypts with the current key what is plain or uses an earlier key. In batches of one statement each, which change only
 * values that are still those that were read, so several nodes can run it at once.
 */
export async function reencryptSecrets(
  { db, services: { secretBox }, log }: Pick<Context, 'db' | 'log'> & With<'secretBox'>,
  isStopping: () => boolean = () => false,
): Promise<void> {
  let unreadable = 0;
  for (const sealedColumn of SEALED_COLUMNS) {
    const { table, column, kind } = sealedColumn;
    for (let last = 0; !isStopping(); ) {
      const found = await query(
        db,
        sql<{ id: number; sealed: string }>`
          select id, ${sql.ref(column)} as sealed from ${sql.table(table)}
          where id > ${last} and not starts_with(${sql.ref(column)}, ${secretBox.prefix}) order by id limit ${sql.lit(BATCH)}`,
      );
      if (found.length === 0) break;
      last = found.at(-1)?.id ?? last;

      const changes = found.flatMap(({ id, sealed }) => {
        const secret = secretBox.open(sealed, id, kind);
        return secret === undefined ? [] : [{ id, before: sealed, after: secretBox.seal(secret, id, kind) }];
      });
      unreadable += found.length - changes.length;
      await replaceEncrypted(db, sealedColumn, changes);
    }
  }
  if (unreadable > 0) log.error(`${unreadable} secrets of webhooks or second factors can't be read. ${MISSING_SECRET}`);
}

/** The ids of the keys that secrets are encrypted with. */
export async function sealingKeyIds(db: Db): Promise<string[]> {
  const columns = SEALED_COLUMNS.map(
    ({ table, column }) => sql`select ${sql.ref(column)} as sealed from ${sql.table(table)}`,
  );
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
  { table, column }: Pick<SealedColumn, 'table' | 'column'>,
  changes: { id: number; before: string; after: string }[],
) {
  await query(
    db,
    sql`
      with changed as (
        select t.id, change.after
        from unnest(
          ${changes.map(({ id }) => id)}::int[], ${changes.map(({ before }) => before)}::text[], ${changes.map(({ after }) => after)}::text[]
        ) as change (id, before, after)
        join ${sql.table(table)} t on t.id = change.id and t.${sql.ref(column)} = change.before
        order by t.id for update of t
      )
      update ${sql.table(table)} t set ${sql.ref(column)} = changed.after from changed where t.id = changed.id`,
  );
}

export const MISSING_SECRET =
  'Put the JWT_SECRET that they were encrypted with into JWT_PREVIOUS_SECRETS and restart. Recovery codes still work.';
