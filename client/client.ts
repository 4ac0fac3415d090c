import { createTRPCClient, httpBatchLink, TRPCClientError } from '@trpc/client';
import superjson from 'superjson';
import type { AppRouter } from '../server/routers/app.ts';

export type ClientOptions = {
  /** Where the service listens, as in `http://127.0.0.1:3000`. */
  url: string;
  /** The Bearer token that `auth.authenticate` returned; a function is asked before each request. */
  token?: string | (() => string | undefined);
  /** The project to act in; without it, the user's default project. */
  projectId?: number;
};

export type Client = ReturnType<typeof createClient>;

/** A typed client of every procedure: `client.cards.create.mutate({ title: 'First card' })`. Calls made together travel together. */
export function createClient({ url, token, projectId }: ClientOptions) {
  return createTRPCClient<AppRouter>({
    links: [
      httpBatchLink({
        url: `${url.replace(/\/+$/, '')}/trpc`,
        transformer: superjson,
        methodOverride: 'POST',
        maxItems: 50,
        headers: () => {
          const current = typeof token === 'function' ? token() : token;
          return {
            ...(current && { authorization: `Bearer ${current}` }),
            ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
          };
        },
      }),
    ],
  });
}

/** Whether a call was refused by the service: `error.data.httpStatus` and, for a 422, `error.data.errors` say why. */
export function isRefusal(error: unknown): error is TRPCClientError<AppRouter> {
  return error instanceof TRPCClientError;
}
