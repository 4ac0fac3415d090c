import { afterAll } from 'vitest';
import { findWrong, mustBeRight } from './checkEvents.ts';
import { testDatabase } from './service.ts';

/** Before the first suite of a worker: opening the database counts for no test's time limit. */
const { db } = await testDatabase();

/** The suites of a worker share a database. */
const shared = globalThis as typeof globalThis & { lastChecked?: string };

afterAll(async () => {
  const { last, found } = await findWrong(db, shared.lastChecked);
  shared.lastChecked = last;
  mustBeRight(found);
});
