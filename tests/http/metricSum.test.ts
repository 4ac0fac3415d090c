import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { keepCounts, metricsOf, sumMetrics } from '../../server/runtime/metricSum.ts';

/** The metrics of a process that has counted `count`. */
function givenProcess(count: number): Promise<string> {
  const registry = new Registry();
  const registers = [registry];
  const common = { help: '-', registers };
  new Counter({ name: 'calls_total', labelNames: ['kind'], ...common }).inc({ kind: 'a' }, count);
  new Gauge({ name: 'running', ...common }).set(count);
  new Gauge({ name: 'lowest', aggregator: 'min', ...common }).set(count);
  new Gauge({ name: 'nodejs_eventloop_lag_p99_seconds', aggregator: 'average', ...common }).set(count);
  new Gauge({ name: 'process_start_time_seconds', aggregator: 'omit', ...common }).set(count);
  const durations = new Histogram({ name: 'seconds', buckets: [5], ...common });
  for (let call = 0; call < count; call++) durations.observe(call);
  return metricsOf(registry);
}

const valuesIn = (page: string) => page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

describe('the metrics of several processes', () => {
  it('are added up, unless they say otherwise', async () => {
    const page = await sumMetrics([await givenProcess(2), await givenProcess(10)]);

    expect(valuesIn(page)).toEqual([
      'calls_total{kind="a"} 12',
      'running 12',
      'lowest 2',
      'nodejs_eventloop_lag_p99_seconds 10',
      'process_start_time_seconds 2',
      'seconds_bucket{le="5"} 8',
      'seconds_bucket{le="+Inf"} 12',
      'seconds_sum 46',
      'seconds_count 12',
    ]);
  });

  it('keep the counts of those that ended, and nothing else of them', async () => {
    const ended = await keepCounts([await keepCounts([await givenProcess(2)]), await givenProcess(3)]);

    const page = await sumMetrics([await givenProcess(1), ended]);

    expect(valuesIn(page)).toEqual([
      'calls_total{kind="a"} 6',
      'running 1',
      'lowest 1',
      'nodejs_eventloop_lag_p99_seconds 1',
      'process_start_time_seconds 1',
      'seconds_bucket{le="5"} 6',
      'seconds_bucket{le="+Inf"} 6',
      'seconds_sum 4',
      'seconds_count 6',
    ]);
  });
});
