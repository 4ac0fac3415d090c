import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One directory for all files of a run's processes, removed afterwards. */
export default async function setup() {
  // Set by another project of the same run.
  if (process.env.TEST_WORKPLACE) return;
  const workplace = await mkdtemp(join(tmpdir(), 'deckhand-'));
  process.env.TEST_WORKPLACE = workplace;
  return () => rm(workplace, { recursive: true });
}
