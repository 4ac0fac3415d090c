import type { FastifyInstance } from 'fastify';
import type { Database } from '../database/connect.ts';
import { ping } from '../database/query.ts';

/** For load balancers and process managers: `live` while the process answers, `ready` while it can serve requests. */
export async function health(
  scope: FastifyInstance,
  { database, isStopping }: { database: Database; isStopping: () => boolean },
) {
  const config = { isProbe: true };
  scope.get('/health/live', { config }, () => ({ status: 'live' }));

  /** Concurrent health checks share one query. */
  let asking: Promise<unknown> | undefined;
  const askDatabase = () => {
    asking ??= ping(database.db).finally(() => {
      asking = undefined;
    });
    return asking;
  };

  scope.get('/health/ready', { config }, async (request, reply) => {
    if (isStopping()) return reply.code(503).send({ status: 'stopping' });
    try {
      await askDatabase();
      return { status: 'ready' };
    } catch (error) {
      request.log.warn(error, 'The database does not answer.');
      return reply.code(503).send({ status: 'database unavailable' });
    }
  });
}
