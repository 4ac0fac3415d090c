import { randomBytes } from 'node:crypto';
import { givenDirectory } from '../harness/process.ts';
import { createDatabase, findTestServer, onServer } from '../harness/server.ts';

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
  const name = `deckhand_bench_${randomBytes(6).toString('hex')}`;
  const DATABASE_URL = Object.assign(new URL(url), { pathname: `/${name}` }).href;
  await createDatabase(DATABASE_URL);
  const remove = async () => {
    if (!left.delete(remove)) return;
    await onServer(url, `drop database ${name} with (force)`);
  };
  left.add(remove);
  return { settings: { DATABASE_URL, JWT_SECRET }, remove };
}

const left = new Set<() => Promise<void>>();

/** Cleans up after an interrupted run. */
export const removeBenchDatabases = () => Promise.all([...left].map((remove) => remove()));
