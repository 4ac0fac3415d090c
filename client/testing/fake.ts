import type { Client } from '../client.ts';
import type { Procedures } from '../procedures.ts';
import { withDefaults } from '../proxy.ts';
import type { PartsOf, StreamPartsOf } from './types.ts';

/** Results by procedure: `{ boards: { list: async () => ({ boards: [] }) } }`; of a stream, its events: `{ events: { follow: () => [] } }`. */
export type FakeResults = ResultsOf<Procedures>;

type ResultsOf<Members> = {
  [Name in keyof Members]?: [StreamPartsOf<Members[Name]>] extends [never]
    ? [PartsOf<Members[Name]>] extends [never]
      ? ResultsOf<Members[Name]>
      : FakeResult<PartsOf<Members[Name]>>
    : FakeEvents<StreamPartsOf<Members[Name]>>;
};

type FakeEvents<Parts extends { input: unknown; event: unknown }> = (
  input: Exclude<Parts['input'], undefined>,
) => Iterable<Parts['event']> | AsyncIterable<Parts['event']>;

/** An input that was left out is an empty one here, as for the service. */
type FakeResult<Parts extends { input: unknown; output: unknown }> = (
  input: Exclude<Parts['input'], undefined>,
) => Parts['output'] | Promise<Parts['output']>;

/** `projectId` is there if the call has one. */
export type FakeCall = { procedure: string; input: unknown; projectId?: number };

export type FakeClient = Client & {
  /** The calls so far, in order, failed ones too. */
  calls: FakeCall[];
};

/** A client without a service: its calls return these results. A call of any other procedure throws an error that names it. */
export function fakeClient(results: FakeResults = {}): FakeClient {
  const calls: FakeCall[] = [];
  let events = 0;
  const answer = (path: string, input: unknown, projectId: number | undefined) => {
    calls.push({ procedure: path, input, ...(projectId !== undefined && { projectId }) });
    const result = resultAt(results, path);
    if (!result) throw new Error(`fakeClient has no result for ${path}: give it one, as in ${exampleFor(path)}.`);
    return result(input ?? {});
  };
  const client = withDefaults(
    {},
    async ({ path, input, options: { signal, projectId } }) => {
      signal?.throwIfAborted();
      return { data: await answer(path, input, projectId), meta: META };
    },
    async function* ({ path, input, options: { signal, projectId } }) {
      for await (const event of answer(path, input, projectId) as AsyncIterable<unknown>) {
        if (signal?.aborted) return;
        yield { cursor: `fake-${++events}`, ...(event as object) };
      }
    },
  );

  return new Proxy(client, {
    get: (target, name) => (name === 'calls' ? calls : Reflect.get(target, name)),
  }) as FakeClient;
}

/** What `withMeta` returns, since a fake has no response. */
const META = { requestId: 'fake', replayed: false, attempts: 1, quota: undefined };

type AnyResult = (input: unknown) => unknown;

function resultAt(results: object, procedure: string): AnyResult | undefined {
  const found = procedure.split('.').reduce<unknown>((part, name) => {
    const isOwn = typeof part === 'object' && part !== null && Object.hasOwn(part, name);
    return isOwn ? part[name as keyof typeof part] : undefined;
  }, results);
  return typeof found === 'function' ? (found as AnyResult) : undefined;
}

/** `fakeClient({ boards: { list: async () => … } })` */
function exampleFor(procedure: string): string {
  return `fakeClient(${procedure.split('.').reduceRight((inner, name) => `{ ${name}: ${inner} }`, 'async () => …')})`;
}
