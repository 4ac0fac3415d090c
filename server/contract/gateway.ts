import type { RestProcedure } from '../api/procedures.ts';
import { commonHeaders, headerViolations } from './answer.ts';
import type { Surface } from './exchange.ts';
import type { Run } from './expectation.ts';
import { UNKNOWN_ID } from './input.ts';
import type { Answer, Sent } from './sender.ts';
import { checkStreams } from './streams.ts';

/** What proxies and gateways in front of a service are known to lose: headers of requests, streams, `/mcp`, counters. */
export async function checkGateway(run: Run): Promise<void> {
  await checkHeadersArrive(run);
  await checkCounters(run);
  await checkMcp(run);
  await checkStreams(run);
}

/** Each is sent with a value that is refused, so nothing is changed. */
async function checkHeadersArrive(run: Run): Promise<void> {
  const called = (name: string) => run.procedures.find((one) => one.name === name && !run.denied.has(name));
  const requests: [
    header: string,
    value: string,
    procedure: RestProcedure | undefined,
    expected: number,
    only?: Surface,
  ][] = [
    ['X-Project-Id', String(UNKNOWN_ID), called('boards.list'), 403],
    ['Idempotency-Key', 'x'.repeat(256), called('cards.delete'), 400],
    ['If-Match', 'no tag', called('cards.delete'), 400, 'REST'],
  ];
  for (const [header, value, procedure, expected, only] of requests) {
    if (!procedure) continue;
    await run.record('headers of requests', header, async () => {
      const input = procedure.type === 'query' ? {} : { id: UNKNOWN_ID };
      const headers = { [header.toLowerCase()]: value };
      const overRest: Sent = { path: `/api${procedure.rest.path}`, body: JSON.stringify(input), headers };
      const overRpc: Sent = { path: `/trpc/${procedure.name}`, body: JSON.stringify({ json: input }), headers };
      const sent: [Surface, Sent][] = [['REST', overRest], ...(only ? [] : [['RPC', overRpc] as [Surface, Sent]])];
      const statuses = await Promise.all(sent.map(async ([surface, one]) => ({ surface, ...(await run.send(one)) })));
      return statuses
        .filter(({ status }) => status !== expected)
        .map(
          ({ surface, status }) =>
            `${surface}: ${header} does not arrive: the answer is a ${status}, not a ${expected}.`,
        );
    });
  }
}

/** Two calls of the same caller in the same minute never have the same number of calls left. */
async function checkCounters(run: Run): Promise<void> {
  const query = run.procedures.find(
    ({ type, needsInput, name }) => type === 'query' && !needsInput && run.succeeded.has(name),
  );
  if (!query) return;
  for (const [surface, path] of [
    ['REST', `/api${query.rest.path}`],
    ['RPC', `/trpc/${query.name}`],
  ] as const) {
    await run.record('counters', `${surface}: ${query.name}`, async () => {
      const left: (string | null)[] = [];
      for (let call = 1; call <= SAME_CALLS; call++)
        left.push((await run.send({ path, body: '{}' })).headers.get('x-ratelimit-remaining'));
      const isConstant = left[0] !== null && new Set(left).size === 1;
      return isConstant ? [`${surface}: X-RateLimit-Remaining stays ${left[0]} from call to call.`] : [];
    });
  }
}
/** Three, since a new minute may begin in between. */
const SAME_CALLS = 3;

async function checkMcp(run: Run): Promise<void> {
  const messages: [title: string, message: object][] = [
    ['tools/list', { method: 'tools/list' }],
    ['tools/call', { method: 'tools/call', params: { name: 'operations_search', arguments: { query: 'board' } } }],
  ];
  for (const [title, message] of messages) {
    await run.record('MCP', title, async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
      const answer = await run.send({ path: '/mcp', body, headers: { accept: 'application/json, text/event-stream' } });
      return mcpProblems(answer).map((problem) => `MCP ${answer.status}: ${problem}`);
    });
  }
}

function mcpProblems({ status, headers, text }: Answer): string[] {
  const { ETag: _, ...documented } = commonHeaders(200);
  const lost = headerViolations(headers, documented);
  try {
    const { result } = JSON.parse(text) as { result?: { tools?: unknown[]; content?: unknown[]; isError?: boolean } };
    const isRight = status === 200 && !result?.isError && ((result?.tools ?? result?.content)?.length ?? 0) > 0;
    return isRight ? lost : [...lost, 'The message has no result.'];
  } catch {
    return ['The body is not JSON.'];
  }
}

/** The ids that the service chose, to see that each answer has its own. */
export function makeRequestIds() {
  const answers = new Map<string, number>();
  return {
    note: ({ headers: sent }: Sent, { headers }: Answer) => {
      const id = headers.get('x-request-id');
      if (id !== null && !sent?.['x-request-id']) answers.set(id, (answers.get(id) ?? 0) + 1);
    },
    problems: () => {
      const repeated = [...answers.values()].filter((count) => count > 1);
      const total = repeated.reduce((sum, count) => sum + count, 0);
      return repeated.length === 0
        ? []
        : [`X-Request-Id is not of one answer alone: ${total} answers share ${repeated.length}.`];
    },
  };
}
