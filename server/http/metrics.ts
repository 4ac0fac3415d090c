import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { forbidden, unauthorized } from '../errors.ts';
import type { MetricsAccess } from '../services.ts';
import { operationOf } from './operation.ts';

/** Metrics for Prometheus: the process, and the duration of operations by status. */
export async function metrics(scope: FastifyInstance, { token, isOpen }: MetricsAccess): Promise<void> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'deckhand_' });
  const durations = new Histogram({
    name: 'deckhand_request_duration_seconds',
    help: 'Duration of requests by surface, operation and status.',
    labelNames: ['surface', 'operation', 'status'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });

  scope.addHook('onResponse', (request, reply, done) => {
    const { surface } = request.routeOptions.config;
    const labels = { surface, operation: operationOf(request), status: reply.statusCode };
    if (surface) durations.observe(labels, reply.elapsedTime / 1000);
    done();
  });
  scope.get('/metrics', { config: { isProbe: true } }, async ({ headers: { authorization = '' } }, reply) => {
    if (!isOpen && token === undefined)
      throw forbidden('The metrics are closed: the service has no METRICS_TOKEN.', 'metrics_closed');
    if (!isOpen && !isSame(authorization.replace(/^Bearer +/i, ''), token!)) {
      throw unauthorized('Send the METRICS_TOKEN of the service as a Bearer token.', 'not_signed_in');
    }
    return reply.type(registry.contentType).send(await registry.metrics());
  });
  scope.addHook('onClose', async () => registry.clear());
}

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  const [one, other] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(one!, other!);
}
