import { bytesOf, type Connection, type LoadRequest, open, percentile, sendSteadily, whileRepeating } from './load.ts';
import { onStage, programOf, type Stage } from './stage.ts';
import { precise, type Table } from './table.ts';
import type { Length } from './throughput.ts';
import { getBoard, listBoards, SURFACES, type Surface } from './workloads.ts';

const BURST = 200;
const PER_SECOND = 100;
/** How many steady requests can wait at once. */
const WAITING = 300;
const WARM_SECONDS = 3;

/** How long another user's boards/list takes while one user sends 200 of them at once, again and again. */
export const measureBurst = (length: Length): Promise<Table> =>
  onStage(async (stage) => {
    const all = await Promise.all(SURFACES.map((surface) => openBurst(stage, surface)));
    await measureInTurns(all, length);
    return {
      title: `boards/list while another user sends ${BURST} at once`,
      note: `One user lists boards ${PER_SECOND} times a second, another ${BURST} times at once, again and again. The other may be refused (429), the first never.`,
      columns: ['', 'p99 alone', 'meanwhile', 'times'],
      rows: all.map(({ name, times: { alone, meanwhile } }) => [
        name,
        `${precise(p99(alone), 1)} ms`,
        `${precise(p99(meanwhile), 1)} ms`,
        precise(p99(meanwhile) / p99(alone), 1),
      ]),
    };
  });

/** How long `/health/live` takes while users load a board of 5,000 cards in a loop. */
export async function measureHealth(length: Length): Promise<Table> {
  const rows: string[][] = [];
  for (const isEmbedded of [false, true])
    await onStage(async (stage) => rows.push(...(await healthOf(stage, length, isEmbedded))), { isEmbedded });
  return {
    title: '/health/live while users load a board of 5,000 cards',
    note: `Asked ${PER_SECOND} times a second; each user loads the board again as soon as it has arrived.`,
    columns: ['', 'p50', 'p99', 'longest'],
    rows,
  };
}

async function healthOf(stage: Stage, length: Length, isEmbedded: boolean): Promise<string[][]> {
  const loads = (['REST', 'RPC'] as const).flatMap((surface) => [1, 4].map((users) => ({ surface, users })));
  const steady = await openMany(stage.service.url, { path: '/health/live' }, WAITING, 200);
  const all = await Promise.all(loads.map(({ surface, users }) => openHealth(stage, steady, surface, users)));
  await measureInTurns(all, length);
  const where = isEmbedded ? 'embedded: ' : '';
  return [
    [`${where}alone`, ...waits(all.flatMap(({ times }) => times.alone))],
    ...all.map(({ name, times }) => [where + name, ...waits(times.meanwhile)]),
  ];
}

type Neighbours = {
  name: string;
  steady: Connection[];
  /** Repeated by the other users, each on its own. */
  others: (() => Promise<unknown>)[];
  times: { alone: number[]; meanwhile: number[] };
  close: () => void;
};

async function measureInTurns(all: Neighbours[], { rounds, seconds }: Length): Promise<void> {
  for (const { steady, others } of all)
    await whileRepeating(others, () => sendSteadily(steady, PER_SECOND, WARM_SECONDS));
  for (let round = 0; round < rounds; round++) {
    for (const { steady, others, times } of all) {
      times.alone.push(...(await sendSteadily(steady, PER_SECOND, seconds)));
      times.meanwhile.push(...(await whileRepeating(others, () => sendSteadily(steady, PER_SECOND, seconds))));
    }
  }
  for (const { close } of all) close();
}

async function openBurst(stage: Stage, surface: Surface): Promise<Neighbours> {
  const { url } = programOf(stage, surface);
  const [lister, sender] = stage.tenants.readers.map(({ token }) => ({ ...listBoards(surface), token }));
  const steady = await openMany(url, lister!, WAITING, 200);
  const burst = await openMany(url, sender!, BURST, 200, 429);
  return neighbours(surface, steady, burst, [() => Promise.all(burst.map(({ send }) => send()))]);
}

async function openHealth(stage: Stage, steady: Connection[], surface: Surface, users: number): Promise<Neighbours> {
  const { url } = stage.service;
  const loaders = await Promise.all(
    stage.tenants.collectors
      .slice(0, users)
      .map(({ token, board_id }) => open(url, bytesOf(url, { ...getBoard(surface, board_id), token }), 200)),
  );
  const name = `${users} ${users === 1 ? 'user' : 'users'} over ${surface}`;
  return neighbours(
    name,
    steady,
    loaders,
    loaders.map(({ send }) => send),
  );
}

const openMany = (url: string, request: LoadRequest, count: number, ...expected: number[]) =>
  Promise.all(Array.from({ length: count }, () => open(url, bytesOf(url, request), ...expected)));

const neighbours = (
  name: string,
  steady: Connection[],
  others: Connection[],
  tasks: Neighbours['others'],
): Neighbours => ({
  name,
  steady,
  others: tasks,
  times: { alone: [], meanwhile: [] },
  close: () => {
    for (const { close } of [...steady, ...others]) close();
  },
});

const waits = (times: number[]) => {
  const sorted = Float64Array.from(times).sort();
  return [0.5, 0.99, 1].map((share) => `${precise(percentile(sorted, share), 1)} ms`);
};

const p99 = (times: number[]) => percentile(Float64Array.from(times).sort(), 0.99);
