import { Counter, Gauge, type Registry } from 'prom-client';

/** The values of a metric, each with its labels. */
export type Values<Label extends string> = [value: number, labels?: Partial<Record<Label, string | number>>][];

/** A gauge that is read at each scrape. While that fails, it has no value: 0 would look healthy. */
export function addGauge<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[],
  read: () => Values<Label> | Promise<Values<Label>>,
  /** What several workers have together; by default, each worker reads the same. */
  aggregator: 'sum' | 'min' | 'max' = 'max',
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers: [registry],
    aggregator,
    async collect() {
      const values = await (async () => read())().catch((): Values<Label> => []);
      // Without labels, `reset` would set 0.
      this.reset();
      if (labelNames.length === 0) this.remove();
      for (const [value, labels = {}] of values) this.set(labels, value);
    },
  });
}

/** A counter that is read at each scrape. */
export function addCounter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: Label[],
  read: () => Values<Label>,
): void {
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const [value, labels = {}] of read()) this.inc(labels, value);
    },
  });
}
