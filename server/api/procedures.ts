import { type AnyTRPCProcedure, type AnyTRPCRouter, callTRPCProcedure, type TRPCProcedureType } from '@trpc/server';
import { z } from 'zod';
import { ifVersion, rowVersion } from '../../shared/fields.ts';
import { manyRows } from '../../shared/rows.ts';
import { ACCESS, type Access } from '../domain/access/access.ts';
import type { Context } from '../domain/access/context.ts';
import { type ProofNeed, proofInWords } from '../domain/access/proofNeed.ts';
import { checkDeprecation, type Deprecation } from './deprecation.ts';
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
  /** Undefined unless it will end. */
  deprecated: Deprecation | undefined;
  /** Whether it is a tool of assistants. */
  isTool: boolean;
  /** Whether its answer has the version of its row. */
  isVersioned: boolean;
  /** Whether it can require a version of its row. */
  isConditional: boolean;
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
    const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output: z.ZodType };
    const [input] = inputs;
    const { rest, rpcOnly, openapi, access, idempotency, deprecated, level, proof, tool } = (_def.meta ?? {}) as Meta;
    if (!access) throw new Error(`${name} has no access level: build it on a procedure of server/api/trpc.ts.`);
    if (!rest && !rpcOnly) throw new Error(`${name} has no REST path: add .meta(rest(…)), or say why as rpcOnly.`);
    if (deprecated) checkDeprecation(name, deprecated, names);

    let needsInput: boolean | undefined;
    const isConditional = fieldOf(input, 'if_version') === ifVersion;
    const ofRows = input && fieldOf(manyRows.get(input)?.row, 'if_version') === ifVersion;
    const facts = {
      needsSignIn: ACCESS[access].needsSignIn,
      requiresVersions: isConditional || !!ofRows,
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
      deprecated,
      isTool: tool ?? false,
      isVersioned: fieldOf(output, 'version') === rowVersion,
      isConditional,
    };
  });
}

const fieldOf = (schema: z.ZodType | undefined, name: string): unknown =>
  schema instanceof z.ZodObject ? schema.shape[name] : undefined;

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

/** Calls a procedure on its own, outside a batch. */
export const callProcedure = (
  { name: path, type }: Pick<Procedure, 'name' | 'type'>,
  ctx: Context,
  input: unknown,
  signal?: AbortSignal,
): Promise<unknown> =>
  callTRPCProcedure({ router: appRouter, path, type, ctx, batchIndex: 0, getRawInput: async () => input, signal });
