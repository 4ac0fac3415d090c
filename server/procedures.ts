import type { AnyTRPCProcedure, AnyTRPCRouter, TRPCProcedureType } from '@trpc/server';
import type { z } from 'zod';
import type { Access } from './access.ts';
import type { Context } from './context.ts';
import type { RestOperation } from './restOperation.ts';
import { appRouter } from './routers/app.ts';
import type { Meta } from './trpc.ts';

export type Procedure = {
  name: string;
  type: TRPCProcedureType;
  call: (options: CallOptions) => Promise<unknown>;
  access: Access;
  /** A short description; only for procedures with a REST path. */
  summary: string | undefined;
  input: z.ZodType | undefined;
  output: z.ZodType;
  /** Undefined for procedures that are only available over RPC. */
  rest: RestOperation | undefined;
  /** The description of its command; undefined if it is not a command. */
  command: string | undefined;
};

type CallOptions = {
  path: string;
  type: TRPCProcedureType;
  ctx: Context;
  /** Its index in the batch. */
  batchIndex: number;
  getRawInput: () => Promise<unknown>;
};

/** The procedures of a router with their metadata. Throws for a procedure without an access level. */
export function proceduresOf(router: AnyTRPCRouter): Procedure[] {
  return Object.entries(router._def.procedures as Record<string, AnyTRPCProcedure>).map(([name, procedure]) => {
    const { _def } = procedure;
    const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output: z.ZodType };
    const { rest, openapi, command, access } = (_def.meta ?? {}) as Meta;
    if (!access) throw new Error(`${name} has no access level: build it on a procedure of server/trpc.ts.`);
    const summary = openapi?.summary;
    const call = procedure as unknown as Procedure['call'];
    return { name, type: _def.type, call, access, summary, input: inputs[0], output, rest, command };
  });
}

/** Every procedure of the service. */
export const procedures = proceduresOf(appRouter);

export const restProcedures = procedures.filter(
  (procedure): procedure is Procedure & { rest: RestOperation } => procedure.rest !== undefined,
);

const byName = new Map(procedures.map((procedure) => [procedure.name, procedure]));

export const findProcedure = (name: string): Procedure | undefined => byName.get(name);
