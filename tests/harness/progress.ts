import type { Reporter, TestSpecification } from 'vitest/node';
import { isNight, isWhole } from './sample.ts';

const PAUSE_MILLISECONDS = 5000;

/** The levels by their script, with what each leaves out and the command that runs it. */
const LEVELS: Record<string, { command: string; leavesOut: string[] }> = {
  test: {
    command: 'npm test',
    leavesOut: [
      ...(isWhole ? [] : ['CI=true npm test     two thirds of the walks over all operations']),
      'npm run test:slow    processes, browsers, packages, backups, a short form of faults, upgrades and schedules',
      'npm run test:night   the long form of all of these, fuzzing, PostgreSQL 16 to 18',
    ],
  },
  'test:slow': {
    command: 'npm run test:slow',
    leavesOut: [
      'npm run test:night   more faults, upgrades, schedules and fail-overs, most pages of the documentation, all controls of the ' +
        'page, fuzzing, PostgreSQL 16 to 18',
    ],
  },
};
const level = isNight ? undefined : LEVELS[process.env.npm_lifecycle_event ?? ''];

/**
 * Prints the seed, what this level leaves out, and how many tests are done every few seconds where no terminal shows it, so that
 * a long suite does not look stuck.
 */
export default class Progress implements Reporter {
  #done = 0;
  #printedAt = performance.now();
  #seed = '';
  #isVerbose = false;

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    const projects = specifications.map(({ project }) => project);
    this.#seed = String(projects[0]?.config.env.SEED ?? '');
    // The slow suites are run with a reporter that prints each test.
    this.#isVerbose = projects.every(({ name }) => name.startsWith('slow'));
    this.#printSeed();
  }

  onTestCaseResult(): void {
    this.#done++;
    const isRecent = performance.now() - this.#printedAt < PAUSE_MILLISECONDS;
    if (process.stdout.isTTY || this.#isVerbose || isRecent) return;
    this.#printedAt = performance.now();
    console.log(`   ${this.#done} tests done`);
  }

  onTestRunEnd(): void {
    this.#printSeed();
    if (level) console.log(`Left out:\n${level.leavesOut.map((line) => `  ${line}`).join('\n')}\n`);
  }

  #printSeed(): void {
    const setting = `${isWhole && !isNight ? 'CI=true ' : ''}SEED=${this.#seed}`;
    console.log(`\nSeed ${this.#seed}${level ? `: ${setting} ${level.command} repeats this run` : ''}.`);
  }
}
