import {
  type Connection,
  closeAll,
  type LoadRequest,
  open,
  openMany,
  percentiles,
  sendSteadily,
  whileRepeating,
} from '../harness/load.ts';
import { type Programs, programOf, withPrograms } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table } from './table.ts';
import { getBoard, listBoards, SURFACES, type Surface } from './workloads.ts';

/** How much calls of one user slow down those of another one. */

/** Calls at a steady rate, and what others do meanwhile. */
export type Beside = {
  name: string;
  steady: Connection[];
  perSecond: number;
  /** Repeated by the others, each on its own. */
  others: (() => Promise<unknown>)[];
};

type Times = { alone: number[]; meanwhile: number[] };

const BURST = 200;
const PER_SECOND = 100;
/** How many steady calls can wait at once. */
const WAITING = 300;
const WARM_SECONDS = 3;

/** So many lists of boards can wait at once. */
export const openLists = (url: string, token: string | undefined, surface: Surface = 'REST') =>
  openMany(WAITING, url, { ...listBoards(surface), token }, 200);

/** Measures each in turn, alone and with the others. */
export async function measureBeside(all: Beside[], seconds: number, rounds = 1): Promise<Times[]> {
  const times = all.map((): Times => ({ alone: [], meanwhile: [] }));
  for (const { steady, perSecond, others } of all)
    await whileRepeating(others, () => sendSteadily(steady, perSecond, Math.min(WARM_SECONDS, seconds)));
  for (let round = 0; round < rounds; round++) {
    for (const [at, { steady, perSecond, others }] of all.entries()) {
      times[at]!.alone.push(...(await sendSteadily(steady, perSecond, seconds)));
      times[at]!.meanwhile.push(...(await whileRepeating(others, () => sendSteadily(steady, perSecond, seconds))));
    }
  }
  return times;
}

export const BESIDE_COLUMNS = ['p99 alone', 'meanwhile', 'times'];

export function besideCells({ alone, meanwhile }: Times): string[] {
  const [before = 0, after = 0] = [alone, meanwhile].map((times) => percentiles(times, 0.99)[0]);
  return [`${precise(before, 1)} ms`, `${precise(after, 1)} ms`, precise(after / before, 1)];
}

/** How long another user's boards/list takes while one user sends 200 of them at once, again and again. */
export const measureBurst = ({ seconds = 1, rounds = 7, before }: Run): Promise<Table[]> =>
  withPrograms(
    async (programs) => {
      const surfaces = SURFACES.filter((surface) => programOf(programs, surface));
      const all = await Promise.all(surfaces.map((surface) => openBurst(programs, surface)));
      const times = await measureBeside(all, seconds, rounds);
      return [
        {
          title: `boards/list while another user sends ${BURST} at once`,
          note: `One user lists boards ${PER_SECOND} times a second, another ${BURST} times at once, again and again. The other may be refused (429), the first never.`,
          columns: ['', ...BESIDE_COLUMNS],
          rows: all.map(({ name }, at) => [name, ...besideCells(times[at]!)]),
        },
      ];
    },
    { before },
  );

async function openBurst(programs: Programs, surface: Surface): Promise<Beside> {
  const { url } = programOf(programs, surface)!;
  const [lister, sender] = programs.users.readers;
  const burst = await openMany(BURST, url, { ...listBoards(surface), token: sender!.token }, 200, 429);
  return {
    name: surface,
    steady: await openLists(url, lister!.token, surface),
    perSecond: PER_SECOND,
    others: [() => Promise.all(burst.map(({ send }) => send()))],
  };
}

/** How long `/health/live` takes while users load a board of 5,000 cards in a loop. */
export async function measureHealth(run: Run): Promise<Table[]> {
  const rows: string[][] = [];
  for (const isEmbedded of [false, true])
    await withPrograms(async (programs) => rows.push(...(await healthOf(programs, run, isEmbedded))), { isEmbedded });
  return [
    {
      title: '/health/live while users load a board of 5,000 cards',
      note: `Asked ${PER_SECOND} times a second; each user loads the board again as soon as it has arrived.`,
      columns: ['', 'p50', 'p99', 'longest'],
      rows,
    },
  ];
}

async function healthOf({ service: { url }, users }: Programs, { seconds = 1, rounds = 7 }: Run, isEmbedded: boolean) {
  const steady = await openMany(WAITING, url, { path: '/health/live' }, 200);
  const loaders = (surface: Surface, count: number) =>
    users.collectors
      .slice(0, count)
      .map(({ token, board_id }): LoadRequest => ({ ...getBoard(surface, board_id), token }));
  const all = await Promise.all(
    (['REST', 'RPC'] as const).flatMap((surface) =>
      [1, 4].map(async (count): Promise<Beside> => {
        const loading = await Promise.all(loaders(surface, count).map((request) => open(url, request, 200)));
        const name = `${count} ${count === 1 ? 'user' : 'users'} over ${surface}`;
        return {
          name,
          steady,
          perSecond: PER_SECOND,
          others: loading.map(
            ({ send }) =>
              () =>
                send(),
          ),
        };
      }),
    ),
  );
  const times = await measureBeside(all, seconds, rounds);
  closeAll(steady);
  const where = isEmbedded ? 'embedded: ' : '';
  const waits = (values: number[]) => percentiles(values, 0.5, 0.99, 1).map((value) => `${precise(value, 1)} ms`);
  return [
    [`${where}alone`, ...waits(times.flatMap(({ alone }) => alone))],
    ...all.map(({ name }, at) => [where + name, ...waits(times[at]!.meanwhile)]),
  ];
}
