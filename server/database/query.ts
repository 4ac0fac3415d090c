import type { SqlEntityManager } from '@mikro-orm/postgresql';
import { type RawBuilder, sql } from 'kysely';

export type EntityManager = SqlEntityManager;

/** Runs one statement, in the transaction of `em` if there is one, with its values bound and not spliced into the text. */
export async function query<Row>(em: EntityManager, statement: RawBuilder<Row>): Promise<Row[]> {
  const { rows } = await statement.execute(em.getKysely());
  return rows;
}

const LARGEST_INTEGER = 2_147_483_647;

/** The place behind the last one; where that has the largest number, the same again, and the ids decide. */
export const behind = (last: RawBuilder<unknown>) =>
  sql<number>`least(coalesce((${last}), 0), ${sql.lit(LARGEST_INTEGER - 1)}) + 1`;
