import { type RawBuilder, sql } from 'kysely';
import { preconditionFailed } from '../../shared/errors.ts';

/**
 * The version of a row: its number, which a trigger raises with every change, and the time of the last one but of a position, since
 * a database that was set back to a backup gives the same numbers to other changes.
 */
export const versionOf = (alias?: string): RawBuilder<string> => withTime('version', alias);

/** The versions that fit a row. The last release had the transaction in the place of the number. */
export const fittingVersions = (alias: string): RawBuilder<string[]> =>
  sql`array[${withTime('version', alias)}, ${withTime('xmin', alias)}]`;

function withTime(column: string, alias: string | undefined): RawBuilder<string> {
  const [number, time] = [column, 'updated_at'].map((name) => sql.ref(alias ? `${alias}.${name}` : name));
  return sql`(${number}::text || '-' || (extract(epoch from ${time}) * 1000)::bigint)`;
}

/** As a column of a statement with one table. */
export const VERSION = versionOf().as('version');
export type Versioned<Row> = Row & { version: string };

/** The number alone, for the event of the change. */
export const VERSION_NUMBER = sql.ref<number>('version').as('version_number');
export const numberIn = (version: string): number => Number.parseInt(version, 10);

/** A row with its version beside it, as in answers: `{ card, version }`. */
export function withVersion<Noun extends string, Row extends { version: string }>(noun: Noun, row: Row) {
  const { version, ...fields } = row;
  return { [noun]: fields, version } as Record<Noun, Omit<Row, 'version'>> & { version: string };
}

/** Whether one of the required versions, separated by commas, fits the row. */
export const isRequired = (fitting: RawBuilder<unknown>, if_version: string | undefined) =>
  if_version === undefined ? sql<boolean>`true` : isOneOf(fitting, sql`${if_version}::text`);

export const isOneOf = (fitting: RawBuilder<unknown>, versions: RawBuilder<unknown>) =>
  sql<boolean>`${fitting} && string_to_array(${versions}, ',')`;

/** The 412 for a row without the required version. */
export const rowChanged = () =>
  preconditionFailed('This has changed in the meantime. Read it again, then repeat your change.', 'row_changed');
