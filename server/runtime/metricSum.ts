import { AggregatorRegistry, Counter, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client';

type Metric = MetricObjectWithValues<MetricValue<string>>;

/** The metrics of this process, for `sumMetrics`. */
export async function metricsOf(registry: Registry): Promise<string> {
  const metrics = await registry.getMetricsAsJSON();
  return JSON.stringify(metrics.map((metric) => ({ ...metric, aggregator: aggregatorOf(metric) })));
}

/** The metrics of several processes as one page for Prometheus. */
export const sumMetrics = (texts: string[]): Promise<string> => sum(texts).metrics();

/** What must not get lost with processes that ended, so that no counter goes backwards. */
export async function keepCounts(texts: string[]): Promise<string> {
  const metrics: Metric[] = await sum(texts).getMetricsAsJSON();
  // prom-client writes the type as text, whatever its declaration says.
  return JSON.stringify(metrics.filter(({ type }) => ['counter', 'histogram'].includes(String(type))));
}

const sum = (texts: string[]) => AggregatorRegistry.aggregate(texts.map((text) => JSON.parse(text)));

/** Other metrics say it where they are defined. prom-client omits the start, and takes the average of the event loops. */
function aggregatorOf({ name, aggregator }: Metric): Metric['aggregator'] {
  if (name === 'process_start_time_seconds') return 'min';
  if (name === 'nodejs_eventloop_lag_min_seconds') return 'min';
  if (name.startsWith('nodejs_eventloop_lag_')) return 'max';
  return aggregator;
}

/** Replaced workers; 0 in a worker itself and in a single process. */
export const addReplacements = (registry: Registry) =>
  new Counter({
    name: 'deckhand_worker_replacements_total',
    help: 'Workers that ended and were replaced.',
    registers: [registry],
  });
