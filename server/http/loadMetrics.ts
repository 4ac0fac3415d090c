import { Counter, Gauge, type Registry } from 'prom-client';
import type { Load } from '../api/services.ts';
import type { PoolLoad } from '../database/lane.ts';

/** What a node knows of itself, read at each scrape. Summed over all workers, unless `aggregator` says otherwise. */
export function addLoad(registry: Registry, load: () => Load): void {
  const { gauge, counter } = makersFor(registry, load);
  gauge('deckhand_queue_calls', 'Work that runs or waits in a queue.', ['queue', 'state'], ({ queues }, set) => {
    for (const [queue, { running, waiting }] of Object.entries(queues)) {
      set(running, { queue, state: 'running' });
      set(waiting, { queue, state: 'waiting' });
    }
  });
  gauge('deckhand_template_runs', 'Syncs and pushes that this node works on.', [], (now, set) =>
    set(now.templateRuns, {}),
  );
  gauge('deckhand_followers', 'Open streams of events.', [], (now, set) => set(now.followers, {}));
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
    gauge(
      'deckhand_redis_up',
      '0 while this node counts in memory because Redis is unreachable.',
      [],
      (now, set) => set(Number(now.isRedisReachable), {}),
      'min',
    );
  }
  if (connections) addPools(gauge);
}

/** The connections of the pool, and of its lane. */
function addPools(gauge: Makers['gauge']): void {
  const POOL_LABEL = 'db_client_connection_pool_name';
  const poolsOf = ({ connections }: Load): [PoolLoad | undefined, string][] => [
    [connections, 'deckhand'],
    [connections?.lane, 'deckhand lane'],
  ];
  const gaugeOfPools = (name: string, help: string, read: (pool: PoolLoad) => number) =>
    gauge(name, help, [POOL_LABEL], (now, set) => {
      for (const [pool, label] of poolsOf(now)) if (pool) set(read(pool), { [POOL_LABEL]: label });
    });
  gauge(
    'db_client_connection_count',
    'Connections to the database by state.',
    [POOL_LABEL, 'db_client_connection_state'],
    (now, set) => {
      for (const [pool, label] of poolsOf(now)) {
        if (!pool) continue;
        set(pool.used, { [POOL_LABEL]: label, db_client_connection_state: 'used' });
        set(pool.idle, { [POOL_LABEL]: label, db_client_connection_state: 'idle' });
      }
    },
  );
  gaugeOfPools(
    'db_client_connection_max',
    'The most connections to the database, together DATABASE_POOL_SIZE.',
    ({ max }) => max,
  );
  gaugeOfPools(
    'db_client_connection_pending_requests',
    'Statements that wait for a connection, or on a lane for others on theirs.',
    ({ pending }) => pending,
  );
}

type Makers = ReturnType<typeof makersFor>;

function makersFor(registry: Registry, load: () => Load) {
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

  const counter = (name: string, help: string, label: string, read: (now: Load) => ReadonlyMap<string, number>) =>
    new Counter({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        this.reset();
        for (const [value, count] of read(load())) this.inc({ [label]: value }, count);
      },
    });

  return { gauge, counter };
}
