import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One directory for all that the processes of a run write; removed afterwards. */
export default async function setup() {
  // Set by another project of the same run.
  if (process.env.TEST_WORKPLACE) return;
  const workplace = await mkdtemp(join(tmpdir(), 'deckhand-'));
  process.env.TEST_WORKPLACE = workplace;
  return () => rm(workplace, { recursive: true });
}
