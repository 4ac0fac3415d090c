import { IN_MEMORY, ormOptions } from './server/database/options.ts';

/** For tools that look at the entities and migrations; the service itself connects by its settings. */
export default await ormOptions({ DATA_DIR: IN_MEMORY, DATABASE_POOL_SIZE: 2, PREPARED_STATEMENTS: true });
