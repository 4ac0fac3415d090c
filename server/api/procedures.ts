import {
  type AnyTRPCProcedure,
  type AnyTRPCRouter,
  type TRPCProcedureType,
  type TrackedEnvelope,
  tracked,
} from '@trpc/server';
import { z } from 'zod';
import { ifVersion, rowVersion } from '../../shared/fields.ts';
import type { Reason } from '../../shared/reasons.ts';
import { manyRows } from '../../shared/rows.ts';
import { ACCESS, type Access } from '../domain/access/access.ts';
import type { Context } from '../domain/access/context.ts';
import { type ProofNeed, proofInWords } from '../domain/access/proofNeed.ts';
import { checkDeprecation, type Deprecation } from './deprecation.ts';
import { inputParser, outputParser, type Parse, type ParseInput } from './parser.ts';
import { type RestOperation, withErrors } from './restOperation.ts';
import { appRouter } from './routers/app.ts';
import type { Meta } from './trpc.ts';

export type Procedure = {
  name: string;
  type: TRPCProcedureType;
  access: Access;
  /** A short description. */
  summary: string;
  description: string;
  input: z.ZodType | undefined;
  /** Whether it has a required field; otherwise a missing input is an empty one. */
  needsInput: boolean;
  output: z.ZodType;
  /** Undefined for procedures that are only available over RPC. */
  rest: RestOperation | undefined;
  /** Whether it can be sent with an idempotency key. */
  isKeyed: boolean;
  /** Whether its answer has a secret, such as a new token or key. */
  hasSecret: boolean;
  /** The level that the database needs (`level.ts`); undefined for any. */
  level: number | undefined;
  /** When it needs fresh proof; undefined for never. */
  proof: ProofNeed | undefined;
  /** The reasons of its own rules, in `domain/`. */
  ownReasons: readonly Reason[];
  /** Undefined unless it will end. */
  deprecated: Deprecation | undefined;
  /** Whether it deletes or ends something, or changes many projects at once. */
  isDestructive: boolean;
  /** Whether it is a tool of assistants. */
  isTool: boolean;
  /** Whether it is a list with pages. */
  isPaged: boolean;
  /** Whether its answer has the version of its row. */
  isVersioned: boolean;
  /** Whether it can require a version of its row. */
  isConditional: boolean;
  meta: Meta;
  parseInput: ParseInput | undefined;
  parseOutput: Parse;
  /** The function of its router, which expects a parsed input. */
  resolve: (call: { ctx: Context; input: unknown; signal: AbortSignal | undefined }) => unknown;
};

/**
 * The procedures of a router with their metadata. Throws for one without an access level, without a REST path, or with a notice
 * of its end that is no promise.
 */
export function proceduresOf(router: AnyTRPCRouter): Procedure[] {
  const defined = Object.entries(router._def.procedures as Record<string, AnyTRPCProcedure>);
  const names = defined.map(([name]) => name);
  return defined.map(([name, procedure]) => {
    const { _def } = procedure;
    const { inputs, output, resolver } = _def as unknown as Definition;
    const [input] = inputs;
    const meta = (_def.meta ?? {}) as Meta;
    const { rest, rpcOnly, openapi, access, idempotency, deprecated, level, proof, reasons, tool, isDestructive } =
      meta;
    if (!access) throw new Error(`${name} has no access level: build it on a procedure of server/api/trpc.ts.`);
    if (!rest && !rpcOnly)
      throw new Error(`${name} has no REST path: describe it with rest(…), or say why as rpcOnly.`);
    if (deprecated) checkDeprecation(name, deprecated, names);

    let needsInput: boolean | undefined;
    const isConditional = fieldOf(input, 'if_version') === ifVersion;
    const row = input && manyRows.get(input)?.row;
    const facts = {
      needsSignIn: ACCESS[access].needsSignIn,
      hasId: hasId(input),
      requiresVersions: isConditional || fieldOf(row, 'if_version') === ifVersion,
    };
    return {
      name,
      type: _def.type,
      access,
      summary: openapi?.summary ?? name,
      description: `${openapi?.description ?? ''}${proofInWords(proof)}`,
      input,
      // Not for each start: Zod compiles a schema when it parses first.
      get needsInput() {
        needsInput ??= input !== undefined && !input.safeParse({}).success;
        return needsInput;
      },
      output,
      rest: rest && withErrors(rest, facts),
      isKeyed: _def.type === 'mutation' && idempotency !== 'never',
      hasSecret: idempotency === 'secret' || idempotency === 'never',
      level,
      proof,
      ownReasons: reasons ?? [],
      deprecated,
      isDestructive: isDestructive ?? false,
      isTool: tool ?? false,
      isPaged: fieldOf(input, 'cursor') !== undefined,
      isVersioned: fieldOf(output, 'version') === rowVersion,
      isConditional,
      meta,
      parseInput: input && inputParser(input),
      parseOutput: _def.type === 'subscription' ? eventParser(output) : outputParser(output),
      resolve: resolver,
    };
  });
}

/** What tRPC keeps of a procedure. */
type Definition = { inputs: z.ZodType[]; output: z.ZodType; resolver: Procedure['resolve'] };

/** Checks each event of a subscription; one that goes to many followers, once. */
function eventParser(output: z.ZodType): Parse {
  const parse = outputParser(output);
  const checked = new WeakMap<object, unknown>();
  async function* checkEach(stream: AsyncIterable<TrackedEnvelope<object>>) {
    for await (const [id, event] of stream) {
      if (!checked.has(event)) checked.set(event, parse(event));
      yield tracked(id, checked.get(event));
    }
  }
  return (stream) => {
    const events = stream as AsyncIterable<TrackedEnvelope<object>>;
    return { ...events, [Symbol.asyncIterator]: () => checkEach(events) };
  };
}

const fieldOf = (schema: z.ZodType | undefined, name: string): unknown =>
  schema instanceof z.ZodObject ? schema.shape[name] : undefined;

/** Whether an input, or a row of its lists, has the id of a row. */
function hasId(schema: unknown): boolean {
  if (schema instanceof z.ZodPipe) return hasId(schema.out);
  if (schema instanceof z.ZodArray) return hasId(schema.element);
  const fields = schema instanceof z.ZodObject ? Object.entries(schema.shape) : [];
  return fields.some(([name, field]) => /(^|_)id$/.test(name) || hasId(field));
}

const all = proceduresOf(appRouter);

/** Every query and mutation of the service. */
export const procedures = all.filter(({ type }) => type !== 'subscription');

/** Apart from the others, since they answer with a stream: they have no command and no place in a batch. */
export const subscriptions = all.filter(({ type }) => type === 'subscription');

export type RestProcedure = Procedure & { rest: RestOperation };

export const restProcedures = procedures.filter(
  (procedure): procedure is RestProcedure => procedure.rest !== undefined,
);

const byName = new Map(all.map((procedure) => [procedure.name, procedure]));

export const findProcedure = (name: string): Procedure | undefined => byName.get(name);
