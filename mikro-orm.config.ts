import { IN_MEMORY } from './server/database/embedded/location.ts';
import { ormOptions } from './server/database/options.ts';

/** For the MikroORM command line; the service itself uses its settings. */
export default await ormOptions({ DATA_DIR: IN_MEMORY, DATABASE_POOL_SIZE: 2, PREPARED_STATEMENTS: true });
