import { spawnSync } from 'node:child_process';
import { plantsIn, withPlanted } from '../harness/planted.ts';
import { programOptions } from '../harness/programOptions.ts';

/** Plants bugs into a copy of the sources, and counts the seeds until one is found: `node tests/schedules/plants.ts`. */

const { seeds, from, again, only } = programOptions('node tests/schedules/plants.ts', {
  ...{ seeds: '1000', from: '1', again: '10', only: '' },
});

for (const plant of plantsIn('tests/schedules/plants.txt').filter(({ title }) => title.includes(only))) {
  if (plant.note) {
    console.log(`SKIPPED: ${plant.title}. ${plant.note}`);
    continue;
  }
  await withPlanted(plant, async (cwd) => {
    const run = (...options: string[]) =>
      spawnSync(process.execPath, ['tests/schedules/main.ts', ...options], { cwd, encoding: 'utf8' });
    const { stderr } = run('--from', from, '--seeds', seeds, '--until', plant.shows);
    const failing = stderr.split(/^(?=Seed \d+ fails)/m).find((text) => text.includes(plant.shows));
    const seed = /^Seed (\d+) fails/.exec(failing ?? '')?.[1];
    const found = seed && Array.from({ length: Number(again) }, () => run('--from', seed, '--seeds', '1').status === 1);
    console.log(
      found
        ? `Found: ${plant.title}, by seed ${seed}, again ${found.filter(Boolean).length} of ${again} times.\n${failing!.trim()}`
        : `NOT FOUND in ${seeds} seeds: ${plant.title}.\n${stderr}`,
    );
    if (!found || found.includes(false)) process.exitCode = 1;
  });
}
