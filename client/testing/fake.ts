import type { Client } from '../client.ts';
import type { Procedures } from '../procedures.ts';
import { withDefaults } from '../proxy.ts';
import type { PartsOf } from './types.ts';

/** Answers by procedure: `{ boards: { list: async () => ({ boards: [] }) } }`. */
export type FakeAnswers = AnswersOf<Procedures>;

type AnswersOf<Members> = {
  [Name in keyof Members]?: [PartsOf<Members[Name]>] extends [never]
    ? AnswersOf<Members[Name]>
    : FakeAnswer<PartsOf<Members[Name]>>;
};

/** An input that was left out is an empty one here, as for the service. */
type FakeAnswer<Parts extends { input: unknown; output: unknown }> = (
  input: Exclude<Parts['input'], undefined>,
) => Parts['output'] | Promise<Parts['output']>;

/** `projectId` is there if the call has one. */
export type FakeCall = { procedure: string; input: unknown; projectId?: number };

export type FakeClient = Client & {
  /** The calls so far, in order, failed ones too. */
  calls: FakeCall[];
};

/** A client without a service: its calls get these answers. A call of any other procedure throws an error that names it. */
export function fakeClient(answers: FakeAnswers = {}): FakeClient {
  const calls: FakeCall[] = [];
  const client = withDefaults({}, async ({ path, input, options: { signal, projectId } }) => {
    signal?.throwIfAborted();
    calls.push({ procedure: path, input, ...(projectId !== undefined && { projectId }) });
    const answer = answerAt(answers, path);
    if (!answer) throw new Error(`fakeClient has no answer for ${path}: give it one, as in ${exampleFor(path)}.`);
    return answer(input ?? {});
  });

  return new Proxy(client, {
    get: (target, name) => (name === 'calls' ? calls : Reflect.get(target, name)),
  }) as FakeClient;
}

type AnyAnswer = (input: unknown) => unknown;

function answerAt(answers: object, procedure: string): AnyAnswer | undefined {
  const found = procedure.split('.').reduce<unknown>((part, name) => {
    const isOwn = typeof part === 'object' && part !== null && Object.hasOwn(part, name);
    return isOwn ? part[name as keyof typeof part] : undefined;
  }, answers);
  return typeof found === 'function' ? (found as AnyAnswer) : undefined;
}

/** `fakeClient({ boards: { list: async () => … } })` */
function exampleFor(procedure: string): string {
  return `fakeClient(${procedure.split('.').reduceRight((inner, name) => `{ ${name}: ${inner} }`, 'async () => …')})`;
}
