import type { FastifyInstance } from 'fastify';
import { SCOPES } from '../api/routers/app.ts';
import type { Services } from '../api/services.ts';
import { limitAddresses } from './limitRequests.ts';

const PATH = '/oauth-protected-resource';

/** The address of the metadata, as in the header `WWW-Authenticate`. */
export const metadataAddress = (origin: string) => `${origin}/.well-known${PATH}/mcp`;

/**
 * How to authenticate at `/mcp` (RFC 9728), at the path of the resource and, for older clients, at the root. It names no
 * authorization server: people create the keys.
 */
export async function resourceMetadata(scope: FastifyInstance, { rateLimit, publicUrl }: Services): Promise<void> {
  limitAddresses(scope, rateLimit);
  for (const path of [PATH, `${PATH}/mcp`]) {
    scope.get(path, async () => {
      const origin = publicUrl ?? scope.ownOrigin;
      return {
        resource: `${origin}/mcp`,
        resource_name: 'Deckhand',
        resource_documentation: `${origin}/docs/guides/assistants`,
        bearer_methods_supported: ['header'],
        scopes_supported: SCOPES,
      };
    });
  }
}
