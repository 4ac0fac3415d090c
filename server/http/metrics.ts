import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import packageJson from '../../package.json' with { type: 'json' };
import { forbidden, unauthorized } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import type { Load, MetricsAccess, Services } from '../api/services.ts';
import { type Readiness, UNREADY } from '../database/readiness.ts';
import { addReplacements, metricsOf, sumMetrics } from '../runtime/metricSum.ts';
import { REASON_HEADER } from './errorHeaders.ts';
import { limitAddress } from './limitRequests.ts';
import { methodOf, operationOf } from './operation.ts';
import { addReplicas } from './replicaMetrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the calls of an RPC batch; other errors have the header. */
    reasons: Reason[] | undefined;
  }
}

/** Metrics for Prometheus, with the names of prom-client and of OpenTelemetry where they have one. */
export async function metrics(
  scope: FastifyInstance,
  { metricsAccess, load, database, readiness, replicas, rateLimit, siblings }: Services,
): Promise<void> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addBuildInfo(registry, database.isEmbedded ? 'embedded' : 'postgresql');
  addLoad(registry, load);
  addReadiness(registry, readiness);
  if (replicas) addReplicas(registry, replicas);
  addWorkers(registry);
  countRequests(scope, registry);
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
    help: 'Duration of requests, without health checks and scrapes.',
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
    durations.observe(labels, reply.elapsedTime / 1000);
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
  }).set({ version: packageJson.version, database }, 1);
}

/** Their sum over all workers is the number of workers. The parent counts replacements. */
function addWorkers(registry: Registry): void {
  new Gauge({ name: 'deckhand_workers', help: 'Processes that serve requests.', registers: [registry] }).set(1);
  addReplacements(registry);
}

/** Numbers that the node has anyway, read at each scrape. Added up over all workers, unless `aggregator` says otherwise. */
function addLoad(registry: Registry, load: () => Load): void {
  const gauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    read: (now: Load, set: (value: number, labels: Partial<Record<Label, string>>) => void) => void,
    aggregator: 'sum' | 'min' | 'max' = 'sum',
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      aggregator,
      collect() {
        this.reset();
        read(load(), (value, labels) => this.set(labels, value));
      },
    });

  gauge('deckhand_queue_calls', 'Work that runs or waits in a queue.', ['queue', 'state'], ({ queues }, set) => {
    for (const [queue, { running, waiting }] of Object.entries(queues)) {
      set(running, { queue, state: 'running' });
      set(waiting, { queue, state: 'waiting' });
    }
  });
  gauge('deckhand_template_runs', 'Syncs and pushes that this node works on.', [], (now, set) =>
    set(now.templateRuns, {}),
  );
  countByTable(registry, 'deckhand_rows_removed_total', 'Rows that were removed for good.', () => load().removedRows);
  countByTable(
    registry,
    'deckhand_removal_failures_total',
    'Failed attempts to remove rows; each is repeated after 10 minutes.',
    () => load().failedRemovals,
  );
  const { connections, isRedisReachable } = load();
  if (isRedisReachable !== undefined) {
    gauge(
      'deckhand_redis_up',
      '0 while this node counts in memory because Redis is unreachable.',
      [],
      (now, set) => set(Number(now.isRedisReachable), {}),
      'min',
    );
  }
  if (!connections) return;

  const POOL = { db_client_connection_pool_name: 'deckhand' };
  gauge(
    'db_client_connection_count',
    'Connections to the database by state.',
    ['db_client_connection_pool_name', 'db_client_connection_state'],
    (now, set) => {
      set(now.connections?.used ?? 0, { ...POOL, db_client_connection_state: 'used' });
      set(now.connections?.idle ?? 0, { ...POOL, db_client_connection_state: 'idle' });
    },
  );
  gauge(
    'db_client_connection_max',
    'The most connections to the database: DATABASE_POOL_SIZE.',
    ['db_client_connection_pool_name'],
    (now, set) => set(now.connections?.max ?? 0, POOL),
  );
  gauge(
    'db_client_connection_pending_requests',
    'Statements that wait for a connection.',
    ['db_client_connection_pool_name'],
    (now, set) => set(now.connections?.pending ?? 0, POOL),
  );
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

function countByTable(registry: Registry, name: string, help: string, read: () => ReadonlyMap<string, number>): void {
  new Counter({
    name,
    help,
    labelNames: ['table'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const [table, count] of read()) this.inc({ table }, count);
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
