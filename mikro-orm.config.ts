import { lockDataDirectory, stopFirst } from './server/database/embedded/dataDirectory.ts';
import { isInMemory } from './server/database/embedded/location.ts';
import { ormOptions } from './server/database/options.ts';
import { readSettings } from './server/runtime/env.ts';
import { environment } from './server/runtime/environment.ts';

/** For MikroORM's own command line: the database of the settings. Like the service, it locks the embedded one. */

const { JWT_SECRET = 'not used by the command line of the ORM', ...others } = environment();
const settings = readSettings({ ...others, JWT_SECRET });
const { DATABASE_URL, DATA_DIR } = settings;
if (!DATABASE_URL && !isInMemory(DATA_DIR)) await lockDataDirectory(DATA_DIR).catch(stopFirst(DATA_DIR));

export default await ormOptions(settings);
