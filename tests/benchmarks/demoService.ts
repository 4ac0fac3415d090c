import { setTimeout as pause } from 'node:timers/promises';
import type { TestCaller } from '../harness/caller.ts';
import { removeProcesses, runToEnd, startService } from '../harness/process.ts';
import { givenBenchDatabase } from './database.ts';
import { percentile } from './load.ts';
import { SETTINGS } from './stage.ts';

type Settings = Record<string, string>;
type Options = { more?: Settings; fill?: (settings: Settings) => Promise<void> };

/** Starts the service on a new database with the demo data, and removes both in the end. */
export async function onDemoService(work: (url: string) => Promise<void>, { more, fill }: Options = {}): Promise<void> {
  const { settings: database, remove } = await givenBenchDatabase();
  const settings = { ...database, ...SETTINGS, ...more };
  try {
    await runToEnd(['server/cli/deckhand.js', 'demo'], settings);
    await fill?.(settings);
    const { url } = await startService(settings);
    await work(url);
  } finally {
    await removeProcesses();
    await remove();
  }
}

/** Lists boards 50 times per second, without waiting for answers. */
export async function measureList(caller: TestCaller, seconds: number): Promise<string> {
  const times: Promise<number>[] = [];
  for (const end = performance.now() + seconds * 1000; performance.now() < end; await pause(20)) {
    const begun = performance.now();
    const listed = caller.post('/services/operations/v1/operations/boards/list');
    times.push(listed.then(({ status }) => (status === 200 ? performance.now() - begun : Number.NaN)));
  }
  const all = await Promise.all(times);
  const sorted = all.filter((time) => !Number.isNaN(time)).sort((one, other) => one - other);
  const at = (share: number) => percentile(sorted, share).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${all.length - sorted.length} failed`;
}
