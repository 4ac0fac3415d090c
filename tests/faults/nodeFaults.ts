import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { readRows, type StartedService, startService, statusOf } from '../harness/process.ts';
import { findViolations } from './check.ts';
import { startLoad } from './load.ts';
import { type Outcome, type Place, stopNode } from './outcome.ts';
import { keepAlive, post } from './request.ts';
import { makeWorld } from './world.ts';

const MIGRATIONS = join(import.meta.dirname, '../../server/database/migrations');

/** Nodes that start at once on an empty database: all get ready, and each migration runs once. */
export async function startTogether(place: Place, nodes: number): Promise<Outcome> {
  const begun = performance.now();
  const started = await startNodes(place, nodes);
  const times = [performance.now() - begun];
  const violations = await migrationViolations(place);
  for (const node of started) {
    const status = await statusOf(node.url, '/health/ready');
    if (status !== 200) violations.push(`a node that started is not ready: ${status}`);
    violations.push(...(await stopNode(node)).violations);
  }
  return { fault: `${nodes} nodes start on an empty database`, rounds: 1, sent: [], violations, times };
}

const startNodes = (place: Place, nodes: number) =>
  Promise.all(Array.from({ length: nodes }, () => startService(place.settings)));

/** Each migration ran once. */
export async function migrationViolations(place: Place): Promise<string[]> {
  const ran = await readRows(place.settings, sql<{ name: string }>`select name from mikro_orm_migrations order by id`);
  const expected = readdirSync(MIGRATIONS).filter((name) => /^Migration\d+\w*\.ts$/.test(name));
  return expected.flatMap((file) => {
    const times = ran.filter(({ name }) => `${name}.ts` === file).length;
    return times === 1 ? [] : [`${file} ran ${times} times`];
  });
}

/**
 * Two nodes that start at once on an empty database, and then both handle writes, reorders of the same groups, syncs, pushes
 * and payments.
 */
export async function workTogether(place: Place, acknowledged: number): Promise<Outcome> {
  const nodes = await startNodes(place, 2);
  const begun = await migrationViolations(place);
  const world = await makeWorld(place.settings);
  const urls = nodes.map(({ url }) => url);
  // One load starts with the first node, the other with the second, so both sync the same boards.
  const loads = [urls, urls.toReversed()].map((urls, half) =>
    startLoad({ ...world, clients: world.clients.slice(half * 8) }, { urls }, { clients: 8, hasTemplates: true }),
  );
  const paid = await Promise.all(world.owners.map((owner) => payTogether(nodes, owner)));
  await Promise.all(loads.map((load) => load.acknowledged(acknowledged)));
  const sent = (await Promise.all(loads.map((load) => load.stop()))).flat();

  const violations = [
    ...begun,
    ...paid.flat(),
    ...sent
      .filter(({ outcome, status = 0 }) => outcome === 'lost' || outcome === 'unconnected' || status >= 500)
      .map(({ operation, status, code }) => `${operation} through two nodes: ${status ?? code}`),
  ];
  for (const node of nodes) violations.push(...(await stopNode(node)).violations);
  violations.push(...(await findViolations(place.settings, sent)));
  return { fault: 'work through two nodes at once', rounds: 1, sent, violations, times: [] };
}

const UPGRADE = '/api/services/platforms/v1/subscriptions/upgrade-trial';

/** Opens checkouts for two periods through both nodes at once, then pays all of them at once. */
async function payTogether(nodes: StartedService[], owner: string): Promise<string[]> {
  const everywhere = <Result>(call: (url: string, period: string) => Promise<Result>) =>
    Promise.all(nodes.flatMap(({ url }) => ['month', 'year', 'month', 'year'].map((period) => call(url, period))));
  const opened = await everywhere(async (url, period) => {
    const agent = keepAlive();
    const open = () => post(url + UPGRADE, agent, owner, { product: 'load', plan: 'pro', period });
    let reply = await open();
    // Retry while the node is busy.
    for (let again = 0; again < 20 && reply.status === 429; again++) {
      await pause(1000);
      reply = await open();
    }
    agent.destroy();
    const page = reply.status === 200 ? new URL(JSON.parse(reply.text).data.checkout_url).pathname : undefined;
    return { period, page, failure: reply.status === undefined ? reply.code : `${reply.status} ${reply.text}` };
  });
  const failed = opened.filter(({ page }) => page === undefined);
  if (failed.length > 0) return failed.map(({ failure }) => `a checkout could not be opened: ${failure}`);

  const pages = (period: string) => new Set(opened.filter((one) => one.period === period).map(({ page }) => page));
  await everywhere(async (url, period) => {
    const [page] = pages(period);
    const agent = keepAlive();
    await post(`${url}${page}/pay`, agent, undefined, {});
    agent.destroy();
  });
  const several = ['month', 'year'].filter((period) => pages(period).size > 1);
  const reply = await post(nodes[0]!.url + UPGRADE, keepAlive(), owner, {
    product: 'load',
    plan: 'pro',
    period: 'month',
  });
  return [
    ...several.map((period) => `${pages(period).size} checkouts are open for one ${period}`),
    ...(reply.status === 400 ? [] : [`a subscription that was paid for is not paid: ${reply.status}`]),
  ];
}
