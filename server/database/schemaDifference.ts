import type { MikroORM } from '@mikro-orm/core';
import { TENANT_KEYS } from './tenantKeys.ts';

/** Entities can't express these: tenant foreign keys, triggers, the search index, defaults of an incarnation. */
const BY_HAND = new RegExp(
  [
    `drop constraint "(${Object.keys(TENANT_KEYS).join('|')})"`,
    'drop index "cards_search_index"',
    'alter table "(events|audit_entries)" alter column "(transaction_id|id)" set default',
    'drop (trigger|function) if exists \\S*"\\w+_(fill|raise)_',
  ].join('|'),
);

/** The statements that would bring the tables of a migrated database to what the entities say. */
export async function schemaDifference(orm: MikroORM): Promise<string[]> {
  const statements = (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);
  return statements.filter((statement) => !BY_HAND.test(statement));
}
