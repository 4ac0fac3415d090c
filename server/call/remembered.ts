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
  hasKey: boolean;
  called: Procedure[];
  neededRole: Role | undefined;
};

/** The role that the procedures of a request need. */
export const neededRoleOf = ({ neededRole, called }: Asked): Role | undefined =>
  neededRole ?? highestNeeded(called.map(({ access }) => access));

/**
 * The caller of an earlier request with the same credential, project and needed role, whom the statement of the call confirms.
 * Undefined unless the request is one call whose statement does that: not with replicas, which may be behind, and not with an
 * idempotency key, which is claimed first.
 */
export function recallCaller(exchange: Asked, credential: Credential | undefined): AccountCaller | undefined {
  const { services, called, calls, hasKey } = exchange;
  if (!credential || calls !== 1 || hasKey || !called[0]?.meta.confirms || services.replicas) return undefined;
  // A server that went silent is noticed at once by the statement that finds callers.
  if (!services.database.isResponding()) return undefined;
  const remembered = services.rememberedCallers.find(keyOf(exchange, credential));
  return remembered && { ...remembered.caller, unconfirmed: { ...remembered.toConfirm, isConfirmed: false } };
}

export function rememberCaller(exchange: Asked, credential: Credential, caller: AccountCaller | undefined): void {
  const { services, projectId, called } = exchange;
  const key = keyOf(exchange, credential);
  if (!caller) services.rememberedCallers.forget(key);
  if (!caller || !called[0]?.meta.confirms) return;
  const call = {
    chosenProjectId: projectId ?? null,
    enough: rolesFrom(neededRoleOf(exchange) ?? lowestRoleWith('read')),
    keyMaxDays: services.keyMaxDays ?? null,
  };
  const values = toConfirm(credential, call, caller);
  // This call stores the use of the key.
  const later = caller.key ? { ...caller, key: { ...caller.key, isUseDue: false } } : caller;
  if (values) services.rememberedCallers.remember(key, { caller: later, toConfirm: values });
}

const keyOf = (exchange: Asked, credential: Credential) =>
  `${'keyHash' in credential ? credential.keyHash : credential.sessionId} ${exchange.projectId} ${neededRoleOf(exchange)}`;
