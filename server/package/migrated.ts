import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { connect } from '../database/connect.ts';
import { migrate } from '../database/migrate.ts';
import { embeddedDirectory } from '../database/options.ts';
import { readSettings } from '../runtime/env.ts';

/** Creates an embedded database with all tables and no rows, and a tar archive of it, which a database in memory can load. */
export async function makeMigrated(DATA_DIR: string, archive: string): Promise<void> {
  const database = await connect(readSettings({ DATA_DIR }));
  await migrate(database);
  await database.close();

  // PGlite expects names that begin with a slash.
  const names = ['--absolute-names', '--transform', 's,^\\./,/,'];
  const options = ['--format=ustar', '--auto-compress', ...names];
  await promisify(execFile)('tar', ['-C', embeddedDirectory(DATA_DIR), ...options, '-cf', archive, '.']);
}
