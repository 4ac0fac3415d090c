import type { RestProcedure } from '../api/procedures.ts';
import { type Both, type Call, callOnBoth } from './exchange.ts';
import type { RecordCase } from './report.ts';
import type { Send, Target } from './sender.ts';

/** What the checks share. */
export type Run = {
  target: Target;
  send: Send;
  /** Not interrupted: for what creates rows, and what removes them. */
  sendLast: Send;
  record: RecordCase;
  /** How long the first bytes of a stream may take, and an event. */
  streamSeconds: number;
  /** The operations that it should have. */
  known: RestProcedure[];
  /** The operations that the service has on both surfaces. */
  procedures: RestProcedure[];
  /** Why the caller may not call an operation. */
  denied: Map<string, string>;
  /** The operations of which both surfaces showed a success. */
  succeeded: Set<string>;
  /** Why an operation of the own rows was refused, over both surfaces. */
  refused: Map<string, string>;
  /** The headers of requests that do not arrive. */
  lostHeaders: Set<string>;
  signal: AbortSignal | undefined;
  announce: (line: string) => void;
  /** The end of the last wait for a 429; 0 if there was none. */
  limitedUntil: () => number;
  /** Where the service reaches this process with webhooks, and the port to listen at. */
  receiver: Receiver | undefined;
};

export type Receiver = { url: string; port: number };

/** The reasons for which a caller has no access to an operation at all, whatever the input. */
const NO_ACCESS = new Set([
  'scope_missing',
  'key_not_allowed',
  'key_required',
  'role_missing',
  'not_a_superadmin',
  'no_project_access',
  'no_account',
  // A session whose password was given long ago.
  'proof_required',
  // Until an operator finishes an upgrade, it is refused to everybody.
  'upgrade_unfinished',
]);

/** Sends a call over both surfaces that must have one of these statuses, unless the caller has no access. */
export async function expectStatus(run: Run, call: Call, statuses: number[]): Promise<Both> {
  const both = await callOnBoth(run.send, call);
  const { rest, rpc, problems } = both;
  const reason = rest.outcome?.reason ?? rpc.outcome?.reason;
  if (reason && NO_ACCESS.has(reason) && !call.isAnonymous) {
    run.denied.set(call.procedure.name, reason);
    return both;
  }
  // Over RPC, a success is always a 200.
  const isRpcSuccess = rpc.status === 200 && !rpc.read?.status;
  const isExpected = (status: number | undefined) => status === undefined || statuses.includes(status);
  const expected = `${statuses.join(' or ')} was expected.`;
  if (!isExpected(rest.status)) problems.push(`REST ${rest.status}: ${expected}`);
  if (!isExpected(isRpcSuccess ? call.procedure.rest.status : rpc.status))
    problems.push(`RPC ${rpc.status}: ${expected}`);
  return both;
}
