import { makePrepared } from '../database/snapshot.ts';

/** Runs with `npm ci`: what makes starts of the service, of the command line and of tests fast. Nothing works only with it. */

/** A migrated database. */
await makePrepared().catch((error: Error) =>
  console.error(`The first start will take some seconds longer, since it has to create the tables: ${error.message}`),
);
/** The programs in few files. Its bundler is missing in an installation without development dependencies. */
await import('./serviceBundle.ts')
  .then(({ makeBundle }) => makeBundle())
  .catch((error: Error) => console.error(`Starts will take a second longer: ${error.message.split('\n')[0]}`));
