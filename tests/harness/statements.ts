import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance } from 'fastify';
import { ServerClient } from '../../server/database/client.ts';
import { EmbeddedClient } from '../../server/database/embedded/embeddedClient.ts';

/** Records what reaches the database, at the driver, so that no statement is missed. */

export type Sent = { text: string; values: unknown[] };
type Recorder = (sent: Sent) => void;

/** The recorders of the work, or of the request, that sends a statement. */
const context = new AsyncLocalStorage<ReadonlySet<Recorder>>();
/** Recorders of the requests that arrive. */
const ofRequests = new Set<Recorder>();
/** Recorders of everything that this process sends. */
const ofAll = new Set<Recorder>();

/**
 * The statements of some work, and of the requests that arrive at test services meanwhile. Streams that were open before, and
 * background work that began before, don't count. The work may remove statements from the list.
 */
export function statementsOf(work: (sent: Sent[]) => Promise<unknown>): Promise<Sent[]> {
  return recordedIn(ofRequests, (recorder, sent) => context.run(new Set([recorder]), () => work(sent)));
}

/** All statements of this process during some work. */
export const allStatementsDuring = (work: () => Promise<unknown>): Promise<Sent[]> => recordedIn(ofAll, work);

async function recordedIn(
  recorders: Set<Recorder>,
  work: (recorder: Recorder, sent: Sent[]) => Promise<unknown>,
): Promise<Sent[]> {
  const sent: Sent[] = [];
  const record: Recorder = (statement) => void sent.push(statement);
  recorders.add(record);
  try {
    await work(record, sent);
    return [...sent];
  } finally {
    recorders.delete(record);
  }
}

/** Lets the statements of each request of a service be recorded by those who record when it arrives. */
export function recordRequests({ server }: FastifyInstance): void {
  const emit = server.emit.bind(server) as (...parts: unknown[]) => boolean;
  server.emit = (...parts: unknown[]) =>
    parts[0] === 'request' ? context.run(new Set(ofRequests), () => emit(...parts)) : emit(...parts);
}

/** A new connection begins with it. */
const OF_CONNECTION = /^set jit = off/;

/** The one patch of the drivers; the modules of a worker are loaded once. */
for (const driver of [ServerClient.prototype, EmbeddedClient.prototype] as {
  query: (...parts: never[]) => unknown;
}[]) {
  const { query } = driver;
  driver.query = function (...parts: never[]) {
    const [text, values = []] = parts as unknown as [unknown, unknown[]?];
    if (typeof text === 'string' && !OF_CONNECTION.test(text)) {
      for (const record of [...ofAll, ...(context.getStore() ?? [])]) record({ text, values: Array.from(values) });
    }
    return query.apply(this, parts);
  };
}
