import type { z } from 'zod';
import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';
import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import { STREAM_PATH } from '../http/restStream.ts';
import { pathOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import { answerProblems, type Expected, SURFACES } from './judge.ts';
import { type Answer, inTurns, type Sent } from './sender.ts';

/** Requests that don't depend on the operation: bodies, paths, keys, batches and streams. */
export async function checkLimits(run: Run): Promise<void> {
  await inTurns(limitsOf(run), ({ title, requests, problems: further }) =>
    run.record('limits', title, async () => {
      const problems: string[] = [];
      for (const [at, [sent, expected]] of requests.entries()) {
        const answer = await run.send(sent);
        if (expected) problems.push(...answerProblems(sent, answer, expected));
        if (at === requests.length - 1) problems.push(...(further?.(answer) ?? []));
      }
      return problems;
    }),
  );
}

type Limit = {
  title: string;
  requests: [Sent, Expected?][];
  /** What else is wrong with the last answer. */
  problems?: (last: Answer) => string[];
};

const limit = (title: string, sent: Sent, status: number, reason?: string): Limit => ({
  title,
  requests: [[sent, { status, reason }]],
});

function limitsOf({ procedures, denied, streamSeconds }: Run): Limit[] {
  const queries = procedures.filter(
    ({ name, type, input, needsInput }) => type === 'query' && input && !needsInput && !denied.has(name),
  );
  const query = queries.find(({ name }) => name === 'boards.list') ?? queries[0];
  const mutation = procedures.find(({ name }) => name === 'boards.create') ?? query;
  return [
    ...strangerLimits(streamSeconds),
    ...(query ? queryLimits(query, queries) : []),
    ...(mutation ? [ownId(mutation)] : []),
  ];
}

/** Limits of requests that are refused before an operation is called. */
function strangerLimits(withinSeconds: number): Limit[] {
  const known = findProcedure('boards.list') as RestProcedure;
  const wrong = { isAnonymous: true, headers: { authorization: 'Bearer wrong' } };
  const stream = { method: 'GET', path: `/api${STREAM_PATH}`, isAnonymous: true, withinSeconds };
  return [
    limit('REST: an unknown path', { path: '/api/nothing', isAnonymous: true }, 404, 'unknown_path'),
    limit('RPC: an unknown procedure', { path: '/trpc/nothing.here', body: '{}' }, 404, 'unknown_procedure'),
    limit('REST: the stream of events without a key', stream, 401),
    ...SURFACES.map((surface) => limit(`${surface}: a wrong key`, { path: pathOn(surface, known), ...wrong }, 401)),
  ];
}

const NESTED = `${'['.repeat(100)}${']'.repeat(100)}`;

const BODIES: [title: string, sent: Omit<Sent, 'path'>, status: number, reason?: string][] = [
  ['a body above 1 MiB', { body: `{"json":"${'x'.repeat(LARGEST_BODY_BYTES)}"}` }, 400, 'body_too_large'],
  ['a body with 100 levels', { body: `{"json":${NESTED}}` }, 400, 'body_too_large'],
  ['a body that is not JSON', { body: '{' }, 400, 'body_not_json'],
  ['another content type', { body: '{}', headers: { 'content-type': 'text/plain' } }, 400, 'body_not_json'],
  ['a body of 1 MiB', { body: '{}'.padEnd(LARGEST_BODY_BYTES) }, 200],
];

function queryLimits(query: RestProcedure, queries: RestProcedure[]): Limit[] {
  const [rest, rpc] = [pathOn('REST', query), pathOn('RPC', query)];
  const batch = `/trpc/${query.name},${query.name}?batch=1`;
  const inputs = '{"0":{"json":{}},"1":{"json":{}}}';
  const url = `${batch}&input=${encodeURIComponent(inputs)}`;
  const longUrl = url + '%20'.repeat((LONGEST_URL - url.length) / 3);
  return [
    ...SURFACES.flatMap((surface) =>
      BODIES.map(([title, sent, ...expected]) =>
        limit(`${surface}: ${title}`, { path: pathOn(surface, query), ...sent }, ...expected),
      ),
    ),
    limit('REST: a body that is not an object', { path: rest, body: '5' }, 400, 'body_not_object'),
    limit('RPC: a URL of 8,000 characters', { method: 'GET', path: longUrl }, 200),
    ...batchLimits(queries),
    {
      title: 'RPC: a query with GET, and in a batch',
      requests: [
        [{ method: 'GET', path: rpc }, { status: 200 }],
        [{ path: batch, body: inputs }, { status: 200 }],
      ],
      problems: ({ status, text }) => {
        const isBatch = status === 200 && resultsIn(text).length === 2;
        return isBatch ? [] : ['RPC: a batch of two calls must have two results.'];
      },
    },
  ];
}
const LONGEST_URL = 8000;

/** Queries with different fields in their results, in both orders. */
function batchLimits(queries: RestProcedure[]): Limit[] {
  const fieldOf = ({ output }: RestProcedure) => Object.keys((output as z.ZodObject).shape)[0]!;
  const proofless = queries.filter(({ proof }) => !proof);
  const chosen = [...new Map(proofless.map((query) => [fieldOf(query), query])).values()].slice(0, LARGEST_ORDER);
  return [chosen, chosen.toReversed()].flatMap((batch) => {
    const path = `/trpc/${batch.map(({ name }) => name).join()}?batch=1`;
    const inputs = JSON.stringify(Object.fromEntries(batch.map((_, at) => [at, { json: {} }])));
    const problems = ({ status, text }: Answer) => {
      const results = status === 200 ? resultsIn(text) : [];
      const isInOrder = batch.every((query, at) => results[at]?.result?.data?.json?.[fieldOf(query)] !== undefined);
      return isInOrder ? [] : ['RPC: the results of a batch are not those of its calls, in their order.'];
    };
    const posted: Limit = { title: 'RPC: the results of a batch', requests: [[{ path, body: inputs }]], problems };
    const url = `${path}&input=${encodeURIComponent(inputs)}`;
    return [posted, { ...posted, requests: [[{ method: 'GET', path: url }]] }];
  });
}
const LARGEST_ORDER = 4;

/** A body that is not JSON is reported as that. */
function resultsIn(text: string): { result?: { data?: { json?: Record<string, unknown> } } }[] {
  try {
    return [JSON.parse(text)].flat();
  } catch {
    return [];
  }
}

function ownId(mutation: RestProcedure): Limit {
  const id = 'contract-check-1';
  return {
    title: "the caller's X-Request-Id",
    requests: [[{ path: pathOn('REST', mutation), isAnonymous: true, headers: { 'x-request-id': id } }]],
    problems: ({ headers }) =>
      [null, id].includes(headers.get('x-request-id')) ? [] : ["REST: the caller's X-Request-Id is not in the answer."],
  };
}
