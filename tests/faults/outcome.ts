import { setTimeout } from 'node:timers/promises';
import { type Ended, givenMigratedDirectory, type StartedService } from '../harness/process.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { findTestServer, givenServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import type { Sent } from './load.ts';
import { nodeSettings } from './world.ts';

/** The result of a fault, with its violations. */
export type Outcome = {
  fault: string;
  rounds: number;
  sent: Sent[];
  violations: string[];
  /** Milliseconds until the service worked again, or had ended. */
  times: number[];
};

/** Uses a resource, and always removes it afterwards. */
export async function withRemoval<Resource extends { remove: () => unknown }, Result>(
  resource: Resource,
  work: (resource: Resource) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(resource);
  } finally {
    await resource.remove();
  }
}

/** A database to inject faults into. */
export type Place = {
  name: string;
  settings: Record<string, string>;
  /** The same, without the proxy in between. */
  direct: Record<string, string>;
  remove: () => Promise<unknown>;
};

export async function givenEmbedded(): Promise<Place> {
  const settings = nodeSettings({ DATA_DIR: await givenMigratedDirectory() });
  return { name: 'embedded', settings, direct: settings, remove: async () => {} };
}

type DatabaseOptions = {
  /** The address of a proxy in between. */
  reachedBy?: string;
  /** Without tables. */
  isEmpty?: boolean;
};

/** A new database on a server, on the test server with all tables. */
export async function givenDatabase(
  serverUrl: string,
  { reachedBy = serverUrl, isEmpty = false }: DatabaseOptions = {},
): Promise<Place> {
  const isCopied = !isEmpty && serverUrl === (await findTestServer()).url;
  const { url, remove } = await (isCopied
    ? givenFilledDatabase('faults', 'migrated')
    : givenServerDatabase(serverUrl, 'faults'));
  const { pathname } = new URL(url);
  return {
    name: 'PostgreSQL',
    settings: nodeSettings({ DATABASE_URL: Object.assign(new URL(reachedBy), { pathname }).href }),
    direct: nodeSettings({ DATABASE_URL: url }),
    remove,
  };
}

/** The same place for nodes with two workers. */
export const withWorkers = (place: Place): Place => ({
  ...place,
  name: `${place.name}, two workers`,
  settings: { ...place.settings, WORKERS: '2' },
});

/** The network between the service and its database, which can be cut. */
export type Network = Pick<Awaited<ReturnType<typeof givenProxyTo>>, 'silence' | 'restore'>;

/** A new database on a server, behind a network that can be cut. */
export async function overNetwork(serverUrl: string, work: (place: Place, network: Network) => Promise<Outcome>) {
  const proxy = await givenProxyTo(serverUrl);
  return withRemoval({ remove: proxy.close }, async () =>
    withRemoval(await givenDatabase(serverUrl, { reachedBy: proxy.url }), (place) => work(place, proxy)),
  );
}

/** Longer than the service waits for requests in flight. */
const LONGEST_STOP_MILLISECONDS = 15_000;

/** Stops a service with SIGTERM, and returns how long it took and its violations. */
export async function stopNode(service: StartedService): Promise<{ milliseconds: number; violations: string[] }> {
  const begun = performance.now();
  const stopped = new AbortController();
  const late = setTimeout(LONGEST_STOP_MILLISECONDS, undefined, { signal: stopped.signal }).catch(() => undefined);
  const ended = await Promise.race([service.stop('SIGTERM'), late]);
  stopped.abort();
  const milliseconds = performance.now() - begun;
  if (!ended) {
    await service.stop('SIGKILL');
    return { milliseconds, violations: [`SIGTERM: still running after ${LONGEST_STOP_MILLISECONDS} ms`] };
  }
  return { milliseconds, violations: endViolations(ended) };
}

const endViolations = ({ code, signal, stderr }: Ended) =>
  code === 0 && stderr === '' ? [] : [`SIGTERM: ended with ${code ?? signal} and stderr ${stderr.slice(0, 500)}`];

/** Polls until the condition is true, and returns the milliseconds that it took. */
export async function timeUntil(isRight: () => Promise<boolean>, longestMilliseconds: number): Promise<number> {
  const begun = performance.now();
  const passed = () => performance.now() - begun;
  while (!(await isRight().catch(() => false)) && passed() < longestMilliseconds) await setTimeout(20);
  return passed();
}
