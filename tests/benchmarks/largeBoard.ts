import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { median, open } from '../harness/load.ts';
import type { StartedService } from '../harness/process.ts';
import { BESIDE_COLUMNS, type Beside, besideCells, measureBeside, openLists } from './beside.ts';
import { type Programs, programOf, withPrograms } from './programs.ts';
import type { Run } from './run.ts';
import { type Table, whole } from './table.ts';
import { cpuMilliseconds } from './usage.ts';
import { getBoard, SURFACES, type Surface } from './workloads.ts';

const REQUESTS_IN_ROUND = 5;
const LISTS_PER_SECOND = 50;

type Measured = {
  program: StartedService;
  beside: Beside;
  load: () => Promise<number>;
  milliseconds: number[];
  nodeMilliseconds: number;
  databaseMilliseconds: number;
  stops: number[];
};

/** What a board of 5,000 cards costs, and how much it slows down other users. */
export function measureLargeBoard(run: Run): Promise<Table[]> {
  const NODE_OPTIONS = `--import=${pathToFileURL(join(import.meta.dirname, 'stops.ts')).href}`;
  return withPrograms((programs) => measureAll(programs, run), { before: run.before, more: { NODE_OPTIONS } });
}

async function measureAll(programs: Programs, { seconds = 1, rounds = 7 }: Run): Promise<Table[]> {
  const surfaces = SURFACES.filter((surface) => programOf(programs, surface));
  const all = await Promise.all(surfaces.map((surface) => openBoard(programs, surface)));
  for (const { load } of all) for (let warm = 0; warm < REQUESTS_IN_ROUND; warm++) await load();
  for (let round = 0; round < rounds; round++) for (const measured of all) await measureRound(programs, measured);
  const times = await measureBeside(
    all.map(({ beside }) => beside),
    seconds,
    rounds,
  );
  return [
    {
      title: 'boards/get of 5,000 cards, one request at a time',
      note:
        'A stop is the longest CPU time between two turns of the event loop. Another user lists boards ' +
        `${LISTS_PER_SECOND} times a second, alone and meanwhile.`,
      columns: ['', 'ms', 'Node ms', 'PostgreSQL ms', 'stop ms', ...BESIDE_COLUMNS.map((name) => `list ${name}`)],
      rows: all.map(({ beside, milliseconds, nodeMilliseconds, databaseMilliseconds, stops }, at) => [
        beside.name,
        whole(median(milliseconds)),
        whole(nodeMilliseconds / milliseconds.length),
        whole(databaseMilliseconds / milliseconds.length),
        whole(median(stops)),
        ...besideCells(times[at]!),
      ]),
    },
  ];
}

async function openBoard(programs: Programs, surface: Surface): Promise<Measured> {
  const program = programOf(programs, surface)!;
  const { readers, collectors } = programs.users;
  const { token, board_id } = collectors[0]!;
  const loader = await open(program.url, { ...getBoard(surface, board_id), token }, 200);
  const load = () => loader.send();
  const steady = await openLists(program.url, readers[0]!.token, surface);
  return {
    ...{ program, load, milliseconds: [], nodeMilliseconds: 0, databaseMilliseconds: 0, stops: [] },
    beside: { name: surface, steady, perSecond: LISTS_PER_SECOND, others: [load] },
  };
}

async function measureRound({ usage }: Programs, measured: Measured): Promise<void> {
  const { program, load } = measured;
  await longestStop(program);
  const [nodeBefore, databaseBefore] = [cpuMilliseconds(program.pid), await usage!.cpuMilliseconds()];
  for (let request = 0; request < REQUESTS_IN_ROUND; request++) measured.milliseconds.push(await load());
  measured.nodeMilliseconds += cpuMilliseconds(program.pid) - nodeBefore;
  measured.databaseMilliseconds += (await usage!.cpuMilliseconds()) - databaseBefore;
  measured.stops.push(await longestStop(program));
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
