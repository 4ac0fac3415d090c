import type { MikroORM } from '@mikro-orm/core';

/** Made by hand in migrations, since entities can't express them: tenant foreign keys, triggers, the search index. */
const BY_HAND =
  /drop constraint "\w+_same_tenant_\w+"|drop index "cards_search_index"|drop (trigger|function) if exists \S*"\w*(cards|comments)_/;

/** The statements that would bring the tables of a migrated database to what the entities say. */
export async function schemaDifference(orm: MikroORM): Promise<string[]> {
  const statements = (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);
  return statements.filter((statement) => !BY_HAND.test(statement));
}
