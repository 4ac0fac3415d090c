import { commonHeaders, headerViolations } from './answer.ts';
import { pathOn, requestOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import { type Given, UNKNOWN_ID } from './input.ts';
import { SURFACES, type Surface } from './judge.ts';
import type { Answer, Sent } from './sender.ts';

/** What proxies and gateways in front of a service are known to lose: headers of requests, `/mcp`, counters. */
export async function checkGateway(run: Run): Promise<void> {
  await checkHeadersArrive(run);
  await checkCounters(run);
  await checkMcp(run);
}

/** Each is sent with a value that is refused, so nothing is changed. */
const REQUEST_HEADERS: {
  header: string;
  value: string;
  call: string;
  input: Given;
  expected: number;
  only?: Surface;
}[] = [
  { header: 'X-Project-Id', value: String(UNKNOWN_ID), call: 'boards.list', input: {}, expected: 403 },
  {
    header: 'Idempotency-Key',
    value: 'x'.repeat(256),
    call: 'cards.delete',
    input: { id: UNKNOWN_ID },
    expected: 400,
  },
  { header: 'If-Match', value: 'no tag', call: 'cards.delete', input: { id: UNKNOWN_ID }, expected: 400, only: 'REST' },
];

async function checkHeadersArrive(run: Run): Promise<void> {
  for (const { header, value, call, input, expected, only } of REQUEST_HEADERS) {
    const procedure = run.procedures.find(({ name }) => name === call && !run.denied.has(name));
    if (!procedure) continue;
    await run.record('headers of requests', header, async () => {
      const problems: string[] = [];
      for (const surface of only ? [only] : SURFACES) {
        const headers = { [header.toLowerCase()]: value };
        const { status } = await run.send(requestOn(surface, { procedure, input, headers }));
        if (status === expected) continue;
        run.lostHeaders.add(header);
        problems.push(`${surface}: ${header} does not arrive: the answer is a ${status}, not a ${expected}.`);
      }
      return problems;
    });
  }
}

/** Two calls of the same caller in the same minute never have the same number of calls left. */
async function checkCounters(run: Run): Promise<void> {
  const query = run.procedures.find(
    ({ type, needsInput, name }) => type === 'query' && !needsInput && run.succeeded.has(name),
  );
  if (!query) return;
  for (const surface of SURFACES) {
    await run.record('counters', `${surface}: ${query.name}`, async () => {
      const left: (string | null)[] = [];
      for (let call = 1; call <= SAME_CALLS; call++)
        left.push((await run.send({ path: pathOn(surface, query), body: '{}' })).headers.get('x-ratelimit-remaining'));
      const isConstant = left[0] !== null && new Set(left).size === 1;
      return isConstant ? [`${surface}: X-RateLimit-Remaining stays ${left[0]} from call to call.`] : [];
    });
  }
}
/** Three, since a new minute may begin in between. */
const SAME_CALLS = 3;

const MESSAGES: Record<string, object> = {
  'tools/list': {},
  'tools/call': { params: { name: 'operations_search', arguments: { query: 'board' } } },
};

async function checkMcp(run: Run): Promise<void> {
  for (const [method, message] of Object.entries(MESSAGES)) {
    await run.record('MCP', method, async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...message });
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
