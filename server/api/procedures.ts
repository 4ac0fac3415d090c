import type { AnyTRPCProcedure, AnyTRPCRouter, TRPCProcedureType } from '@trpc/server';
import type { z } from 'zod';
import { ACCESS, type Access } from '../domain/access/access.ts';
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
};

/** The procedures of a router with their metadata. Throws for one without an access level, or without a REST path. */
export function proceduresOf(router: AnyTRPCRouter): Procedure[] {
  return Object.entries(router._def.procedures as Record<string, AnyTRPCProcedure>).map(([name, procedure]) => {
    const { _def } = procedure;
    const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output: z.ZodType };
    const [input] = inputs;
    const { rest, rpcOnly, openapi, access, idempotency } = (_def.meta ?? {}) as Meta;
    if (!access) throw new Error(`${name} has no access level: build it on a procedure of server/api/trpc.ts.`);
    if (!rest && !rpcOnly) throw new Error(`${name} has no REST path: add .meta(rest(…)), or say why as rpcOnly.`);

    const needsInput = input !== undefined && !input.safeParse({}).success;
    const facts = { needsSignIn: ACCESS[access].needsSignIn, hasInput: !!input };
    return {
      name,
      type: _def.type,
      access,
      summary: openapi?.summary ?? name,
      description: openapi?.description ?? '',
      input,
      needsInput,
      output,
      rest: rest && withErrors(rest, facts),
      isKeyed: _def.type === 'mutation' && idempotency !== 'never',
    };
  });
}

/** Every procedure of the service. */
export const procedures = proceduresOf(appRouter);

export type RestProcedure = Procedure & { rest: RestOperation };

export const restProcedures = procedures.filter(
  (procedure): procedure is RestProcedure => procedure.rest !== undefined,
);

const byName = new Map(procedures.map((procedure) => [procedure.name, procedure]));

export const findProcedure = (name: string): Procedure | undefined => byName.get(name);
