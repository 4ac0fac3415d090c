import { type EntityName, p } from '@mikro-orm/core';

/** Columns that many tables share. */

export const identity = () => p.integer().primary().autoincrement().generated('by default as identity');

/** A reference to a row that can't be removed while it is referred to; the property holds the id. */
// biome-ignore lint/suspicious/noExplicitAny: tables refer to each other, and only the id of the target is used
export const refersTo = <Column extends string>(target: EntityName<any>, column: Column) =>
  p.manyToOne(target).mapToPk().fieldName(column).updateRule('no action').deleteRule('no action').$type<number>();

/**
 * A reference without a foreign key of its own, which would cost time with each of the many rows that a sync writes. The
 * migrations say what checks it: a constraint together with the project, or a trigger once for each statement.
 */
export const refersWithoutKey = <Column extends string>(target: Parameters<typeof refersTo>[0], column: Column) =>
  refersTo(target, column).nullable().createForeignKeyConstraint(false);

/** The same within one table: its type must be written down, since the table's own is not known yet. */
export type SelfReference<Column extends string> = ReturnType<ReturnType<typeof refersTo<Column>>['nullable']>;

export const moment = () => p.datetime(3);

export const position = () => p.integer().default(0);

export const created = () => ({
  created_at: moment().defaultRaw('now()'),
  updated_at: moment().defaultRaw('now()'),
});

/** Rows are never removed by requests, only marked. */
export const softDeleted = () => ({ ...created(), deleted_at: moment().nullable() });

export const LIVE = 'deleted_at is null';
