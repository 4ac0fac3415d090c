import { QueryClient } from '@tanstack/react-query';
import { createTRPCClient, httpBatchLink, isTRPCClientError } from '@trpc/client';
import { createTRPCOptionsProxy } from '@trpc/tanstack-react-query';
import superjson from 'superjson';
import type { AppRouter } from '../../client/router.ts';

export function connect(url: string, token: string) {
  const link = httpBatchLink({
    url: `${url}/trpc`,
    transformer: superjson,
    headers: { authorization: `Bearer ${token}` },
    maxItems: 50,
    maxURLLength: 8000,
  });
  const client = createTRPCClient<AppRouter>({ links: [link] });
  const queryClient = new QueryClient();
  return { client, queryClient, trpc: createTRPCOptionsProxy<AppRouter>({ client, queryClient }) };
}

export function explain(error: unknown): string {
  if (!isTRPCClientError<AppRouter>(error) || !error.data) throw error;
  const { httpStatus, reason, errors } = error.data;
  return `${httpStatus} ${reason}: ${Object.keys(errors ?? {})}`;
}
