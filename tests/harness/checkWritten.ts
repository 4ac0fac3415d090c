import { afterAll } from 'vitest';
import type { Database } from '../../server/database/connect.ts';

/** The suites of a worker share a database, unless none of them needs one. */
const shared = globalThis as typeof globalThis & { testDatabase?: Promise<Database>; lastChecked?: string };

afterAll(async () => {
  if (!shared.testDatabase) return;
  const { findWrong, mustBeRight } = await import('./checkEvents.ts');
  const { last, found } = await findWrong((await shared.testDatabase).db, shared.lastChecked);
  shared.lastChecked = last;
  mustBeRight(found);
});
