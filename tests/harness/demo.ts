import { connect, type Database } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { fillWithDemoData } from '../../server/database/seed/demo.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { migratedArchive } from './process.ts';
import { givenService } from './service.ts';

/** A service on new demo data, in memory. */
export async function givenDemoService(
  more: Record<string, string> = {},
): Promise<{ url: string; db: Database['db']; close: () => Promise<void> }> {
  const database = await connect(readSettings({ DATA_DIR: IN_MEMORY + (await migratedArchive()) }));
  await fillWithDemoData(database);
  const { url, app } = await givenService(more, { database });
  const close = async () => {
    await app.close();
    await database.close();
  };
  return { url, db: database.db, close };
}
