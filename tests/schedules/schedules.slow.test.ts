import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { hasServerPrograms } from '../faults/privateServer.ts';

/** The short form of `npm run test:night -- schedules`. */

/** What the seeds must show, or they test less than they seem to; the night has a longer list. */
const LABELS = [
  ...['answer lost', 'connection lost', 'key held by another call', 'key replayed', 'lock waited for', 'node killed'],
  ...['serialization failure retried', 'stale plan retried'],
];

const LONGEST_MILLISECONDS = 5 * 60_000;

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
      played = await play('--seeds', '20');
    }, LONGEST_MILLISECONDS);

    it('lose nothing, double nothing, and come to rest; the seeds show what must happen', () => {
      const shown = /^20 seeds: .*/m.exec(played)?.[0];

      expect(shown, played).toBeDefined();
      expect(LABELS.filter((label) => !shown!.includes(`${label} `))).toEqual([]);
    });

    it('take the same steps under the same seed, alone and after others', async () => {
      const [alone] = /^seed 10: .*$/m.exec(await play('--from', '10', '--seeds', '1')) ?? [];

      expect(alone).toBeDefined();
      expect(played.split('\n')).toContain(alone);
    });
  },
);
