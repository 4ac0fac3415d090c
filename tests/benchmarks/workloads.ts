import superjson from 'superjson';
import type { LoadRequest } from '../harness/load.ts';
import type { Users } from './users.ts';

/** What the service is compared with: a server written by hand with `node:http`, plain Fastify, and another checkout of the service. */
export type Rival = 'lean floor' | 'Fastify' | 'before';
export type Surface = Rival | 'REST' | 'RPC' | 'RPC × 10';

/** An operation that many users call at once. */
export type Workload = {
  name: string;
  /** The expected status over REST. */
  status: number;
  surfaces: Surface[];
  requests: (surface: Surface, users: Users) => LoadRequest[];
};

const OPERATIONS = '/services/operations/v1/operations';
/** Three groups, eight cards. */
export const DEMO_BOARD = 2;
const BATCH = 10;
/** With more at once the service would answer 429 to some: it checks two passwords at a time. */
const SIGNING_IN = 8;
export const SURFACES: Surface[] = ['lean floor', 'Fastify', 'before', 'REST', 'RPC'];

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
    surfaces: SURFACES,
    requests: (surface, { writers }) =>
      writers.map(({ token, group_id }) => ({
        token,
        ...createCard(surface, {
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
    surfaces: SURFACES,
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
export const createCard = (surface: Surface, input: object) =>
  call(surface, `${OPERATIONS}/cards/create`, 'cards.create', input);
export const getBoard = (surface: Surface, id: number) =>
  call(surface, `${OPERATIONS}/boards/get`, 'boards.get', { id });

export function call(surface: Surface, path: string, procedure: string, input: object): LoadRequest {
  if (!surface.startsWith('RPC')) return { path: `/api${path}`, body: JSON.stringify(input) };

  const sent = superjson.serialize(input);
  if (surface === 'RPC') return { path: `/trpc/${procedure}`, body: JSON.stringify(sent) };
  const batchPath = `/trpc/${Array(BATCH).fill(procedure).join()}?batch=1`;
  return { path: batchPath, body: JSON.stringify({ ...Array(BATCH).fill(sent) }) };
}
