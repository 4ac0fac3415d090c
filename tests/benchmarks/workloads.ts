import superjson from 'superjson';
import type { LoadRequest } from './load.ts';
import type { Tenants } from './tenants.ts';

/** The baselines: written by hand with `node:http`, with our statements and with lean ones, and with plain Fastify. */
export type Baseline = 'floor' | 'lean floor' | 'without events' | 'Fastify';
export type Surface = Baseline | 'REST' | 'RPC' | 'RPC × 10';

/** An operation that many users call at once. */
export type Workload = {
  name: string;
  /** The expected status over REST. */
  status: number;
  surfaces: Surface[];
  requests: (surface: Surface, tenants: Tenants) => LoadRequest[];
};

const OPERATIONS = '/services/operations/v1/operations';
/** Three groups, eight cards. */
const DEMO_BOARD = 2;
const BATCH = 10;
/** With more at once the service would answer 429 to some: it checks two passwords at a time. */
const SIGNING_IN = 8;
export const SURFACES: Surface[] = ['floor', 'lean floor', 'Fastify', 'REST', 'RPC'];
/** With the lean floor without events as well: the difference is what an event costs. */
const WRITE_SURFACES: Surface[] = ['floor', 'lean floor', 'without events', 'Fastify', 'REST', 'RPC'];

/** RPC answers every success with 200. */
export const statusOf = ({ status }: Workload, surface: Surface) => (surface.startsWith('RPC') ? 200 : status);

export const callsIn = (surface: Surface) => (surface === 'RPC × 10' ? BATCH : 1);

export const WORKLOADS: Workload[] = [
  {
    name: 'boards/list',
    status: 200,
    surfaces: [...SURFACES, 'RPC × 10'],
    requests: (surface, { readers }) => readers.map(({ token }) => ({ token, ...listBoards(surface) })),
  },
  {
    name: 'boards/get',
    status: 200,
    surfaces: SURFACES,
    requests: (surface, { readers }) => readers.map(({ token }) => ({ token, ...getBoard(surface, DEMO_BOARD) })),
  },
  {
    name: 'cards/create',
    status: 201,
    surfaces: WRITE_SURFACES,
    requests: (surface, { writers }) =>
      writers.map(({ token, group_id }) => ({
        token,
        ...call(surface, `${OPERATIONS}/cards/create`, 'cards.create', {
          title: 'Write the launch post',
          group_id,
          priority: 'high',
          due_date: '2030-01-31T09:30:00.000Z',
        }),
      })),
  },
  {
    name: 'comments/create',
    status: 201,
    surfaces: WRITE_SURFACES,
    requests: (surface, { writers }) =>
      writers.map(({ token, card_id }) => ({
        token,
        ...call(surface, `${OPERATIONS}/comments/create`, 'comments.create', {
          card_id,
          comment: 'A first draft is ready. Who reads it?',
        }),
      })),
  },
  {
    name: 'authenticate',
    status: 200,
    surfaces: SURFACES,
    requests: (surface, { readers }) =>
      readers
        .slice(0, SIGNING_IN)
        .map(({ email }) =>
          call(surface, '/v1/authenticate', 'auth.authenticate', { email, password: 'demo-password' }),
        ),
  },
];

export const listBoards = (surface: Surface) => call(surface, `${OPERATIONS}/boards/list`, 'boards.list', {});
export const getBoard = (surface: Surface, id: number) =>
  call(surface, `${OPERATIONS}/boards/get`, 'boards.get', { id });

function call(surface: Surface, path: string, procedure: string, input: object): LoadRequest {
  if (!surface.startsWith('RPC')) return { path: `/api${path}`, body: JSON.stringify(input) };

  const sent = superjson.serialize(input);
  if (surface === 'RPC') return { path: `/trpc/${procedure}`, body: JSON.stringify(sent) };
  const batchPath = `/trpc/${Array(BATCH).fill(procedure).join()}?batch=1`;
  return { path: batchPath, body: JSON.stringify({ ...Array(BATCH).fill(sent) }) };
}
