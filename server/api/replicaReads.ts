import type { Replicas } from '../database/replicas.ts';
import type { ActedIn, Caller, Context, ProjectCaller } from '../domain/access/context.ts';
import { mustStillBePermitted } from '../domain/access/permission.ts';
import type { Result } from './idempotency.ts';

/** The procedure itself, with these parts of its context. */
type Work<Worked> = (changes?: Pick<Context, 'db' | 'caller'>) => Promise<Worked>;

/**
 * Runs a query on a replica that shows all that the caller has written, if there is one. The primary decides the access: that to
 * the caller's own project was decided when they were found, and that to other projects is checked afterwards. Whatever fails on
 * the replica is done again on the primary: it may be behind, cancel a statement that conflicts with a change, or be gone.
 */
export async function readOnReplica<Worked extends Result>(
  context: Context & { replicas: Replicas },
  work: Work<Worked>,
): Promise<Worked> {
  const { db, replicas, caller } = context;
  const replica = caller?.id != null && caller.written && replicas.choose(caller.id, caller.written);
  if (!replica) return work();

  const actedIn: ActedIn[] = [];
  const result = await work({ db: replica.db, caller: { ...caller, actedIn } as Caller });
  if (result.ok ? await isStillPermitted(context, actedIn) : isTimeout(result.error.cause)) return result;
  replicas.noteRetry();
  return work({ db, caller });
}

async function isStillPermitted({ db, caller }: Context, actedIn: ActedIn[]): Promise<boolean> {
  return mustStillBePermitted(db, caller as ProjectCaller, actedIn).then(
    () => true,
    () => false,
  );
}

/** A statement that took too long would take as long on the primary. */
const isTimeout = (cause: unknown) => (cause as { code?: string } | undefined)?.code === '57014';

/**
 * Runs a mutation, and stores how far its user has written before the answer is sent. After a failure, too: it may have written
 * something before.
 */
export async function noteWriteAfter<Worked>(
  { replicas, caller }: Context & { replicas: Replicas },
  work: () => Promise<Worked>,
): Promise<Worked> {
  try {
    return await work();
  } finally {
    if (caller?.id != null) await replicas.noteWrite(caller.id);
  }
}
