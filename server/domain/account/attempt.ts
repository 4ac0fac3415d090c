import { sql } from 'kysely';
import type { AuditType } from '../../../shared/audit.ts';
import type { EventData } from '../../../shared/event.ts';
import { query, withShortTimeout } from '../../database/query.ts';
import type { Context, With } from '../access/context.ts';

type AttemptContext = Pick<Context, 'db' | 'origin' | 'log'> & With<'attemptLimit'>;
type FailureReason = 'wrong password' | 'unknown account' | 'wrong code' | `identity token: ${string}`;

/** Throws a 429 after too many failures; tells whether the network has failed lately. */
export async function mustBeAllowed(context: AttemptContext, email: string): Promise<{ hasFailed: boolean }> {
  const { attemptLimit } = context.services;
  const { address } = context.origin;
  return attemptLimit.mustBeAllowed({ email, address }).catch((error) => {
    logFailure(context, email, 'blocked');
    throw error;
  });
}

/** Counts a failed attempt, logs it and adds it to the audit trail. The id is null for an unknown account. */
export async function countFailure(
  context: AttemptContext,
  { id, email }: { id: number | null; email: string },
  reason: FailureReason,
): Promise<void> {
  const { attemptLimit } = context.services;
  const { address } = context.origin;
  logFailure(context, email, reason);
  await Promise.all([attemptLimit.countFailure({ email, address }), auditFailure(context, id, reason)]);
}

/** Without the e-mail address, which may be a password that was typed into the wrong field. The attempt limit bounds the rows. */
async function auditFailure({ db, origin, log }: AttemptContext, userId: number | null, reason: string) {
  const type: AuditType = 'session.refused';
  const data: EventData = { reason };
  await query(
    db,
    withShortTimeout(sql`
      insert into audit_entries (type, user_id, surface, request_id, address, data)
      values (${type}, ${userId}::int, ${origin.surface}, ${origin.requestId}, ${origin.address}, ${JSON.stringify(data)}::jsonb)`),
  ).catch((error) => log.warn(error, 'A failed attempt could not be added to the audit trail.'));
}

const LONGEST_EMAIL = 320;

/** For operators who block addresses: the caller's input comes last and is escaped, so it can't fake the rest of the line. */
export function logFailure(
  { log, origin: { address } }: Pick<AttemptContext, 'log' | 'origin'>,
  email: string,
  reason: FailureReason | 'blocked',
): void {
  const account = email.slice(0, LONGEST_EMAIL).replaceAll(/[\p{C}"\\]/gu, '?');
  log.warn({ event: 'authentication_failed', reason, address, account }, 'authentication failed');
}
