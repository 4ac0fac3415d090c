import { type EntityName, p } from '@mikro-orm/core';

/** Columns that many tables share. */

export const identity = () => p.integer().primary().autoincrement().generated('by default as identity');

/** A foreign key without cascade; the property is the id. */
// biome-ignore lint/suspicious/noExplicitAny: tables refer to each other, and only the id of the target is used
export const refersTo = <Column extends string>(target: EntityName<any>, column: Column) =>
  p.manyToOne(target).mapToPk().fieldName(column).updateRule('no action').deleteRule('no action').$type<number>();

/**
 * A reference without a foreign key of its own, since each key slows down inserts. A composite one of
 * `tenantKeys.ts` covers it, together with the tenant.
 */
export const refersWithinTenant = <Column extends string>(target: Parameters<typeof refersTo>[0], column: Column) =>
  refersTo(target, column).createForeignKeyConstraint(false);

/** A reference within one table, with an explicit type, since the entity's own type is not known yet. */
export type SelfReference<Column extends string> = ReturnType<ReturnType<typeof refersTo<Column>>['nullable']>;

export const timestamp = () => p.datetime(3);

export const position = () => p.integer().default(0);

/** The column `brought` of copies: the template's values at the last sync or push. What differs now was edited by the project. */
export const syncedValues = () => p.json<Record<string, unknown>>().nullable();

export const created = () => ({
  created_at: timestamp().defaultRaw('now()'),
  updated_at: timestamp().defaultRaw('now()'),
});

/** Requests never delete rows, only mark them, with the deletion that can be undone (null if an older version deleted them). */
export const softDeleted = () => ({
  ...created(),
  deleted_at: timestamp().nullable(),
  deletion_id: p.integer().nullable(),
  /** Raised by a trigger with each change that callers can see. */
  version: p.integer().default(1),
});
