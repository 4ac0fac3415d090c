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
  /** What it does, in a few words; only where it has a REST path. */
  summary: string | undefined;
  input: z.ZodType | undefined;
  output: z.ZodType;
  /** Absent where it can be reached over RPC only. */
  rest: RestOperation | undefined;
  /** What it does, where the command line offers it too. */
  command: string | undefined;
};

type CallOptions = {
  path: string;
  type: TRPCProcedureType;
  ctx: Context;
  /** Its place among the calls of a request. */
  batchIndex: number;
  getRawInput: () => Promise<unknown>;
};

/** The procedures of a router, with what their definitions say. Throws for one that does not say who may call it. */
function proceduresOf(router: AnyTRPCRouter): Procedure[] {
  return Object.entries(router._def.procedures as Record<string, AnyTRPCProcedure>).map(([name, procedure]) => {
    const { _def } = procedure;
    const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output: z.ZodType };
    const { rest, openapi, command, access } = (_def.meta ?? {}) as Meta;
    if (!access) throw new Error(`${name} does not say who may call it: build it on a procedure of server/trpc.ts.`);
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
