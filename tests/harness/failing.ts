import type { CompiledQuery, KyselyPlugin } from 'kysely';
import type { Database } from '../../server/database/connect.ts';
import type { Db } from '../../server/database/query.ts';

/** A database that still tells who is calling, and fails at everything that is done for them. */
export const failingAfterIdentification = (database: Database): Database => ({
  ...database,
  db: failing(database.db),
});

function failing(db: Db): Db {
  const executeQuery = (statement: CompiledQuery) =>
    isIdentification(statement.sql) ? db.executeQuery(statement) : fail();
  return new Proxy(db.withPlugin(NOTHING), {
    get: (target, name) => {
      if (name === 'executeQuery') return executeQuery;
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const isIdentification = (text: string) => text.includes('from sessions');

const fail = (): never => {
  throw new Error('A fault of the database, with internals: table cards, line 42.');
};

const NOTHING: KyselyPlugin = { transformQuery: fail, transformResult: fail };
