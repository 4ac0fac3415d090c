import type { FastifyInstance } from 'fastify';
import { badRequest } from '../../shared/errors.ts';
import type { Services } from '../api/services.ts';
import { endSsoLogout } from '../domain/account/identity.ts';
import { clientAddress } from '../runtime/address.ts';
import { limitBadRequests } from './limitRequests.ts';

const LARGEST_BODY_BYTES = 64 * 1024;

/** Back-channel logout of OpenID Connect: providers post here when a person signs out there. */
export async function ssoLogout(
  scope: FastifyInstance,
  { database, identityProviders, rateLimit }: Services,
): Promise<void> {
  limitBadRequests(scope, rateLimit);
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: LARGEST_BODY_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  scope.addHook('onRequest', async (_request, reply) => void reply.header('Cache-Control', 'no-store'));

  for (const [name, provider] of identityProviders)
    scope.post(`/${name}`, async (request, reply) => {
      const token = request.body instanceof URLSearchParams ? request.body.get('logout_token') : null;
      const origin = {
        surface: 'service',
        requestId: request.id,
        address: clientAddress(request),
        serviceUrl: '',
      } as const;
      try {
        await endSsoLogout({ db: database.db, caller: undefined, origin }, provider, token ?? '');
      } catch (error) {
        request.log.warn({ issuer: name, cause: (error as Error).message }, 'A logout token was refused.');
        throw badRequest('The logout token is missing or invalid.', 'signature_invalid');
      }
      return reply.code(200).send();
    });
}
