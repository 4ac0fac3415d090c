import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

/** The directory of the test run, which removes it; a standalone program creates its own. */
export function workplace(): string {
  const { TEST_WORKPLACE } = process.env;
  if (TEST_WORKPLACE) return TEST_WORKPLACE;
  if (!own) {
    const made = mkdtempSync(join(tmpdir(), 'deckhand-'));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
    own = made;
  }
  return own;
}

let own: string | undefined;

/** Makes a file or directory by the first worker that needs it; the others wait for it. */
export async function madeOnce(name: string, make: (path: string) => Promise<void>): Promise<string> {
  const made = join(workplace(), name);
  const isFirst = await mkdir(`${made}.lock`).then(
    () => true,
    () => false,
  );
  if (isFirst) {
    await make(`${made}.new`);
    await rename(`${made}.new`, made);
  }
  while (!existsSync(made)) await setTimeout(50);
  return made;
}
