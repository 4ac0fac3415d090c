import type { TRPCMutationProcedure, TRPCQueryProcedure, TRPCSubscriptionProcedure } from '@trpc/server';
import type { AppRouter } from '../server/api/routers/app.ts';
import type { Follow, Mutation, Query } from './calls.ts';
import type { Reason } from './reasons.ts';

/** Every procedure of the service. The package has printed types instead of this file. */
export type Procedures = ProceduresOf<AppRouter['_def']['record']>;

/** The reasons of each procedure. The package has a printed list; here, any reason. */
export type ProcedureReasons = Record<string, Reason>;

type ProceduresOf<Definitions> = {
  [Name in keyof Definitions]: Definitions[Name] extends TRPCQueryProcedure<infer Definition>
    ? Query<Definition['input'], Definition['output']>
    : Definitions[Name] extends TRPCMutationProcedure<infer Definition>
      ? Mutation<Definition['input'], Definition['output']>
      : Definitions[Name] extends TRPCSubscriptionProcedure<infer Definition>
        ? Follow<Definition['input'], EventOf<Definition['output']>>
        : ProceduresOf<Definitions[Name]>;
};

/** tRPC adds the id to each event. */
type EventOf<Stream> = Stream extends AsyncIterable<{ data: infer Event }> ? Event : never;
