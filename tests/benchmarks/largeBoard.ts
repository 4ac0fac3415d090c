import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { StartedService } from '../harness/process.ts';
import { bytesOf, open, percentile, sendSteadily, whileRepeating } from './load.ts';
import { onStage, programOf, type Stage } from './stage.ts';
import { median, precise, type Table, whole } from './table.ts';
import type { Length } from './throughput.ts';
import { cpuMilliseconds } from './usage.ts';
import { getBoard, listBoards, SURFACES, type Surface } from './workloads.ts';

const REQUESTS_IN_ROUND = 5;
const LISTS_PER_SECOND = 50;
/** How many lists can wait at once while the event loop is blocked. */
const LISTING = 100;

type Measured = {
  surface: Surface;
  milliseconds: number[];
  nodeMilliseconds: number;
  databaseMilliseconds: number;
  stops: number[];
  alone: number[];
  meanwhile: number[];
};

/** What a board of 5,000 cards costs, and how much it slows down other users. */
export async function measureLargeBoard(length: Length): Promise<Table> {
  const NODE_OPTIONS = `--import=${pathToFileURL(join(import.meta.dirname, 'stops.ts')).href}`;
  const all = await onStage((stage) => measureInTurns(stage, length), { more: { NODE_OPTIONS } });
  return {
    title: 'boards/get of 5,000 cards, one request at a time',
    note:
      'A stop is the longest CPU time between two turns of the event loop. Another user lists boards ' +
      `${LISTS_PER_SECOND} times a second, alone and meanwhile.`,
    columns: ['', 'ms', 'Node ms', 'PostgreSQL ms', 'stop ms', 'list p99 alone', 'meanwhile', 'times'],
    rows: all.map(({ surface, milliseconds, nodeMilliseconds, databaseMilliseconds, stops, alone, meanwhile }) => {
      const [before, after] = [alone, meanwhile].map((times) => percentile(Float64Array.from(times).sort(), 0.99));
      return [
        surface,
        whole(median(milliseconds)),
        whole(nodeMilliseconds / milliseconds.length),
        whole(databaseMilliseconds / milliseconds.length),
        whole(median(stops)),
        `${precise(before!, 1)} ms`,
        `${precise(after!, 1)} ms`,
        precise(after! / before!, 1),
      ];
    }),
  };
}

async function measureInTurns(stage: Stage, { rounds, seconds }: Length): Promise<Measured[]> {
  const callers = await Promise.all(SURFACES.map((surface) => openCallers(stage, surface)));
  for (const { load, list } of callers) {
    for (let warm = 0; warm < REQUESTS_IN_ROUND; warm++) await load();
    await list((2 * LISTING) / LISTS_PER_SECOND);
  }
  for (let round = 0; round < rounds; round++) {
    for (const { program, measured, load, list } of callers) {
      await longestStop(program);
      const nodeBefore = cpuMilliseconds(program.pid);
      const databaseBefore = await stage.usage!.cpuMilliseconds();
      for (let request = 0; request < REQUESTS_IN_ROUND; request++) measured.milliseconds.push(await load());
      measured.nodeMilliseconds += cpuMilliseconds(program.pid) - nodeBefore;
      measured.databaseMilliseconds += (await stage.usage!.cpuMilliseconds()) - databaseBefore;
      measured.stops.push(await longestStop(program));

      measured.alone.push(...(await list(seconds)));
      measured.meanwhile.push(...(await whileRepeating([load], () => list(seconds))));
    }
  }
  for (const { close } of callers) close();
  return callers.map(({ measured }) => measured);
}

async function openCallers(stage: Stage, surface: Surface) {
  const program = programOf(stage, surface);
  const { readers } = stage.tenants;
  const collector = stage.tenants.collectors[0]!;
  const connect = (request: ReturnType<typeof getBoard>) => open(program.url, bytesOf(program.url, request), 200);
  const loader = await connect({ ...getBoard(surface, collector.board_id), token: collector.token });
  const lister = { ...listBoards(surface), token: readers[0]!.token };
  const listers = await Promise.all(Array.from({ length: LISTING }, () => connect(lister)));
  const measured: Measured = {
    surface,
    milliseconds: [],
    nodeMilliseconds: 0,
    databaseMilliseconds: 0,
    stops: [],
    alone: [],
    meanwhile: [],
  };
  return {
    program,
    measured,
    load: () => loader.send(),
    list: (seconds: number) => sendSteadily(listers, LISTS_PER_SECOND, seconds),
    close: () => {
      for (const { close } of [loader, ...listers]) close();
    },
  };
}

/** The longest stop since the last call of this function. */
async function longestStop({ pid, printed }: StartedService): Promise<number> {
  const before = printed().length;
  process.kill(pid, 'SIGUSR2');
  for (;;) {
    const match = /longest stop: ([\d.]+) ms\n/.exec(printed().slice(before));
    if (match) return Number(match[1]);
    await pause(1);
  }
}
