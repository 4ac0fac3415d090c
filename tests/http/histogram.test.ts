import { Histogram, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { addHistogram } from '../../server/runtime/histogram.ts';
import { metricsOf, sumMetrics } from '../../server/runtime/metricSum.ts';

const SHAPE = { name: 'calls_seconds', help: 'Calls.', buckets: [0.1, 0.5, 2] };
const VALUES: [string, number][] = [
  ['rest', 0.05],
  ['rest', 0.1],
  ['rest', 1.5],
  ['rpc', 3],
];

function givenHistogram() {
  const registry = new Registry();
  const add = addHistogram({ ...SHAPE, label: 'surface', registry });
  for (const [surface, value] of VALUES) add(surface, value);
  return registry;
}

describe('addHistogram', () => {
  it('is read like a histogram of prom-client', async () => {
    const registers = [new Registry()];
    const expected = new Histogram({ ...SHAPE, labelNames: ['surface'], registers });
    for (const [surface, value] of VALUES) expected.observe({ surface }, value);

    const registry = givenHistogram();

    expect(await registry.metrics()).toBe(await registers[0]!.metrics());
  });

  it('is added up over several processes', async () => {
    const summed = await sumMetrics([await metricsOf(givenHistogram()), await metricsOf(givenHistogram())]);

    expect(summed).toContain('calls_seconds_bucket{le="0.1",surface="rest"} 4');
    expect(summed).toContain('calls_seconds_count{surface="rpc"} 2');
  });
});
