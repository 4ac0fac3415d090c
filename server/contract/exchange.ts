import type { RestProcedure } from '../api/procedures.ts';
import { securityHeaders } from '../http/securityHeaders.ts';
import { undocumented } from './answer.ts';
import type { Given } from './input.ts';
import { comparable, firstDifference, type Outcome, restOutcome, rpcOutcome } from './outcome.ts';
import { rpcViolations } from './rpcAnswer.ts';
import { type Answer, failureOf, type Send, type Sent } from './sender.ts';
import { documentedHeaders, violations } from './violations.ts';

/** One call over both surfaces, each answer checked by itself and against the other one. */

export type Call = {
  procedure: RestProcedure;
  input?: Given | undefined;
  isAnonymous?: boolean;
  headers?: Record<string, string>;
};

export type Surface = 'REST' | 'RPC';

/** `outcome` is undefined if the answer is not as documented; `read` is what could be read of it all the same. */
export type Checked = { status?: number; answer?: Answer; outcome?: Outcome; read?: Outcome; problems: string[] };

/** Sends a call over REST, and checks the answer. */
export async function overRest(send: Send, { procedure, input, ...more }: Call): Promise<Checked> {
  const path = procedure.rest.path;
  const sent = { path: `/api${path}`, body: input && JSON.stringify(input), ...more };
  return checked(send, sent, 'REST', (answer) => ({
    problems: restProblems('POST', path, answer),
    outcome: () => restOutcome(procedure, { ...answer, body: JSON.parse(answer.text) }),
  }));
}

/** Sends a call over RPC, and checks the answer. */
export async function overRpc(send: Send, { procedure, input, ...more }: Call): Promise<Checked> {
  const sent = { path: `/trpc/${procedure.name}`, body: input && JSON.stringify({ json: input }), ...more };
  return checked(send, sent, 'RPC', (answer) => ({
    problems: rpcProblems(procedure.name, answer),
    outcome: () => rpcOutcome(procedure, JSON.parse(answer.text)),
  }));
}

async function checked(
  send: Send,
  sent: Sent,
  surface: Surface,
  check: (answer: Answer) => { problems: string[]; outcome: () => Outcome },
): Promise<Checked> {
  try {
    const answer = await send(sent);
    const { problems, outcome } = check(answer);
    const read = attempt(outcome);
    return {
      status: answer.status,
      answer,
      ...(read && { read }),
      ...(read && problems.length === 0 && { outcome: read }),
      problems: problems.map((problem) => `${surface} ${answer.status}: ${problem}`),
    };
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    return { problems: [`${surface}: no answer (${failureOf(error as Error)})`] };
  }
}

function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

/** How a REST answer differs from the document and from what every answer has. */
export const restProblems = (method: string, path: string, answer: Answer): string[] => [
  ...undocumented({ method, path, response: answer, text: answer.text }, { allowsOtherHeaders: true }),
  ...sharedProblems(answer.headers),
];

/** The same for an RPC answer: its results fit their models, its error has the fields that clients read. */
export function rpcProblems(path: string, answer: Answer): string[] {
  const headers = [
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-Request-Id',
    'X-Deckhand-Version',
    ...(answer.status === 429 ? ['Retry-After'] : []),
  ];
  const wrong = [
    ...headers.flatMap((name) => {
      const value = answer.headers.get(name);
      const { schema } = documentedHeaders[name]!;
      if (value === null) return [`The header ${name} is missing.`];
      return violations(schema, schema.type === 'integer' ? Number(value) : value).map((line) => `${name}: ${line}`);
    }),
    ...sharedProblems(answer.headers),
  ];
  const isJson = answer.headers.get('content-type') === 'application/json; charset=utf-8';
  return isJson
    ? [...wrong, ...rpcViolations(path, answer.text, answer.status)]
    : [...wrong, 'The content type is not JSON.'];
}

/** Headers for browsers and caches, which a proxy must not take away. */
const SHARED_HEADERS = { ...securityHeaders(), 'cache-control': 'no-store' };

function sharedProblems(headers: Headers): string[] {
  return Object.entries(SHARED_HEADERS).flatMap(([name, value]) => {
    const sent = headers.get(name);
    if (sent === value) return [];
    return [sent === null ? `The header ${name} is missing.` : `The header ${name} is ${sent}, not ${value}.`];
  });
}

export type Both = { rest: Checked; rpc: Checked; problems: string[] };

/** Sends a call over both surfaces, one after the other, and compares the outcomes. */
export async function overBoth(send: Send, call: Call): Promise<Both> {
  const rest = await overRest(send, call);
  const rpc = await overRpc(send, call);
  return { rest, rpc, problems: [...rest.problems, ...rpc.problems, ...differences(rest, rpc)] };
}

/** The first difference between two outcomes, without what belongs to the call itself. */
export function differences(rest: Checked, rpc: Checked, hide = hideOfCall): string[] {
  if (!rest.outcome || !rpc.outcome) return [];
  const difference = firstDifference(hide(rest.outcome), hide(rpc.outcome));
  return difference === undefined ? [] : [`REST and RPC differ: ${difference}`];
}

const hideOfCall = (outcome: Outcome) => comparable(outcome, JSON.stringify(outcome));
