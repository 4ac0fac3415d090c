import type { Registry } from 'prom-client';
import type { Load } from '../api/services.ts';
import { addCounter, addGauge, type Values } from './gauge.ts';

/** What a node knows of itself. Summed over all workers, unless the aggregator says otherwise. */
export function addLoad(registry: Registry, load: () => Load): void {
  const gauge: AddLoad = (name, help, labelNames, read, aggregator = 'sum') =>
    addGauge(registry, name, help, labelNames, () => read(load()), aggregator);
  const counter = (name: string, help: string, label: string, read: (now: Load) => ReadonlyMap<string, number>) =>
    addCounter(registry, name, help, [label], () =>
      Array.from(read(load()), ([of, count]) => [count, { [label]: of }]),
    );

  gauge('deckhand_queue_calls', 'Work that runs or waits in a queue.', ['queue', 'state'], ({ queues }) =>
    Object.entries(queues).flatMap(([queue, { running, waiting }]) => [
      [running, { queue, state: 'running' }],
      [waiting, { queue, state: 'waiting' }],
    ]),
  );
  gauge('deckhand_template_runs', 'Syncs and pushes that this node works on.', [], (now) => [[now.templateRuns]]);
  gauge('deckhand_followers', 'Open streams of events.', [], (now) => [[now.followers]]);
  counter('deckhand_rows_removed_total', 'Rows that were removed for good.', 'table', (now) => now.removedRows);
  counter(
    'deckhand_removal_failures_total',
    'Failed attempts to remove rows; each is repeated after 10 minutes.',
    'table',
    (now) => now.failedRemovals,
  );
  counter(
    'deckhand_webhook_deliveries_total',
    'Attempts to deliver an event to a webhook.',
    'status',
    (now) => now.webhookDeliveries,
  );
  counter(
    'deckhand_mails_total',
    'Mails by how an attempt ended: sent, retried later, failed for good, dropped without a recipient.',
    'outcome',
    (now) => now.mails,
  );
  const { connections, isRedisReachable } = load();
  if (isRedisReachable !== undefined) {
    const help = '0 while this node counts in memory because Redis is unreachable.';
    gauge('deckhand_redis_up', help, [], (now) => [[Number(now.isRedisReachable)]], 'min');
  }
  if (connections) addPools(gauge);
}

type AddLoad = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  read: (now: Load) => Values<Label>,
  aggregator?: 'sum' | 'min',
) => void;

/** The connections of the pool, and of its lane. */
function addPools(gauge: AddLoad): void {
  const poolsOf = ({ connections }: Load) =>
    Object.entries({ deckhand: connections, 'deckhand lane': connections?.lane }).flatMap(([name, pool]) =>
      pool ? [{ ...pool, labels: { [POOL_LABEL]: name } }] : [],
    );
  gauge(
    'db_client_connection_count',
    'Connections to the database by state.',
    [POOL_LABEL, 'db_client_connection_state'],
    (now) =>
      poolsOf(now).flatMap(({ labels, used, idle }) => [
        [used, { ...labels, db_client_connection_state: 'used' }],
        [idle, { ...labels, db_client_connection_state: 'idle' }],
      ]),
  );
  gauge(
    'db_client_connection_max',
    'The most connections to the database, together DATABASE_POOL_SIZE.',
    [POOL_LABEL],
    (now) => poolsOf(now).map(({ max, labels }) => [max, labels]),
  );
  gauge(
    'db_client_connection_pending_requests',
    'Statements that wait for a connection, or on a lane for others on theirs.',
    [POOL_LABEL],
    (now) => poolsOf(now).map(({ pending, labels }) => [pending, labels]),
  );
}
const POOL_LABEL = 'db_client_connection_pool_name';
