import { spawnSync } from 'node:child_process';
import { programOptions } from './harness/programOptions.ts';

/** Runs what takes too long for CI, one part after the other, and reports what failed: `npm run test:night`. */

const { only, seeds, from } = programOptions('npm run test:night --', {
  /** Part of the name of the parts to run. */
  only: '',
  /** How many schedules, and the first seed. */
  seeds: '10000',
  from: '1',
});

type Part = { name: string; program: string[] };

const PARTS: Part[] = [
  { name: 'schedules', program: ['tests/schedules/main.ts', '--seeds', seeds, '--from', from] },
  { name: 'planted bugs', program: ['tests/schedules/plants.ts'] },
  { name: 'faults', program: ['tests/faults/main.ts'] },
  // With NIGHT, all controls of the page, rounds of kills and suites on both databases.
  { name: 'all suites', program: ['node_modules/vitest/vitest.mjs', 'run'] },
  { name: 'fuzz', program: ['tests/fuzz/run.ts'] },
  { name: 'fuzz on PostgreSQL', program: ['tests/fuzz/run.ts', '--database', 'postgresql'] },
];

const failed: string[] = [];
for (const { name, program } of PARTS.filter((part) => part.name.includes(only))) {
  const begun = performance.now();
  const { status } = spawnSync(process.execPath, program, { stdio: 'inherit', env: { ...process.env, NIGHT: 'true' } });
  const isPassed = status === 0;
  console.log(`${isPassed ? 'passed' : 'FAILED'}: ${name}, ${Math.round((performance.now() - begun) / 1000)} s`);
  if (!isPassed) failed.push(`NIGHT=true npx node ${program.join(' ')}`);
}
if (failed.length > 0) {
  console.error(`Run again what failed:\n${failed.join('\n')}`);
  process.exitCode = 1;
}
