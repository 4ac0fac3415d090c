import { type RawBuilder, sql } from 'kysely';
import type { Db } from './query.ts';

/** Locks the project row before several of its rows change: one lock order prevents deadlocks. */
export const lockProject = (db: Db, id: number) => lockProjects(db, sql`id = ${id}`);

/** Locks the projects that meet the condition in the order of their ids: one lock order prevents deadlocks. */
export const lockProjects = (db: Db, condition: RawBuilder<boolean>) =>
  db.selectFrom('projects').select('id').where(condition).orderBy('id').forNoKeyUpdate().execute();
