import { setTimeout as pause } from 'node:timers/promises';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { type Counter, countInMemory } from '../../limits/counters.ts';
import type { Channel } from '../../runtime/channel.ts';
import { addReplacements, keepCounts, metricsOf } from '../../runtime/metricSum.ts';
import { makePasswordQueue } from '../../security/passwords.ts';
import type { ParentCalls, WorkerCalls } from './calls.ts';

/** What the parent keeps about a worker. */
export type Member = {
  channel: Channel<WorkerCalls>;
  isReady: boolean;
  gone: PromiseWithResolvers<void>;
  /** As it reported them last. */
  metrics: string | undefined;
  unsent: Map<string, number>;
  /** They release the places of running password checks. */
  tickets: Map<number, () => void>;
};

/** Longer than a worker takes to find out that the database does not respond. */
const LONGEST_SCRAPE_MILLISECONDS = 6000;

/** What all workers count together, in the parent. */
export function shareAmong(members: ReadonlyMap<number, Member>, workers: number) {
  const counters = new Map<string, Counter>();
  const passwords = makePasswordQueue(workers);
  const gates = new Map<string, { arrived: Set<number>; open: PromiseWithResolvers<void> }>();
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const replacements = addReplacements(registry);
  /** The counts of workers that ended, merged one after the other. */
  let ended: Promise<string[]> = Promise.resolve([]);

  return {
    callsOf: (id: number): Omit<ParentCalls, 'ready'> => ({
      count: ({ counter: [name, points, windowSeconds], method, key, calls }) => {
        const counter = counters.get(name) ?? countInMemory(name, points, windowSeconds);
        counters.set(name, counter);
        return method === 'get' ? counter.get(key) : counter[method](key, calls);
      },
      enterPasswords: ({ ticket, key, goesLast }) =>
        new Promise((admit) => {
          const untilLeft = () =>
            new Promise<void>((release) => {
              const member = members.get(id);
              if (!member) return release();
              member.tickets.set(ticket, release);
              admit(true);
            });
          passwords.run(key, untilLeft, { goesLast }).catch(() => admit(false));
        }),
      leavePasswords: (ticket) => {
        const tickets = members.get(id)?.tickets;
        tickets?.get(ticket)?.();
        tickets?.delete(ticket);
      },
      unsent: ({ key, bytes }) => {
        const unsent = members.get(id)?.unsent;
        if (bytes > 0) unsent?.set(key, bytes);
        else unsent?.delete(key);
        tellUnsent(key);
      },
      changed: () => {
        for (const [other, { channel }] of members) if (other !== id) channel.tell('changedElsewhere');
      },
      allMetrics,
      arrive: (step) => {
        const gate = gates.get(step) ?? { arrived: new Set(), open: Promise.withResolvers<void>() };
        gates.set(step, gate);
        gate.arrived.add(id);
        openGates();
        return gate.open.promise;
      },
    }),
    countReplacement: () => replacements.inc(),
    /** After a worker has ended: gives back what it held. */
    release: ({ gone, metrics, tickets, unsent }: Member) => {
      gone.resolve();
      for (const leave of tickets.values()) leave();
      for (const key of unsent.keys()) tellUnsent(key);
      openGates();
      if (metrics !== undefined) ended = ended.then(async (kept) => [await keepCounts([...kept, metrics])]);
    },
  };

  function tellUnsent(key: string) {
    for (const [id, { channel }] of members) {
      let bytes = 0;
      for (const [other, { unsent }] of members) if (other !== id) bytes += unsent.get(key) ?? 0;
      channel.tell('unsentElsewhere', { key, bytes });
    }
  }

  function openGates() {
    const ready = [...members].filter(([, { isReady }]) => isReady);
    for (const { arrived, open } of gates.values()) if (ready.every(([id]) => arrived.has(id))) open.resolve();
  }

  /** A worker that does not answer in time is there with its last values. */
  async function allMetrics(): Promise<string[]> {
    const late = pause(LONGEST_SCRAPE_MILLISECONDS, undefined, { ref: false });
    const asked = [...members.values()].map((member) => {
      const answered = member.channel.ask('metrics').then((metrics) => {
        member.metrics = metrics ?? member.metrics;
      });
      return Promise.race([answered, late, member.gone.promise]);
    });
    await Promise.all(asked);
    const own = await metricsOf(registry);
    // Without a pause in between: a worker that ends must not be among both.
    const living = [...members.values()].flatMap(({ metrics }) => metrics ?? []);
    const kept = ended;
    return [...living, own, ...(await kept)];
  }
}
