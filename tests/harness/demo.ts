import { connect, type Database } from '../../server/database/connect.ts';
import { migrate } from '../../server/database/migrate.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenDemoDatabase } from './process.ts';
import { givenService } from './service.ts';
import { startNode } from './usedService.ts';

/** Services with new demo data in this process: with the server, since a database there is ready at once. */

export type DemoNode = { url: string; db: Database['db']; close: () => Promise<void> };

/** A whole node: it also delivers events, sends mails and works on rollouts. */
export async function givenDemoNode(more: Record<string, string> = {}): Promise<DemoNode> {
  const { settings, remove } = await givenDemoDatabase();
  const node = await startNode({ ...settings, RATE_LIMIT_PER_MINUTE: '1000000', TEST_CHECKOUT: 'on', ...more });
  const close = async () => {
    await node.stop(true);
    await remove();
  };
  return { url: node.url, db: node.database.db, close };
}

/** A service without background work. */
export async function givenDemoService(more: Record<string, string> = {}): Promise<DemoNode> {
  const { settings, remove } = await givenDemoDatabase();
  const database = await connect(readSettings(settings));
  await migrate(database);
  const { url, app } = await givenService(more, { database });
  const close = async () => {
    await app.close();
    await database.close();
    await remove();
  };
  return { url, db: database.db, close };
}
