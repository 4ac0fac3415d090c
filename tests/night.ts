import { spawn } from 'node:child_process';
import { programOptions } from './harness/programOptions.ts';

/** Runs what takes too long for CI, one part after the other, and reports what failed: `npm run test:night`. */

const { only, seeds, from } = programOptions('npm run test:night --', {
  /** Part of the name of the parts to run. */
  only: '',
  /** How many schedules, and the first seed. */
  seeds: '10000',
  from: '1',
});

/** A slow suite, which does more at night. */
const slow = (suite: string) =>
  `node_modules/vitest/vitest.mjs run --project slow tests/slow/${suite}.test.ts`.split(' ');

type Part = { name: string; program: string[] };

const PARTS: Part[] = [
  { name: 'schedules', program: ['tests/schedules/main.ts', '--seeds', seeds, '--from', from] },
  { name: 'planted races', program: ['tests/schedules/plants.ts'] },
  { name: 'planted bugs in histories', program: ['tests/history/planted.ts'] },
  { name: 'faults', program: ['tests/faults/main.ts'] },
  { name: 'controls of the page', program: slow('pageRoles') },
  { name: 'changes of the documentation', program: slow('documentedChanges') },
  { name: 'contract of the package', program: slow('testKitPackage') },
  { name: 'fuzz', program: ['tests/fuzz/run.ts'] },
  { name: 'fuzz on PostgreSQL', program: ['tests/fuzz/run.ts', '--database', 'postgresql'] },
];

const failed: string[] = [];
for (const { name, program } of PARTS.filter((part) => part.name.includes(only))) {
  const begun = performance.now();
  const isPassed = await run(program);
  console.log(`${isPassed ? 'passed' : 'FAILED'}: ${name}, ${Math.round((performance.now() - begun) / 1000)} s`);
  if (!isPassed) failed.push(`node ${program.join(' ')}`);
}
if (failed.length > 0) {
  console.error(`Run again what failed:\n${failed.join('\n')}`);
  process.exitCode = 1;
}

function run(program: string[]): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, program, { stdio: 'inherit', env: { ...process.env, NIGHT: 'true' } });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code === 0));
  });
}
