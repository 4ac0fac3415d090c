import { type RawBuilder, sql } from 'kysely';
import { preconditionFailed } from '../../shared/errors.ts';

/**
 * The version of a row: the transaction that wrote it last. Every write changes it, and locks do not. With the time, since a
 * database that was set back to a backup gives the same numbers to other transactions.
 */
export function versionOf(alias?: string): RawBuilder<string> {
  const [transaction, time] = ['xmin', 'updated_at'].map((name) => sql.ref(alias ? `${alias}.${name}` : name));
  return sql`(${transaction}::text || '-' || (extract(epoch from ${time}) * 1000)::bigint)`;
}

/** As a column of a statement with one table. */
export const VERSION = versionOf().as('version');
export type Versioned<Row> = Row & { version: string };

/** A row with its version beside it, as in answers: `{ card, version }`. */
export function withVersion<Noun extends string, Row extends { version: string }>(noun: Noun, row: Row) {
  const { version, ...fields } = row;
  return { [noun]: fields, version } as Record<Noun, Omit<Row, 'version'>> & { version: string };
}

/** Whether a version is the required one, or one of several, with commas between them. */
export const isRequired = (version: RawBuilder<unknown>, if_version: string | undefined) =>
  if_version === undefined ? sql<boolean>`true` : isOneOf(version, sql`${if_version}::text`);

export const isOneOf = (version: RawBuilder<unknown>, versions: RawBuilder<unknown>) =>
  sql<boolean>`${version} = any(string_to_array(${versions}, ','))`;

/** The 412 for a row without the required version. */
export const rowChanged = () =>
  preconditionFailed('This has changed in the meantime. Read it again, then repeat your change.', 'row_changed');
