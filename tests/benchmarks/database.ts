import { randomBytes } from 'node:crypto';
import { givenDirectory } from '../harness/process.ts';
import { findTestServer, givenServerDatabase } from '../harness/server.ts';

type BenchDatabase = {
  settings: { JWT_SECRET: string; DATABASE_URL?: string; DATA_DIR?: string };
  remove: () => Promise<void>;
};

/** A new database to measure on: on the PostgreSQL server of the tests, or the embedded one with `-- embedded`. */
export async function givenBenchDatabase({
  isEmbedded = process.argv.includes('embedded'),
} = {}): Promise<BenchDatabase> {
  const JWT_SECRET = randomBytes(32).toString('hex');
  if (isEmbedded) return { settings: { JWT_SECRET, DATA_DIR: await givenDirectory() }, remove: async () => {} };

  const { url } = await findTestServer();
  if (url === undefined) throw new Error('No PostgreSQL server is reachable: add -- embedded.');
  const database = await givenServerDatabase(url, 'bench');
  const remove = async () => {
    if (left.delete(remove)) await database.remove();
  };
  left.add(remove);
  return { settings: { DATABASE_URL: database.url, JWT_SECRET }, remove };
}

const left = new Set<() => Promise<void>>();

/** Cleans up after an interrupted run. */
export const removeBenchDatabases = () => Promise.all([...left].map((remove) => remove()));
