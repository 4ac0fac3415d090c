import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { programOptions } from '../harness/programOptions.ts';

/** Plants races into a copy of the sources, and counts the seeds until one is found: `node tests/schedules/plants.ts`. */

type Plant = { name: string; file: string; from: string; to: string };

const PLANTS: Plant[] = [
  {
    name: 'a claim of webhooks that waits for locks',
    file: 'server/domain/event/webhookClaim.ts',
    from: 'for update of w skip locked',
    to: 'for update of w',
  },
  {
    name: 'a lease that is not renewed',
    file: 'server/domain/event/webhookWork.ts',
    from: 'renewal ??= setInterval(renew, RENEW_MILLISECONDS).unref();',
    to: 'renewal ??= setInterval(() => undefined, RENEW_MILLISECONDS).unref();',
  },
  {
    name: 'a rollout whose steps wait for each other',
    file: 'server/domain/template/rolloutStep.ts',
    from: 'for no key update skip locked',
    to: 'for no key update',
  },
  {
    name: 'a key that a repeat takes at once',
    file: 'server/domain/access/idempotencyKey.ts',
    from: 'k.finished_at is null and k.held_until < now()',
    to: 'k.finished_at is null',
  },
];

const ROOT = resolve(import.meta.dirname, '../..');
const { seeds, from, again, only } = programOptions('node tests/schedules/plants.ts', {
  seeds: '1000',
  from: '1',
  again: '10',
  only: '',
});

for (const plant of PLANTS.filter(({ name }) => name.includes(only))) {
  const directory = mkdtempSync(join(tmpdir(), 'deckhand-planted-'));
  try {
    copySources(directory, plant);
    const run = (...options: string[]) =>
      spawnSync(process.execPath, ['tests/schedules/main.ts', '--stop', 'on', ...options], {
        cwd: directory,
        encoding: 'utf8',
      });
    const { stderr } = run('--from', from, '--seeds', seeds);
    const seed = /Seed (\d+) fails/.exec(stderr)?.[1];
    const found = seed && Array.from({ length: Number(again) }, () => run('--from', seed, '--seeds', '1').status === 1);
    console.log(
      found
        ? `Found: ${plant.name}, by seed ${seed}, again ${found.filter(Boolean).length} of ${again} times.\n${stderr.trim()}`
        : `NOT FOUND in ${seeds} seeds: ${plant.name}.\n${stderr}`,
    );
    if (!found || found.includes(false)) process.exitCode = 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function copySources(directory: string, { file, from, to }: Plant): void {
  for (const part of ['server', 'shared', 'client', 'tests', 'package.json', 'tsconfig.json'])
    cpSync(join(ROOT, part), join(directory, part), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const text = readFileSync(join(directory, file), 'utf8');
  if (text.split(from).length !== 2) throw new Error(`${file} does not have the text once: ${from}`);
  writeFileSync(
    join(directory, file),
    text.replace(from, () => to),
  );
}
