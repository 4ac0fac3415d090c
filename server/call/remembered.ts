import { lowestRoleWith, type Role } from '../../shared/user.ts';
import type { Procedure } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { highestNeeded, rolesFrom } from '../domain/access/access.ts';
import type { Credential } from '../domain/access/caller.ts';
import { toConfirm } from '../domain/access/confirmation.ts';
import type { AccountCaller } from '../domain/access/context.ts';

/** What it depends on who may be remembered. */
type Asked = {
  services: Services;
  projectId: number | undefined;
  calls: number;
  isPlain: boolean;
  called: Procedure[];
  neededRole: Role | undefined;
};

/** The role that the procedures of a request need. */
export const neededRoleOf = ({ neededRole, called }: Asked): Role | undefined =>
  neededRole ?? highestNeeded(called.map(({ access }) => access));

/**
 * The caller of an earlier request with the same credential, project and needed role, whom the statement of the call confirms.
 * Undefined unless the request is one call whose statement does that: not with replicas, which may be behind, and not with an
 * idempotency key, which is claimed first, or as a stream, whose headers are sent first.
 */
export function recallCaller(exchange: Asked, credential: Credential | undefined): AccountCaller | undefined {
  if (!credential || !confirmsCaller(exchange)) return undefined;
  const remembered = exchange.services.rememberedCallers.find(keyOf(exchange, credential));
  return remembered && { ...remembered.caller, unconfirmed: { ...remembered.toConfirm, isConfirmed: false } };
}

function confirmsCaller({ services, called, calls, isPlain }: Asked): boolean {
  if (calls !== 1 || !isPlain || !called[0]?.meta.confirms || services.replicas) return false;
  const { isEmbedded, hasLane } = services.database;
  // Without a lane, the statement that finds callers is the one that notices a silent server soon.
  return isEmbedded || hasLane;
}

export function rememberCaller(exchange: Asked, credential: Credential, caller: AccountCaller | undefined): void {
  if (!confirmsCaller(exchange)) return;
  const { services, projectId } = exchange;
  const key = keyOf(exchange, credential);
  const call = {
    chosenProjectId: projectId ?? null,
    enough: rolesFrom(neededRoleOf(exchange) ?? lowestRoleWith('read')),
    keyMaxDays: services.keyMaxDays ?? null,
  };
  const values = caller && toConfirm(credential, call, caller);
  if (!caller || !values) {
    services.rememberedCallers.forget(key);
    return;
  }
  // This call stores the use of the key.
  const later = caller.key ? { ...caller, key: { ...caller.key, isUseDue: false } } : caller;
  services.rememberedCallers.remember(key, { caller: later, toConfirm: values });
}

function keyOf(exchange: Asked, credential: Credential): string {
  const own = 'keyHash' in credential ? credential.keyHash : `${credential.userId} ${credential.sessionId}`;
  return `${own} ${exchange.projectId} ${neededRoleOf(exchange)}`;
}
