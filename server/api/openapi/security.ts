import { KEY_PREFIX } from '../../../shared/key.ts';
import { ACCESS } from '../../domain/access/access.ts';
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

/** A token or, for what can be called with one, a key with these scopes. */
export function securityOf(procedure: Procedure): object[] {
  if (!ACCESS[procedure.access].needsSignIn) return [];
  const scopes = scopesFor(procedure);
  return [{ Authorization: [] }, ...(scopes ? [{ ApiKey: scopes }] : [])];
}
