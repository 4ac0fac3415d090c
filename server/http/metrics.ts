import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { forbidden, unauthorized } from '../../shared/errors.ts';
import type { MetricsAccess, Services } from '../api/services.ts';
import type { Db } from '../database/query.ts';
import { type Readiness, UNREADY } from '../database/readiness.ts';
import { erasuresFileProblem } from '../domain/account/erasureFile.ts';
import { countEndingKeys } from '../domain/account/keyWarning.ts';
import { addReplacements, metricsOf, sumMetrics } from '../runtime/metricSum.ts';
import { VERSION } from '../runtime/version.ts';
import { addDatabaseState } from './databaseMetrics.ts';
import { announceDeprecations } from './deprecation.ts';
import { addGauge, type Values } from './gauge.ts';
import { limitAddress } from './limitRequests.ts';
import { addLoad } from './loadMetrics.ts';
import { addEventMetrics, addMailMetrics, addRolloutMetrics } from './measuredMetrics.ts';
import { countRequests } from './observe.ts';
import { addReplicas } from './replicaMetrics.ts';

/** Metrics for Prometheus, with the names of prom-client and of OpenTelemetry where they have one. */
export async function metrics(scope: FastifyInstance, services: Services): Promise<void> {
  const { metricsAccess, load, database, readiness, replicas, rateLimit, siblings, keyMaxDays } = services;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  addBuildInfo(registry, database.isEmbedded ? 'embedded' : 'postgresql');
  addLoad(registry, load);
  addReadiness(registry, readiness);
  addEventMetrics(registry, database.db);
  addRolloutMetrics(registry, database.db);
  addMailMetrics(registry, database.db);
  addDatabaseState(registry, database.db);
  addEndingKeys(registry, database.db, keyMaxDays);
  if (services.erasures.file !== undefined) addErasuresFile(registry, services.erasures.file);
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

function addErasuresFile(registry: Registry, file: string): void {
  const help = '0 while erasures can not be appended to the file of erasures.';
  const read = async (): Promise<Values<never>> => [[Number((await erasuresFileProblem(file)) === undefined)]];
  addGauge(registry, 'deckhand_erasures_file_writable', help, [], read, 'min');
}

/** Counted at most once a minute: it reads all keys that may end soon. */
function addEndingKeys(registry: Registry, db: Db, keyMaxDays: number | undefined): void {
  let counts = new Map<number, number>();
  let countedAt = Number.NEGATIVE_INFINITY;
  const help = 'Valid API keys that end within so many days; those with a short life, in its last quarter.';
  addGauge(registry, 'deckhand_ending_keys', help, ['days'], async () => {
    if (performance.now() - countedAt >= COUNTED_EVERY_MILLISECONDS) {
      const startedAt = performance.now();
      counts = await countEndingKeys(db, keyMaxDays);
      countedAt = startedAt;
    }
    return Array.from(counts, ([days, count]) => [count, { days }]);
  });
}

const COUNTED_EVERY_MILLISECONDS = 60_000;

/** Checked at each scrape, as by `/health/ready`. */
function addReadiness(registry: Registry, readiness: Readiness): void {
  const help = '1 for the reason why this node is not ready (docs/monitoring.md).';
  addGauge(registry, 'deckhand_unready', help, ['reason'], async () => {
    const unready = await readiness();
    return Object.keys(UNREADY).map((reason) => [Number(reason === unready?.reason), { reason }]);
  });
}

function mustBeAllowed(request: FastifyRequest, access: MetricsAccess): void {
  if (access.isOpen) return;
  if (access.token === undefined)
    throw forbidden('The metrics are closed: the service has no METRICS_TOKEN.', 'metrics_closed');
  if (hasToken(request, access)) return;
  const isSent = /^Bearer +\S/i.test(request.headers.authorization ?? '');
  throw unauthorized(
    'Send the METRICS_TOKEN of the service as a Bearer token.',
    isSent ? 'credential_invalid' : 'not_signed_in',
  );
}

const hasToken = ({ headers: { authorization = '' } }: FastifyRequest, { token }: MetricsAccess) =>
  token !== undefined && isSame(authorization.replace(/^Bearer +/i, ''), token);

/** Compares in constant time. */
function isSame(given: string, wanted: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}
