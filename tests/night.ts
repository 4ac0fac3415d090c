import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

/** Runs what takes too long before each change, one area after the other, and says what failed: `npm run test:night`. */

/** A program and its options; those of the caller replace them, or are added. */
type Program = { words: string[]; options?: Record<string, string> };
type Area = {
  says: string;
  example: string;
  programs: Program[];
  /** Another area has it, too. */
  isPart?: boolean;
};

const AREAS: Record<string, Area> = {
  schedules: {
    says: '10,000 schedules of two nodes',
    example: '--seeds 1000 --from 1',
    programs: [{ words: ['tests/schedules/main.ts'], options: { seeds: '10000', from: '1' } }],
  },
  plants: {
    says: 'bugs planted in copies of the sources, which schedules must find',
    example: '--only webhook',
    programs: [{ words: ['tests/schedules/plants.ts'] }],
  },
  faults: {
    says: 'kills, freezes, fail-overs, upgrades, a mirror of a board, a full disk',
    example: '--only mirror --kills 10',
    programs: [{ words: ['tests/faults/main.ts'] }],
  },
  upgrades: {
    says: 'upgrades from earlier versions under load, a part of the faults',
    example: '--cards 30000',
    programs: [{ words: ['tests/faults/main.ts'], options: { only: 'upgrade' } }],
    isPart: true,
  },
  suites: {
    says: 'all quick and slow suites at full length, on both databases',
    example: '--project slow tests/page',
    programs: [{ words: ['node_modules/vitest/vitest.mjs', 'run'] }],
  },
  postgresql: {
    says: 'the quick suites on PostgreSQL 16, 17 and 18',
    example: '--server 18 --suites plans,schema',
    programs: ['16', '17', '18'].map((server) => ({ words: ['tests/database/otherServer.ts'], options: { server } })),
  },
  fuzz: {
    says: 'random requests on both databases',
    example: '--requests 1000 --database embedded',
    programs: ['embedded', 'postgresql'].map((database) => ({ words: ['tests/fuzz/run.ts'], options: { database } })),
  },
};

const [wanted, ...given] = process.argv.slice(2);
if (wanted === '--help') {
  const rows = Object.entries(AREAS).map(([area, { says, example }]) => `  ${area.padEnd(12)}${says} (${example})`);
  console.log(`Usage: npm run test:night [-- AREA [OPTIONS]]. Without an area, it runs all.\n\n${rows.join('\n')}`);
  process.exit(0);
}
if (wanted !== undefined && !(wanted in AREAS)) {
  console.error(`There is no area ${wanted}. Areas: ${Object.keys(AREAS).join(', ')}.`);
  process.exit(2);
}

const failed: string[] = [];
for (const [area, { says, programs, isPart }] of Object.entries(AREAS)) {
  if (wanted === undefined ? isPart : wanted !== area) continue;
  console.log(`\n${area}: ${says}`);
  const begun = performance.now();
  const before = failed.length;
  // Options of the caller may make programs equal.
  for (const command of new Set(programs.map(commandOf)))
    if (!(await succeeds(command))) failed.push(`NIGHT=true npx node ${command}`);
  const seconds = Math.round((performance.now() - begun) / 1000);
  console.log(`${failed.length === before ? 'passed' : 'FAILED'}: ${area}, ${seconds} s`);
}
if (failed.length > 0) {
  console.error(`\nRun again what failed:\n${failed.join('\n')}`);
  process.exitCode = 1;
}

function commandOf({ words, options = {} }: Program): string {
  const { values } = parseArgs({ args: given, strict: false });
  const own = Object.entries(options).filter(([name]) => !(name in values));
  return [...words, ...own.map(([name, value]) => `--${name} ${value}`), ...given.map(quoted)].join(' ');
}

/** For a shell. */
function quoted(word: string): string {
  return /^[\w./:,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

async function succeeds(command: string): Promise<boolean> {
  const env = { ...process.env, NIGHT: 'true' };
  const child = spawn('sh', ['-c', `exec '${process.execPath}' ${command}`], { stdio: 'inherit', env });
  const stop = (signal: NodeJS.Signals) => {
    child.kill(signal);
    process.exitCode = 130;
  };
  process.once('SIGTERM', stop).once('SIGINT', stop);
  const [code] = await once(child, 'close');
  process.off('SIGTERM', stop).off('SIGINT', stop);
  if (process.exitCode === 130) process.exit();
  return code === 0;
}
