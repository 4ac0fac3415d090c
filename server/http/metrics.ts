import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { operationOf } from './procedures.ts';

/** For Prometheus: the process, and how long each operation takes with which outcome. */
export async function metrics(scope: FastifyInstance): Promise<void> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'deckhand_' });
  const durations = new Histogram({
    name: 'deckhand_request_duration_seconds',
    help: 'Duration of requests by surface, operation and status.',
    labelNames: ['surface', 'operation', 'status'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });

  scope.addHook('onResponse', async (request, reply) => {
    const { surface } = request.routeOptions.config;
    const labels = { surface, operation: operationOf(request), status: reply.statusCode };
    if (surface) durations.observe(labels, reply.elapsedTime / 1000);
  });
  scope.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()));
  scope.addHook('onClose', async () => registry.clear());
}
