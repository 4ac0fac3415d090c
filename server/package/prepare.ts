import { makePrepared } from '../database/snapshot.ts';

/** Runs with `npm ci`: a migrated database, so that the first start of the service, of tests and of the test kit is fast. */
await makePrepared().catch((error: Error) =>
  console.error(`The first start will take some seconds longer, since it has to create the tables: ${error.message}`),
);
