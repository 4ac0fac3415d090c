import type { Registry } from 'prom-client';
import { LATEST_LEVEL, stateOf } from '../database/level.ts';
import type { Db } from '../database/query.ts';
import { addGauge } from './gauge.ts';

/** Read at each scrape, in one short statement; without values if the database does not answer. */
export function addDatabaseState(registry: Registry, db: Db): void {
  let asked: ReturnType<typeof stateOf> | undefined;
  const ask = () =>
    stateOf(db).finally(() => {
      asked = undefined;
    });
  /** All gauges of a scrape share the answer. */
  const add = (name: string, help: string, read: (state: Awaited<ReturnType<typeof stateOf>>) => number) =>
    addGauge(registry, name, help, [], async () => {
      asked ??= ask();
      return [[read(await asked)]];
    });
  add('deckhand_database_level', 'The level of the database (docs/upgrading.md).', ({ level }) => level);
  add('deckhand_database_level_latest', 'The latest level that this version knows.', () => LATEST_LEVEL);
  add('deckhand_webhooks_paused', '1 while a restore or a copy has paused all webhooks.', (state) =>
    Number(state.webhooks_paused_at !== null),
  );
}
