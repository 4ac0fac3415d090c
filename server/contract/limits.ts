import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';
import { type RestProcedure, restProcedures } from '../api/procedures.ts';
import { STREAM_PATH } from '../http/restStream.ts';
import { restProblems, rpcProblems } from './exchange.ts';
import type { Run } from './expectation.ts';
import type { Answer, Sent } from './sender.ts';

/** Requests that don't depend on the operation: bodies, paths, keys, batches and streams. */
export async function checkLimits(run: Run): Promise<void> {
  const { send, record, procedures, denied } = run;
  const queries = procedures.filter(
    ({ name, type, input, needsInput }) => type === 'query' && input && !needsInput && !denied.has(name),
  );
  const query = queries.find(({ name }) => name === 'boards.list') ?? queries[0];
  const mutation = procedures.find(({ name }) => name === 'boards.create') ?? query;

  for (const [title, sent, expected] of requestsTo(query, run.streamSeconds)) {
    await record('limits', title, async () => {
      const answer = await send(sent);
      return problemsOf(sent, answer, expected);
    });
  }
  if (query) {
    await record('limits', 'RPC: a query with GET, and in a batch', async () => {
      const single = await send({ method: 'GET', path: `/trpc/${query.name}` });
      const batch = await send({
        path: `/trpc/${query.name},${query.name}?batch=1`,
        body: '{"0":{"json":{}},"1":{"json":{}}}',
      });
      const isBatch = batch.status === 200 && [JSON.parse(batch.text)].flat().length === 2;
      return [
        ...problemsOf({ path: `/trpc/${query.name}` }, single, { status: 200 }),
        ...problemsOf({ path: `/trpc/${query.name},${query.name}` }, batch, { status: 200 }),
        ...(isBatch ? [] : ['RPC: a batch of two calls must have two results.']),
      ];
    });
  }
  if (mutation) {
    await record('limits', "the caller's X-Request-Id", async () => {
      const id = 'contract-check-1';
      const { headers } = await send({
        path: `/api${mutation.rest.path}`,
        isAnonymous: true,
        headers: { 'x-request-id': id },
      });
      return [null, id].includes(headers.get('x-request-id'))
        ? []
        : ["REST: the caller's X-Request-Id is not in the answer."];
    });
  }
}

type Expected = { status: number; reason?: string };

function requestsTo(
  query: RestProcedure | undefined,
  streamSeconds: number,
): [title: string, sent: Sent, expected: Expected][] {
  const known = restProcedures.find(({ name }) => name === 'boards.list')!;
  const places = [`/api${known.rest.path}`, `/trpc/${known.name}`];
  const nowhere: [string, Sent, Expected][] = [
    ['REST: an unknown path', { path: '/api/nothing', isAnonymous: true }, { status: 404, reason: 'unknown_path' }],
    [
      'RPC: an unknown procedure',
      { path: '/trpc/nothing.here', body: '{}' },
      { status: 404, reason: 'unknown_procedure' },
    ],
    [
      'REST: the stream of events without a key',
      { method: 'GET', path: `/api${STREAM_PATH}`, isAnonymous: true, withinSeconds: streamSeconds },
      { status: 401 },
    ],
    ...places.map((path): [string, Sent, Expected] => [
      `${surfaceOf(path)}: a wrong key`,
      { path, isAnonymous: true, headers: { authorization: 'Bearer wrong' } },
      { status: 401 },
    ]),
  ];
  if (!query) return nowhere;

  const [overRest, overRpc] = [`/api${query.rest.path}`, `/trpc/${query.name}`];
  const bodies: [string, Partial<Sent>, Expected][] = [
    [
      'a body above 1 MiB',
      { body: `{"json":"${'x'.repeat(LARGEST_BODY_BYTES)}"}` },
      { status: 400, reason: 'body_too_large' },
    ],
    [
      'a body with 100 levels',
      { body: `{"json":${'['.repeat(100)}${']'.repeat(100)}}` },
      { status: 400, reason: 'body_too_large' },
    ],
    ['a body that is not JSON', { body: '{' }, { status: 400, reason: 'body_not_json' }],
    [
      'another content type',
      { body: '{}', headers: { 'content-type': 'text/plain' } },
      { status: 400, reason: 'body_not_json' },
    ],
  ];
  return [
    ...nowhere,
    ...[overRest, overRpc].flatMap((path) =>
      bodies.map(([title, sent, expected]): [string, Sent, Expected] => [
        `${surfaceOf(path)}: ${title}`,
        { path, ...sent },
        expected,
      ]),
    ),
    ['REST: a body that is not an object', { path: overRest, body: '5' }, { status: 400, reason: 'body_not_object' }],
    ['REST: a body of 1 MiB', { path: overRest, body: '{}'.padEnd(LARGEST_BODY_BYTES) }, { status: 200 }],
    ['RPC: a body of 1 MiB', { path: overRpc, body: '{"json":{}}'.padEnd(LARGEST_BODY_BYTES) }, { status: 200 }],
    ['RPC: a URL of 8,000 characters', { method: 'GET', path: longPath(query.name) }, { status: 200 }],
  ];
}

/** A batch of two calls, whose input is as long as spaces make it. */
function longPath(name: string): string {
  const path = `/trpc/${name},${name}?batch=1&input=${encodeURIComponent('{"0":{"json":{}},"1":{"json":{}}}')}`;
  return path + '%20'.repeat((LONGEST_URL - path.length) / 3);
}
const LONGEST_URL = 8000;

const surfaceOf = (path: string) => (path.startsWith('/api') ? 'REST' : 'RPC');

function problemsOf({ method = 'POST', path }: Sent, answer: Answer, { status, reason }: Expected): string[] {
  const surface = surfaceOf(path);
  const place = path.replace(/^\/(api|trpc\/)/, '').split('?', 1)[0]!;
  const sentReason = surface === 'REST' ? answer.headers.get('x-error-reason') : reasonIn(answer.text);
  const problems = [
    ...(answer.status === status ? [] : [`${status} was expected.`]),
    // A missing header is reported as that.
    ...([undefined, sentReason].includes(reason) || sentReason === null
      ? []
      : [`The reason is ${sentReason}, not ${reason}.`]),
    ...(surface === 'REST' ? restProblems(method, place, answer) : rpcProblems(place, answer)),
  ];
  return problems.map((problem) => `${surface} ${answer.status}: ${problem}`);
}

function reasonIn(text: string): string | undefined {
  try {
    return JSON.parse(text).error?.json?.data?.reason;
  } catch {
    return undefined;
  }
}
