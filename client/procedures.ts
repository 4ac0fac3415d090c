import type { TRPCMutationProcedure, TRPCQueryProcedure } from '@trpc/server';
import type { AppRouter } from '../server/api/routers/app.ts';
import type { Mutation, Query } from './calls.ts';

/** Every procedure of the service. The package has printed types instead of this file. */
export type Procedures = ProceduresOf<AppRouter['_def']['record']>;

type ProceduresOf<Definitions> = {
  [Name in keyof Definitions]: Definitions[Name] extends TRPCQueryProcedure<infer Definition>
    ? Query<Definition['input'], Definition['output']>
    : Definitions[Name] extends TRPCMutationProcedure<infer Definition>
      ? Mutation<Definition['input'], Definition['output']>
      : ProceduresOf<Definitions[Name]>;
};
