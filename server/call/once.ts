import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import superjson, { type SuperJSONResult } from 'superjson';
import { badRequest, invalid, tooManyRequests } from '../../shared/errors.ts';
import type { Procedure } from '../api/procedures.ts';
import { transact } from '../database/query.ts';
import { ACCESS, accountOf, type Rule } from '../domain/access/access.ts';
import type { ActedIn, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import {
  claimKey,
  type EarlierCall,
  finishKey,
  type KeyedCall,
  RENEW_MILLISECONDS,
  releaseKey,
  renewHold,
} from '../domain/access/idempotencyKey.ts';
import { mustStillBePermitted } from '../domain/access/permission.ts';
import { withValues } from '../runtime/jsonText.ts';

/** A call with an idempotency key. */
type Call = {
  procedure: Pick<Procedure, 'name' | 'access' | 'meta'>;
  key: string;
  /** As parsed by the procedure's schema; undefined without one. */
  input: unknown;
  /** Told that the answer is that of an earlier call. */
  onReplay: () => void;
};

/** The procedure itself, with this context. */
type Work = (context: Context) => Promise<unknown>;

type CallerContext = Context & { caller: Caller };

/** Runs the work of a call with a key, or returns the response of the earlier call with it. A failure frees the key. */
export async function runOnce(context: CallerContext, call: Call, work: Work): Promise<unknown> {
  const { isProjectChosen, project } = context.caller;
  const { idempotency: mode, prepare } = call.procedure.meta;
  // The same input does something else in another project.
  const hashes = context.services.secretBox.hashes(JSON.stringify([isProjectChosen ? project?.id : null, call.input]));
  const holder = mode ? randomUUID() : null;
  const keyed = { user_id: accountOf(context.caller), procedure: call.procedure.name, key: call.key, hashes, holder };
  if (mode) return runInSteps(context, call, keyed, work);

  const prepared = prepare && { result: await prepare(context, call.input) };
  return runInTransaction({ ...context, prepared }, call, keyed, work);
}

async function runInTransaction(context: CallerContext, call: Call, keyed: KeyedCall, work: Work): Promise<unknown> {
  let failed: { error: unknown } | undefined;
  try {
    return await transact(context.db, async (db) => {
      failed = undefined;
      const earlier = await claimKey(db, keyed).catch((error) => {
        throw error.code === LOCK_TIMEOUT ? stillRunning() : error;
      });
      if (earlier) return replay({ ...context, db }, call, keyed, earlier);

      const data = await work({ ...context, db }).catch((error) => {
        failed = { error };
        // Rolls back; the cause tells whether the transaction is worth a retry.
        throw error.cause ?? error;
      });
      await finishKey(db, keyed, textOf(data, context));
      return data;
    });
  } catch (error) {
    throw failed ? failed.error : error;
  }
}
const LOCK_TIMEOUT = '55P03';

async function runInSteps(context: CallerContext, call: Call, keyed: KeyedCall, work: Work): Promise<unknown> {
  const { db, log } = context;
  const earlier = await claimOrWait(context, keyed);
  if (earlier) return replay(context, call, keyed, earlier);

  const timer = setInterval(() => renewHold(db, keyed).catch(() => undefined), RENEW_MILLISECONDS).unref();
  try {
    const data = await work(context).catch(async (error) => {
      await end(releaseKey(db, keyed));
      throw error;
    });
    const isSecret = call.procedure.meta.idempotency === 'secret';
    await end(finishKey(db, keyed, isSecret ? null : textOf(data, context)));
    return data;
  } finally {
    clearInterval(timer);
  }

  /** The work is done, so its outcome is sent; a repeat takes over once the hold has expired. */
  function end(stored: Promise<unknown>) {
    return stored.catch((error) => log.warn(error, 'The end of a call with an idempotency key could not be stored.'));
  }
}

const LONGEST_WAIT_MILLISECONDS = 5_000;
const POLL_MILLISECONDS = 200;

/** Waits while another call works on the key. It polls, so that no connection is occupied meanwhile. */
async function claimOrWait({ db, services }: Context, keyed: KeyedCall): Promise<EarlierCall | undefined> {
  const latest = performance.now() + LONGEST_WAIT_MILLISECONDS;
  for (;;) {
    const earlier = await claimKey(db, keyed);
    if (!earlier || earlier.isFinished || !isSameInput(keyed, earlier)) return earlier;
    if (services.isStopping() || performance.now() > latest) throw stillRunning();
    await pause(POLL_MILLISECONDS);
  }
}

const isSameInput = ({ hashes }: KeyedCall, { input_hash }: EarlierCall) => hashes.includes(input_hash);

/** The response of the earlier call, for a caller who may still act where it acted. */
async function replay(
  { db, caller }: CallerContext,
  { procedure, input, onReplay }: Call,
  keyed: KeyedCall,
  earlier: EarlierCall,
): Promise<unknown> {
  const { rest } = procedure.meta;
  const documents422 = rest?.errors?.includes(422) ?? (!rest || input !== undefined);
  if (!isSameInput(keyed, earlier)) throw reused(documents422);
  if (earlier.answer === null) {
    throw badRequest('This call was already executed, and its answer is not kept.', 'idempotency_answer_not_kept');
  }
  const { actedIn, ...response }: Stored = JSON.parse(earlier.answer);
  const { right }: Rule = ACCESS[procedure.access];
  const hasRight = right && caller[right] && !caller.isProjectChosen;
  if (actedIn && !hasRight) await mustStillBePermitted(db, caller as ProjectCaller, actedIn);
  onReplay();
  return superjson.deserialize(response);
}

/** Larger responses are not stored. */
const MOST_BYTES = 1024 * 1024;

/** A response with where its call acted; nodes of the previous version ignore that. */
type Stored = SuperJSONResult & { actedIn?: ActedIn[] };

function textOf(response: unknown, { caller }: Context): string | null {
  const { actedIn = [] } = caller as Partial<ProjectCaller>;
  // Each row that was found has added its project.
  const places = [...new Map(actedIn.map((place) => [JSON.stringify(place), place])).values()];
  const stored: Stored = {
    ...superjson.serialize(withValues(response)),
    ...(places.length > 0 && { actedIn: places }),
  };
  const text = JSON.stringify(stored);
  return Buffer.byteLength(text) > MOST_BYTES ? null : text;
}

const stillRunning = () =>
  tooManyRequests('An earlier call with this Idempotency-Key is still running.', 5, 'idempotency_key_running');

function reused(documents422: boolean): Error {
  const predicate = 'was used for another input or project: send a new one';
  return documents422
    ? invalid({ 'Idempotency-Key': predicate }, 'idempotency_key_reused')
    : badRequest(`Idempotency-Key ${predicate}.`, 'idempotency_key_reused');
}
