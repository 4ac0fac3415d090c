import type { InferKyselyDB } from '@mikro-orm/postgresql';
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { entities } from './entities.ts';

/** Every table with the types of its columns, as the entities say: a misspelt one does not compile. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;

export type TableName = keyof Tables;

/** A row as it is read, as it is inserted, and what can be changed of it. */
export type Row<Table extends TableName> = Selectable<Tables[Table]>;
export type NewRow<Table extends TableName> = Insertable<Tables[Table]>;
export type RowChanges<Table extends TableName> = Updateable<Tables[Table]>;
