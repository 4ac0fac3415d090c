import type { AnyTRPCProcedure, TRPCProcedureType } from '@trpc/server';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Context } from '../context.ts';
import type { Access } from '../domain/caller.ts';
import type { RestOperation } from '../restOperation.ts';
import { appRouter } from '../routers/app.ts';
import type { Meta } from '../trpc.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    surface?: 'rest' | 'rpc';
    operation?: string;
    rest?: RestOperation;
  }
}

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

/** Every procedure, with what its definition says. */
export const procedures: Procedure[] = Object.entries(
  appRouter._def.procedures as unknown as Record<string, AnyTRPCProcedure>,
).map(([name, procedure]) => {
  const { _def } = procedure;
  const { inputs, output } = _def as unknown as { inputs: z.ZodType[]; output: z.ZodType };
  const { rest, openapi, command, access = 'anyone' } = _def.meta as Meta;
  const summary = openapi?.summary;
  const call = procedure as unknown as Procedure['call'];
  return { name, type: _def.type, call, access, summary, input: inputs[0], output, rest, command };
});

export const restProcedures = procedures.filter(
  (procedure): procedure is Procedure & { rest: RestOperation } => procedure.rest !== undefined,
);

const byName = new Map(procedures.map((procedure) => [procedure.name, procedure]));

export const findProcedure = (name: string): Procedure | undefined => byName.get(name);

/** What a request calls, for logs and metrics: one of few names, whatever was sent. */
export function operationOf({ routeOptions, params }: FastifyRequest): string {
  const { surface, operation } = routeOptions.config;
  if (surface !== 'rpc') return operation ?? 'other';
  const called = (params as { '*': string })['*'].split(',');
  if (!called.every((name) => byName.has(name))) return 'other';
  return called.length === 1 ? called[0]! : 'batch';
}
