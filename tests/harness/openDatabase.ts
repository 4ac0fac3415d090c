import { testDatabase } from './service.ts';

/** Before the first suite of a worker: opening the database counts for no test's time limit. */
await testDatabase();
