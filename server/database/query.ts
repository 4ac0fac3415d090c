import type { SqlEntityManager } from '@mikro-orm/postgresql';
import { type RawBuilder, sql } from 'kysely';

export type EntityManager = SqlEntityManager;

/** Runs one statement, in the transaction of `em` if there is one, with its values bound and not spliced into the text. */
export async function query<Row>(em: EntityManager, statement: RawBuilder<Row>): Promise<Row[]> {
  const { rows } = await statement.execute(em.getKysely());
  return rows;
}

/** Comments in front of a statement that change how long a connection waits for its answer. */
export const BRIEF = '/* brief */';
/** Without a limit, until the transaction ends: migrations, and waiting for another node that runs them. */
export const PATIENT = '/* patient */';

/** A statement whose answer takes milliseconds, or does not come at all: the first one of every request. */
export const brief = <Row>(statement: RawBuilder<Row>): RawBuilder<Row> => sql`${sql.raw(BRIEF)} ${statement}`;

/** Runs steps that belong together, all or none; a deadlock is tried again, three times at most. */
export async function transact<Result>(
  em: EntityManager,
  work: (em: EntityManager) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await em.fork().transactional((em) => work(em as EntityManager));
    } catch (error) {
      if (attempt === 3 || !RETRIED.has((error as { code?: string }).code ?? '')) throw error;
    }
  }
}
/** Deadlock, serialization failure. */
const RETRIED = new Set(['40P01', '40001']);

/** Says what a constraint of the database stands for: `orRefuse(work, { users_email_unique: () => invalid(…) })`. */
export async function orRefuse<Result>(work: Promise<Result>, refusals: Record<string, () => Error>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw refusals[(error as { constraint?: string }).constraint ?? '']?.() ?? error;
  }
}

const LARGEST_INTEGER = 2_147_483_647;

/** The place behind the last one; where that has the largest number, the same again, and the ids decide. */
export const behind = (last: RawBuilder<unknown>) =>
  sql<number>`least(coalesce((${last}), 0), ${sql.lit(LARGEST_INTEGER - 1)}) + 1`;
