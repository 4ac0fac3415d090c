import { KEY_PREFIX } from '../../../shared/key.ts';
import { ACCESS, type Rule } from '../../domain/access/access.ts';
import { scopesFor } from '../../domain/access/scopes.ts';
import type { Procedure } from '../procedures.ts';

export const SECURITY_SCHEMES = {
  Authorization: {
    type: 'http',
    scheme: 'bearer',
    description: '`data.token` of the answer of `/v1/authenticate`, without `Bearer` in front.',
  },
  ApiKey: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: `${KEY_PREFIX}…`,
    description: 'The secret of an API key, which needs all scopes that the operation lists.',
  },
} as const;

/** A token, a key with these scopes, or either. */
export function securityOf(procedure: Procedure): object[] {
  const { needsSignIn, needsKey }: Rule = ACCESS[procedure.access];
  if (!needsSignIn) return [];
  const scopes = scopesFor(procedure);
  return [...(needsKey ? [] : [{ Authorization: [] }]), ...(scopes ? [{ ApiKey: scopes }] : [])];
}
