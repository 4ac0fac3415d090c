import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { hasServerPrograms } from '../faults/privateServer.ts';

/** The short form of `npm run test:night -- --only schedules`. */

const LONGEST_MILLISECONDS = 10 * 60_000;

const play = (...options: string[]) =>
  promisify(execFile)(process.execPath, ['tests/schedules/main.ts', ...options], { encoding: 'utf8' }).then(
    ({ stdout }) => stdout,
    // What failed, with the command that shows it again.
    ({ stderr }) => stderr,
  );

describe.skipIf(!hasServerPrograms())(
  'two nodes under schedules that seeds decide',
  { timeout: LONGEST_MILLISECONDS },
  () => {
    it('lose nothing, double nothing, and come to rest; the seeds show all that must happen', async () => {
      expect(await play('--seeds', '100')).toMatch(/^100 seeds: /);
    });

    it('take the same steps under the same seed, alone and after others', async () => {
      const digests = async (...options: string[]) =>
        (await play('--trace', 'digest', ...options)).match(/^seed .*$/gm);

      expect((await digests('--from', '8', '--seeds', '3'))?.slice(2)).toEqual(
        await digests('--from', '10', '--seeds', '1'),
      );
    });
  },
);
