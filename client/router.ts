import type {
  TRPC_ERROR_CODE_KEY,
  TRPC_ERROR_CODE_NUMBER,
  TRPCBuiltRouter,
  TRPCMutationProcedure,
  TRPCQueryProcedure,
  TRPCSubscriptionProcedure,
} from '@trpc/server';
import type { RefusalData } from './errors.ts';
import type { Procedures } from './procedures.ts';

/** The type of the router, for tRPC's own client and its integrations: `createTRPCClient<AppRouter>(…)`. */
export type AppRouter = TRPCBuiltRouter<Root, RoutersOf<Procedures>>;

type Root = {
  ctx: object;
  meta: object;
  errorShape: {
    message: string;
    code: TRPC_ERROR_CODE_NUMBER;
    data: RefusalData & { code: TRPC_ERROR_CODE_KEY };
  };
  transformer: true;
};

type RoutersOf<Members> = {
  [Name in keyof Members]: Members[Name] extends { query: (...sent: infer Sent) => Promise<infer Output> }
    ? TRPCQueryProcedure<Definition<Sent, Output>>
    : Members[Name] extends { mutate: (...sent: infer Sent) => Promise<infer Output> }
      ? TRPCMutationProcedure<Definition<Sent, Output>>
      : Members[Name] extends (...sent: infer Sent) => AsyncGenerator<infer Event>
        ? TRPCSubscriptionProcedure<Definition<Sent, AsyncIterable<{ id: string; data: Event }>>>
        : RoutersOf<Members[Name]>;
};

type Definition<Sent extends unknown[], Output> = { input: Sent[0]; output: Output; meta: object };
