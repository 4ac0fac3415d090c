import { connect } from '../../server/database/connect.ts';
import { fillWithDemoData } from '../../server/database/seed/demo.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenMigratedDirectory } from './process.ts';
import { givenService } from './service.ts';

/** A service on new demo data. */
export async function givenDemoService(): Promise<{ url: string; close: () => Promise<void> }> {
  const database = await connect(readSettings({ DATA_DIR: await givenMigratedDirectory() }));
  await fillWithDemoData(database);
  const { url, app } = await givenService({}, { database });
  const close = async () => {
    await app.close();
    await database.close();
  };
  return { url, close };
}
