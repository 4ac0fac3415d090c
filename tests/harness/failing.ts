import type { Database } from '../../server/database/connect.ts';
import type { EntityManager } from '../../server/database/query.ts';

/** A database that still tells who is calling, and fails at everything that is done for them. */
export const failingAfterIdentification = (database: Database): Database => ({
  ...database,
  fork: () => failing(database.fork()),
});

const failing = (em: EntityManager): EntityManager =>
  new Proxy(em, {
    get: (target, name) => {
      if (name === 'getKysely') return () => target.getKysely().withPlugin(ALL_BUT_IDENTIFICATION);
      return name === 'fork' || name === 'transactional' ? fail : Reflect.get(target, name);
    },
  });

const fail = (): never => {
  throw new Error('A fault of the database, with internals: table cards, line 42.');
};

type Plugin = Parameters<ReturnType<EntityManager['getKysely']>['withPlugin']>[0];

const ALL_BUT_IDENTIFICATION: Plugin = {
  transformQuery: ({ node }) => (JSON.stringify(node).includes('from sessions') ? node : fail()),
  transformResult: async ({ result }) => result,
};
