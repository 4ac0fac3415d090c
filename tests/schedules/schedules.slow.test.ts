import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasServerPrograms } from '../faults/privateServer.ts';

/** The short form of `npm run test:night -- --only schedules`. */

const LONGEST_MILLISECONDS = 10 * 60_000;

const play = (...options: string[]) =>
  promisify(execFile)(process.execPath, ['tests/schedules/main.ts', '--trace', 'digest', ...options]).then(
    ({ stdout }) => stdout,
    // What failed, with the command that shows it again.
    ({ stderr }) => stderr,
  );

describe.skipIf(!hasServerPrograms())(
  'two nodes under schedules that seeds decide',
  { timeout: LONGEST_MILLISECONDS },
  () => {
    let played: string;
    beforeAll(async () => {
      played = await play('--seeds', '100');
    }, LONGEST_MILLISECONDS);

    it('lose nothing, double nothing, and come to rest; the seeds show all that must happen', () => {
      expect(played).toMatch(/^100 seeds: /m);
    });

    it('take the same steps under the same seed, alone and after others', async () => {
      const [alone] = /^seed 10: .*$/m.exec(await play('--from', '10', '--seeds', '1')) ?? [];

      expect(alone).toBeDefined();
      expect(played.split('\n')).toContain(alone);
    });
  },
);
