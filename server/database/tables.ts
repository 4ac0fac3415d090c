import type { InferKyselyDB } from '@mikro-orm/postgresql';
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { entities } from './entities.ts';

/** The types of all tables and columns, inferred from the entities: a misspelt name does not compile. */
export type Tables = InferKyselyDB<(typeof entities)[number]>;

export type TableName = keyof Tables;

/** The types of a selected row, an inserted row, and an update. */
export type Row<Table extends TableName> = Selectable<Tables[Table]>;
export type NewRow<Table extends TableName> = Insertable<Tables[Table]>;
export type RowChanges<Table extends TableName> = Updateable<Tables[Table]>;
