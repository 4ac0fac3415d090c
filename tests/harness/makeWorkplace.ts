import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Of this process: a run inside a test of another run has its own. */
const run = globalThis as { workplace?: string };

/** Makes one directory for everything that the processes of a run write, all projects together; removed afterwards. */
export default async function setup() {
  if (run.workplace) return;
  const workplace = await mkdtemp(join(tmpdir(), 'deckhand-'));
  run.workplace = workplace;
  process.env.TEST_WORKPLACE = workplace;
  return () => rm(workplace, { recursive: true });
}
