import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { type Ended, givenDirectory, type StartedService } from '../harness/process.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { createDatabase, onServer } from '../harness/server.ts';
import type { Sent } from './load.ts';
import { nodeSettings } from './world.ts';

/** What a fault did, and what it should not have done. */
export type Outcome = {
  fault: string;
  rounds: number;
  sent: Sent[];
  violations: string[];
  /** Milliseconds until the service worked again, or had ended. */
  times: number[];
};

/** Works with something, and removes it afterwards, whatever happens. */
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

/** A database to do harm to. */
export type Place = {
  name: string;
  settings: Record<string, string>;
  /** The same without the proxy, if one stands between. */
  direct: Record<string, string>;
  remove: () => Promise<unknown>;
};

export async function givenEmbedded(): Promise<Place> {
  const settings = nodeSettings({ DATA_DIR: await givenDirectory() });
  return { name: 'embedded', settings, direct: settings, remove: async () => {} };
}

/** A new database on a server; the service reaches it by another address where a proxy stands between. */
export async function givenDatabase(serverUrl: string, reachedBy = serverUrl): Promise<Place> {
  const name = `deckhand_faults_${randomBytes(6).toString('hex')}`;
  const addressOn = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  await createDatabase(addressOn(serverUrl));
  return {
    name: 'PostgreSQL',
    settings: nodeSettings({ DATABASE_URL: addressOn(reachedBy) }),
    direct: nodeSettings({ DATABASE_URL: addressOn(serverUrl) }),
    remove: () => onServer(serverUrl, `drop database ${name} with (force)`),
  };
}

/** What stands between the service and its database, and can be lost. */
export type Network = Pick<Awaited<ReturnType<typeof givenProxyTo>>, 'silence' | 'restore'>;

/** A new database on a server, which the service reaches by a network that can be lost. */
export async function overNetwork(serverUrl: string, work: (place: Place, network: Network) => Promise<Outcome>) {
  const proxy = await givenProxyTo(serverUrl);
  return withRemoval({ remove: proxy.close }, async () =>
    withRemoval(await givenDatabase(serverUrl, proxy.url), (place) => work(place, proxy)),
  );
}

/** Longer than requests in flight are waited for. */
export const LONGEST_STOP_MILLISECONDS = 15_000;

/** Asks a service to stop; what it does wrong in doing so, and how long it takes. */
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
  code === 0 && stderr === '' ? [] : [`SIGTERM: ended with ${code ?? signal} and said ${stderr.slice(0, 500)}`];

/** Calls until the answer is as wanted; the milliseconds that it took. */
export async function timeUntil(isRight: () => Promise<boolean>, longestMilliseconds: number): Promise<number> {
  const begun = performance.now();
  const passed = () => performance.now() - begun;
  while (!(await isRight().catch(() => false)) && passed() < longestMilliseconds) await setTimeout(20);
  return passed();
}
