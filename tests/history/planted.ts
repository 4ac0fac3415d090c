import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { givenDatabase, withRemoval } from '../faults/outcome.ts';
import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { findTestServer } from '../harness/server.ts';
import { historyOfReplicas } from './faults.ts';
import { runHistory } from './run.ts';

/** Plants bugs in copies of the service, one at a time, and expects that their histories show it: `node tests/history/planted.ts`. */

/** The first line of a plant names the anomaly, the second one the file. The others are texts and what replaces them. */
const PLANTS = readFileSync(join(import.meta.dirname, 'plants.txt'), 'utf8')
  .trim()
  .split('\n\n')
  .map((plant) => {
    const [title = '', file = '', ...lines] = plant.split('\n');
    const [name = '', finds = ''] = title.split(': ');
    const texts = lines.map((line) => line.slice(2));
    const changes = texts.flatMap((from, at) => (at % 2 ? [] : [[from, texts[at + 1]!] as const]));
    return { name, finds, file, changes, onReplicas: name.includes('replica') };
  });

const { only, calls } = programOptions('node tests/history/planted.ts', { only: '', calls: '500' });
const ROOT = join(import.meta.dirname, '../..');
const { url } = await findTestServer();
if (!url) throw new Error('This needs a PostgreSQL server.');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
let missed = 0;
try {
  for (const plant of PLANTS.filter(({ name }) => name.includes(only))) {
    const { names, counts } = await namesFor(plant);
    const isFound = names.has(plant.finds);
    if (!isFound) missed++;
    console.log(`${isFound ? 'found' : 'MISSED'}: ${plant.name} (${[...names].join(', ') || 'no anomaly'}; ${counts})`);
  }
} finally {
  await removeProcesses();
}
process.exit(missed > 0 ? 1 : 0);

/** The anomalies in the histories of a copy of the service. */
async function namesFor({ name, file, changes, onReplicas }: (typeof PLANTS)[number]) {
  const directory = mkdtempSync(join(tmpdir(), 'deckhand-planted-'));
  try {
    for (const entry of readdirSync(ROOT))
      if (entry !== 'server') symlinkSync(join(ROOT, entry), join(directory, entry));
    cpSync(join(ROOT, 'server'), join(directory, 'server'), { recursive: true });
    const source = changes.reduce(
      (text, [from, to]) => {
        if (!text.includes(from)) throw new Error(`${file} has no ${from}`);
        return text.replace(from, () => to);
      },
      readFileSync(join(ROOT, file), 'utf8'),
    );
    writeFileSync(join(directory, file), source);

    const program = join(directory, 'server/boot/main.js');
    const size = { calls: Number(calls), seconds: 120, callers: 8, seed: 1, program, longestDeliverySeconds: 10 };
    const { violations, sent } = onReplicas
      ? await historyOfReplicas(size)
      : await withRemoval(await givenDatabase(url!), ({ settings }) =>
          runHistory(name, settings, { ...size, nodes: 1 }),
        );
    const lost = sent.filter(({ outcome }) => outcome === 'lost').length;
    const counts = `${sent.length} calls, ${lost} without an answer`;
    return { names: new Set(violations.map((violation) => violation.split(':')[0]!)), counts };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
