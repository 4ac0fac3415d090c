import type { RestProcedure } from '../api/procedures.ts';
import { securityHeaders } from '../http/securityHeaders.ts';
import { commonHeaders, headerViolations, type Judgement, judgedAsJson, judgedByDocument } from './answer.ts';
import type { Given } from './input.ts';
import { comparable, firstDifference, type Outcome, restOutcome, rpcOutcome } from './outcome.ts';
import { rpcViolations } from './rpcAnswer.ts';
import { type Answer, failureOf, type Send, type Sent } from './sender.ts';

/** One call over both surfaces, each answer checked by itself and against the other one. */

export type Call = {
  procedure: RestProcedure;
  input?: Given | undefined;
  isAnonymous?: boolean;
  headers?: Record<string, string>;
};

export type Surface = 'REST' | 'RPC';

/** `outcome` is undefined if the body is not as documented; `read` is what could be read of it all the same. */
export type Checked = { status?: number; answer?: Answer; outcome?: Outcome; read?: Outcome; problems: string[] };

/** Sends a call over REST, and checks the answer. */
export async function overRest(send: Send, { procedure, input, ...more }: Call): Promise<Checked> {
  const path = procedure.rest.path;
  const sent = { path: `/api${path}`, body: input && JSON.stringify(input), ...more };
  return checked(send, sent, 'REST', (answer) => ({
    judged: judgedRest('POST', path, answer),
    outcome: () => restOutcome(procedure, { ...answer, body: JSON.parse(answer.text) }),
  }));
}

/** Sends a call over RPC, and checks the answer. */
export async function overRpc(send: Send, { procedure, input, ...more }: Call): Promise<Checked> {
  const sent = { path: `/trpc/${procedure.name}`, body: input && JSON.stringify({ json: input }), ...more };
  return checked(send, sent, 'RPC', (answer) => ({
    judged: judgedRpc(procedure.name, answer),
    outcome: () => rpcOutcome(procedure, JSON.parse(answer.text)),
  }));
}

async function checked(
  send: Send,
  sent: Sent,
  surface: Surface,
  check: (answer: Answer) => { judged: Judgement; outcome: () => Outcome },
): Promise<Checked> {
  try {
    const answer = await send(sent);
    const { judged, outcome } = check(answer);
    const read = attempt(outcome);
    return {
      status: answer.status,
      answer,
      ...(read && { read }),
      ...(read && judged.body.length === 0 && { outcome: read }),
      problems: allOf(judged).map((problem) => `${surface} ${answer.status}: ${problem}`),
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
export const restProblems = (method: string, path: string, answer: Answer) => allOf(judgedRest(method, path, answer));

/** The same for an RPC answer: its results fit their models, its error has the fields that clients read. */
export const rpcProblems = (path: string, answer: Answer) => allOf(judgedRpc(path, answer));

const allOf = ({ headers, body }: Judgement): string[] => [...headers, ...body];

function judgedRest(method: string, path: string, answer: Answer): Judgement {
  const judged = judgedByDocument({ method, path, response: answer, text: answer.text }, { allowsOtherHeaders: true });
  return withShared(judged, answer);
}

function judgedRpc(path: string, answer: Answer): Judgement {
  // The reason and the version of a row are in the body.
  const { 'X-Error-Reason': _, ETag: __, ...documented } = commonHeaders(answer.status);
  const headers = headerViolations(answer.headers, documented);
  const content = judgedAsJson(answer.headers, answer.text, () => rpcViolations(path, answer.text, answer.status));
  return withShared({ headers: [...headers, ...content.headers], body: content.body }, answer);
}

/** A page or an error of a proxy is not an answer of the service: of all that it lacks, its content type says enough. */
function withShared({ headers, body }: Judgement, answer: Answer): Judgement {
  const isPage = answer.headers.get('content-type')?.startsWith('text/html');
  const isGatewayError = answer.status >= 502 && answer.status <= 504 && !answer.headers.has('x-request-id');
  const isForeign = (isPage || isGatewayError) && !answer.text.startsWith('{');
  return {
    headers: isForeign ? [] : [...headers, ...sharedProblems(answer.headers)],
    body: answer.isUtf8 === false ? [...body, 'The body is not UTF-8.'] : body,
  };
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

type Hide = (outcome: Outcome) => unknown;

/** The first difference between two outcomes, without what belongs to the call itself. */
export function differences(rest: Checked, rpc: Checked, hide: { REST: Hide; RPC: Hide } = HIDE_OF_CALL): string[] {
  if (!rest.outcome || !rpc.outcome) return [];
  const difference = firstDifference(hide.REST(rest.outcome), hide.RPC(withoutLost(rpc.outcome, rest.outcome)));
  return difference === undefined ? [] : [`REST and RPC differ: ${difference}`];
}

const hideOfCall: Hide = (outcome) => comparable(outcome, JSON.stringify(outcome));
const HIDE_OF_CALL = { REST: hideOfCall, RPC: hideOfCall };

/** What REST sends in a header that was lost: the missing header is reported, and makes no second line. */
function withoutLost({ reason, data, ...more }: Outcome, overRest: Outcome): Outcome {
  const sent = overRest.data as { version?: unknown } | null | undefined;
  const isVersionLost = typeof sent === 'object' && sent !== null && 'version' in sent && sent.version === undefined;
  return {
    ...more,
    ...(overRest.reason === null ? { reason: null } : reason !== undefined && { reason }),
    ...(data !== undefined && { data: isVersionLost ? { ...(data as object), version: undefined } : data }),
  };
}
