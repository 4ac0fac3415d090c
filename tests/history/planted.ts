import { join } from 'node:path';
import { givenDatabase, withRemoval } from '../faults/outcome.ts';
import { type Plant, plantsIn, withPlanted } from '../harness/planted.ts';
import { removeProcesses } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { findTestServer } from '../harness/server.ts';
import { historyOfReplicas } from './faults.ts';
import { runHistory } from './run.ts';

/** Plants bugs in copies of the service, one at a time, and expects that their histories show it: `node tests/history/planted.ts`. */

const { only, calls } = programOptions('node tests/history/planted.ts', { only: '', calls: '500' });
const { url } = await findTestServer();
if (!url) throw new Error('This needs a PostgreSQL server.');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
let missed = 0;
try {
  for (const plant of plantsIn('tests/history/plants.txt').filter(({ title }) => title.includes(only))) {
    const { names, counts } = await withPlanted(plant, (directory) => namesFor(plant, directory));
    const isFound = names.has(plant.title.split(': ')[1]!);
    if (!isFound) missed++;
    console.log(
      `${isFound ? 'found' : 'MISSED'}: ${plant.title} (${[...names].join(', ') || 'no anomaly'}; ${counts})`,
    );
  }
} finally {
  await removeProcesses();
}
process.exit(missed > 0 ? 1 : 0);

/** The anomalies in the histories of a copy of the service. */
async function namesFor({ title }: Plant, directory: string) {
  const program = join(directory, 'server/boot/main.js');
  const size = { calls: Number(calls), seconds: 120, callers: 8, seed: 1, program, longestDeliverySeconds: 10 };
  const { violations, sent } = title.includes('replica')
    ? await historyOfReplicas(size)
    : await withRemoval(await givenDatabase(url!), ({ settings }) =>
        runHistory(title, settings, { ...size, nodes: 1 }),
      );
  const lost = sent.filter(({ outcome }) => outcome === 'lost').length;
  const counts = `${sent.length} calls, ${lost} without an answer`;
  return { names: new Set(violations.map((violation) => violation.split(':')[0]!)), counts };
}
