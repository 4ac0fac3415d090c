import { Counter, Gauge, type Registry } from 'prom-client';
import type { Replicas } from '../database/replicas.ts';

/** Which servers reads go to, and how far the replicas are behind. */
export function addReplicas(registry: Registry, { load }: Replicas): void {
  const registers = [registry];
  new Gauge({
    name: 'deckhand_replica_up',
    help: '0 while no reads go to the replica.',
    aggregator: 'min',
    labelNames: ['replica'],
    registers,
    collect() {
      this.reset();
      for (const { name, isLeftOut } of load().replicas) this.set({ replica: name }, Number(!isLeftOut));
    },
  });
  new Gauge({
    name: 'deckhand_replica_lag_seconds',
    help: 'How far the replica is behind the primary.',
    aggregator: 'max',
    labelNames: ['replica'],
    registers,
    collect() {
      this.reset();
      for (const { name, lagSeconds } of load().replicas)
        if (lagSeconds !== undefined) this.set({ replica: name }, lagSeconds);
    },
  });
  new Counter({
    name: 'deckhand_reads_total',
    help: 'Queries by where they were sent first: to the primary, or to a replica.',
    labelNames: ['server'],
    registers,
    collect() {
      this.reset();
      for (const [server, count] of load().reads) this.inc({ server }, count);
    },
  });
  new Counter({
    name: 'deckhand_replica_retries_total',
    help: 'Queries that a replica failed to answer, and the primary did.',
    registers,
    collect() {
      this.reset();
      this.inc(load().retries);
    },
  });
}
