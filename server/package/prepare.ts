import { makePrepared } from '../database/snapshot.ts';

/** Runs with `npm ci`. The first two steps only make starts faster; the page for browsers exists only after the third. */

/** A migrated database. */
await makePrepared().catch((error: Error) =>
  console.error(`The first start will take some seconds longer, since it has to create the tables: ${error.message}`),
);
/** The programs in few files. Its bundler is missing in an installation without development dependencies. */
await import('./serviceBundle.ts')
  .then(({ makeBundle }) => makeBundle())
  .catch((error: Error) => console.error(`Starts will take a second longer: ${error.message.split('\n')[0]}`));
/** The page for browsers. A failure ends `npm ci`: a service without it would be noticed too late. */
await import('./pageBuild.ts').then(({ buildPages }) => buildPages(), explainMissing);

function explainMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  console.error('The board for browsers is not built, since its bundler is a development dependency.');
}
