import type { RestProcedure } from '../api/procedures.ts';
import type { Given } from './input.ts';
import { allOf, judge, type Surface } from './judge.ts';
import { comparable, firstDifference, type Outcome, restOutcome, rpcOutcome } from './outcome.ts';
import { type Answer, failureOf, type Send, type Sent } from './sender.ts';

/** One call over both surfaces, each answer checked by itself and against the other one. */

export type Call = {
  procedure: RestProcedure;
  input?: Given | undefined;
  isAnonymous?: boolean;
  headers?: Record<string, string>;
};

/** `outcome` is undefined if the body is not as documented; `read` is what could be read of it all the same. */
export type Checked = { status?: number; answer?: Answer; outcome?: Outcome; read?: Outcome; problems: string[] };

export const pathOn = (surface: Surface, { name, rest }: RestProcedure) =>
  surface === 'REST' ? `/api${rest.path}` : `/trpc/${name}`;

export const requestOn = (surface: Surface, { procedure, input, ...more }: Call): Sent => ({
  path: pathOn(surface, procedure),
  body: input && JSON.stringify(surface === 'REST' ? input : { json: input }),
  ...more,
});

/** Sends a call over a surface, and checks the answer. */
export async function callOn(surface: Surface, send: Send, call: Call): Promise<Checked> {
  try {
    const sent = requestOn(surface, call);
    const answer = await send(sent);
    const judged = judge(sent, answer);
    const read = outcomeOf(surface, call.procedure, answer);
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

function outcomeOf(surface: Surface, procedure: RestProcedure, answer: Answer): Outcome | undefined {
  try {
    const body = JSON.parse(answer.text);
    return surface === 'REST' ? restOutcome(procedure, { ...answer, body }) : rpcOutcome(procedure, body);
  } catch {
    return undefined;
  }
}

export type Both = { rest: Checked; rpc: Checked; problems: string[] };

/** Sends a call over both surfaces, one after the other, and compares the outcomes. */
export async function callOnBoth(send: Send, call: Call): Promise<Both> {
  const rest = await callOn('REST', send, call);
  const rpc = await callOn('RPC', send, call);
  return { rest, rpc, problems: [...rest.problems, ...rpc.problems, ...differences(rest, rpc)] };
}

type Hide = (outcome: Outcome) => unknown;

/** The first difference between two outcomes, without what belongs to the call itself. */
export function differences(rest: Checked, rpc: Checked, hide: Record<Surface, Hide> = HIDE_OF_CALL): string[] {
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
