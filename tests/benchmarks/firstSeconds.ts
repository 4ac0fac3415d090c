import { startAsScript, startProgram } from '../harness/process.ts';
import { load } from './load.ts';
import { BASELINES, givenFilledDatabase } from './stage.ts';
import { median, percent, type Table, whole } from './table.ts';
import type { Length } from './throughput.ts';
import { type Surface, WORKLOADS } from './workloads.ts';

const SECONDS = 3;
const MOST_ROUNDS = 5;
const MEASURED = ['boards/list', 'cards/create'];

/** Calls per second right after a start, when nothing is compiled and no connection is open: services restart. */
export async function measureFirstSeconds({ rounds }: Length): Promise<Table> {
  const { settings, tenants, remove } = await givenFilledDatabase({ isEmbedded: false });
  const programs = {
    floor: () => startProgram(BASELINES.floor, settings),
    'lean floor': () => startProgram(BASELINES['lean floor'], settings),
    REST: () => startAsScript(settings),
  } satisfies Partial<Record<Surface, unknown>>;
  const surfaces = Object.keys(programs) as (keyof typeof programs)[];
  try {
    const rows: string[][] = [];
    for (const workload of WORKLOADS.filter(({ name }) => MEASURED.includes(name))) {
      const speeds = surfaces.map((): number[] => []);
      for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++)
        for (const [at, surface] of surfaces.entries()) {
          const { url, stop } = await programs[surface]();
          const { requestsPerSecond } = await load(url, workload.requests(surface, tenants), workload.status, SECONDS);
          speeds[at]!.push(requestsPerSecond);
          await stop();
        }
      const shareOf = (speed: number[], of: number[]) => percent(median(speed.map((each, at) => each / of[at]!)));
      for (const [at, speed] of speeds.entries())
        rows.push([
          at === 0 ? workload.name : '',
          surfaces[at]!,
          whole(median(speed)),
          shareOf(speed, speeds[0]!),
          shareOf(speed, speeds[1]!),
        ]);
    }
    return {
      title: `The first ${SECONDS} seconds after a start`,
      names: 2,
      columns: ['', 'over', 'calls/s', 'of the floor', 'of the lean one'],
      rows,
    };
  } finally {
    await remove();
  }
}
