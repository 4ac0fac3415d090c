import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { forbidden, unauthorized } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { MetricsAccess, Services } from '../api/services.ts';
import type { Db } from '../database/query.ts';
import { type Readiness, UNREADY } from '../database/readiness.ts';
import { countEndingKeys } from '../domain/account/keyWarning.ts';
import { eventDelaySeconds } from '../domain/event/feed.ts';
import { addReplacements, metricsOf, sumMetrics } from '../runtime/metricSum.ts';
import { VERSION } from '../runtime/version.ts';
import { announceDeprecations } from './deprecation.ts';
import { REASON_HEADER } from './errorHeaders.ts';
import { limitAddress } from './limitRequests.ts';
import { addLoad } from './loadMetrics.ts';
import { methodOf, operationOf } from './operation.ts';
import { addReplicas } from './replicaMetrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the calls of an RPC batch; other errors have the header. */
    reasons: Reason[] | undefined;
    /** A stream of events, which lasts as long as its client wants. */
    isOpenEnded: boolean;
  }
}

/** Metrics for Prometheus, with the names of prom-client and of OpenTelemetry where they have one. */
export async function metrics(scope: FastifyInstance, services: Services): Promise<void> {
  const { metricsAccess, load, database, readiness, replicas, rateLimit, siblings, keyMaxDays } = services;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addBuildInfo(registry, database.isEmbedded ? 'embedded' : 'postgresql');
  addLoad(registry, load);
  addReadiness(registry, readiness);
  addEventDelay(registry, database.db);
  addEndingKeys(registry, database.db, keyMaxDays);
  if (replicas) addReplicas(registry, replicas);
  addWorkers(registry);
  countRequests(scope, registry);
  announceDeprecations(scope, registry, services);
  const collectAll = siblings?.collectMetrics(() => metricsOf(registry));
  const readAll = async () => (collectAll ? sumMetrics(await collectAll()) : registry.metrics());

  // A scrape with the token has no limit: a node whose address is flooded must not look down.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply) => {
    if (!hasToken(request, metricsAccess)) await limitAddress(request, reply, rateLimit);
  };
  scope.get('/metrics', { config: { isProbe: true }, onRequest }, async (request, reply) => {
    mustBeAllowed(request, metricsAccess);
    return reply.type(registry.contentType).send(await readAll());
  });
  scope.addHook('onClose', async () => registry.clear());
}

/**
 * Duration of requests, and errors by reason. All labels come from closed lists. The route and, for REST, the method follow from
 * surface and operation: they add no series.
 */
function countRequests(scope: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of requests, without health checks, scrapes and streams of events.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code', 'surface', 'operation'] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const errors = new Counter({
    name: 'deckhand_errors_total',
    help: 'Calls that were refused or failed, by reason (docs/errors.md). Each call of a batch counts.',
    labelNames: ['surface', 'reason'] as const,
    registers: [registry],
  });

  scope.decorateRequest('reasons', undefined);
  scope.decorateRequest('isOpenEnded', false);
  scope.addHook('onResponse', (request, reply, done) => {
    done();
    const { config, url } = request.routeOptions;
    if (config.isProbe) return;
    const surface = config.surface ?? 'other';
    const labels = {
      http_request_method: methodOf(request),
      http_route: url ?? '',
      http_response_status_code: reply.statusCode,
      surface,
      operation: operationOf(request),
    };
    if (!request.isOpenEnded) durations.observe(labels, reply.elapsedTime / 1000);
    const reason = reply.getHeader(REASON_HEADER) as Reason | undefined;
    for (const each of request.reasons ?? (reason ? [reason] : [])) errors.inc({ surface, reason: each });
  });
}

function addBuildInfo(registry: Registry, database: string): void {
  new Gauge({
    name: 'deckhand_build_info',
    help: 'Always 1; the labels are the version and the kind of database.',
    labelNames: ['version', 'database'],
    registers: [registry],
    aggregator: 'max',
  }).set({ version: VERSION, database }, 1);
}

/** Their sum over all workers is the number of workers. The parent counts replacements. */
function addWorkers(registry: Registry): void {
  new Gauge({ name: 'deckhand_workers', help: 'Processes that serve requests.', registers: [registry] }).set(1);
  addReplacements(registry);
}

/** Read at each scrape; without a value if the database does not answer. */
function addEventDelay(registry: Registry, db: Db): void {
  new Gauge({
    name: 'deckhand_event_delay_seconds',
    help: 'How long the oldest event waits for a transaction that is still running.',
    registers: [registry],
    aggregator: 'max',
    async collect() {
      this.reset();
      const seconds = await eventDelaySeconds(db).catch(() => undefined);
      if (seconds !== undefined) this.set(seconds);
    },
  });
}

function addEndingKeys(registry: Registry, db: Db, keyMaxDays: number | undefined): void {
  new Gauge({
    name: 'deckhand_ending_keys',
    help: 'Valid API keys that end within so many days; those with a short life, in its last quarter.',
    labelNames: ['days'],
    registers: [registry],
    aggregator: 'max',
    async collect() {
      this.reset();
      const counts = await countEndingKeys(db, keyMaxDays).catch(() => new Map<number, number>());
      for (const [days, count] of counts) this.set({ days }, count);
    },
  });
}

/** Checked at each scrape, as by `/health/ready`. */
function addReadiness(registry: Registry, readiness: Readiness): void {
  new Gauge({
    name: 'deckhand_unready',
    help: '1 for the reason why this node is not ready (docs/monitoring.md).',
    labelNames: ['reason'],
    registers: [registry],
    aggregator: 'max',
    async collect() {
      const unready = await readiness();
      for (const reason of Object.keys(UNREADY)) this.set({ reason }, Number(reason === unready?.reason));
    },
  });
}

function mustBeAllowed(request: FastifyRequest, access: MetricsAccess): void {
  if (access.isOpen) return;
  if (access.token === undefined)
    throw forbidden('The metrics are closed: the service has no METRICS_TOKEN.', 'metrics_closed');
  if (!hasToken(request, access))
    throw unauthorized('Send the METRICS_TOKEN of the service as a Bearer token.', 'not_signed_in');
}

const hasToken = ({ headers: { authorization = '' } }: FastifyRequest, { token }: MetricsAccess) =>
  token !== undefined && isSame(authorization.replace(/^Bearer +/i, ''), token);

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}
