import type { Registry } from 'prom-client';
import type { Replicas } from '../database/replicas.ts';
import { addCounter, addGauge } from './gauge.ts';

/** Which servers reads go to, and how far the replicas are behind. */
export function addReplicas(registry: Registry, { load }: Replicas): void {
  addGauge(
    registry,
    'deckhand_replica_up',
    '0 while no reads go to the replica.',
    ['replica'],
    () => load().replicas.map(({ name, isLeftOut }) => [Number(!isLeftOut), { replica: name }]),
    'min',
  );
  addGauge(registry, 'deckhand_replica_lag_seconds', 'How far the replica is behind the primary.', ['replica'], () =>
    load().replicas.flatMap(({ name, lagSeconds }) =>
      lagSeconds === undefined ? [] : [[lagSeconds, { replica: name }]],
    ),
  );
  addCounter(
    registry,
    'deckhand_reads_total',
    'Queries by where they were sent first: to the primary, or to a replica.',
    ['server'],
    () => Array.from(load().reads, ([server, count]) => [count, { server }]),
  );
  addCounter(
    registry,
    'deckhand_replica_retries_total',
    'Queries that a replica failed to answer, and the primary did.',
    [],
    () => [[load().retries]],
  );
}
