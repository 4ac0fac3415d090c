import type { FastifyInstance } from 'fastify';
import type { Services } from '../api/services.ts';
import { UNREADY } from '../database/readiness.ts';

/** For load balancers and process managers: `live` while the process answers, `ready` while it can serve requests. */
export async function health(
  scope: FastifyInstance,
  { readiness, isStopping }: Pick<Services, 'readiness' | 'isStopping'>,
) {
  const config = { isProbe: true };
  scope.get('/health/live', { config }, () => ({ status: 'live' }));

  scope.get('/health/ready', { config }, async (request, reply) => {
    if (isStopping()) return reply.code(503).send({ status: 'stopping' });
    const unready = await readiness();
    if (!unready) return { status: 'ready' };
    const status = UNREADY[unready.reason];
    request.log.warn({ err: unready.cause }, `Not ready: ${status}.`);
    return reply.code(503).send({ status });
  });
}
