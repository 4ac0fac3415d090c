import type { Replicas } from '../database/replicas.ts';
import type { ActedIn, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import { mustStillBePermitted } from '../domain/access/permission.ts';

/**
 * Runs a query on a replica that shows all that the caller has written and seen, if there is one. The primary decides the access:
 * that to the caller's own project was decided when they were found, and that to other projects is checked afterwards. Whatever
 * fails on the replica is done again on the primary: it may be behind, cancel a statement that conflicts with a change, or be gone.
 */
export async function readOnReplica(
  replicas: Replicas,
  context: Context,
  work: (context: Context) => Promise<unknown>,
): Promise<unknown> {
  const { caller } = context;
  if (caller?.id == null || !caller.written) return work(context);
  const { id } = caller;
  const readOnPrimary = () => work(context).finally(() => replicas.noteRead(id));
  const replica = await replicas.choose(id, caller.written);
  if (!replica) return readOnPrimary();

  const actedIn: ActedIn[] = [];
  try {
    const data = await work({ ...context, db: replica.db, caller: { ...caller, actedIn } as Caller });
    await mustStillBePermitted(context.db, caller as ProjectCaller, actedIn);
    return data;
  } catch (error) {
    if (isTimeout(error)) throw error;
    replicas.noteRetry();
    return readOnPrimary();
  }
}

/** A statement that took too long would take as long on the primary. */
const isTimeout = (error: unknown): boolean =>
  error instanceof Error && ((error as { code?: string }).code === '57014' || isTimeout(error.cause));

/**
 * Runs a mutation, and stores how far its user has written before the answer is sent. After a failure, too: it may have written
 * something before.
 */
export async function noteWriteAfter(
  replicas: Replicas,
  caller: Caller | undefined,
  work: () => Promise<unknown>,
): Promise<unknown> {
  try {
    return await work();
  } finally {
    if (caller?.id != null) await replicas.noteWrite(caller.id);
  }
}
