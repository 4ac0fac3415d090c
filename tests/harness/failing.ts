import type { KyselyPlugin } from 'kysely';
import type { Database } from '../../server/database/connect.ts';

/** A database that still tells who is calling, and fails at everything that is done for them. */
export const failingAfterIdentification = (database: Database): Database => ({
  ...database,
  db: database.db.withPlugin(ALL_BUT_IDENTIFICATION),
});

const fail = (): never => {
  throw new Error('A fault of the database, with internals: table cards, line 42.');
};

const ALL_BUT_IDENTIFICATION: KyselyPlugin = {
  transformQuery: ({ node }) => (JSON.stringify(node).includes('from sessions') ? node : fail()),
  transformResult: async ({ result }) => result,
};
