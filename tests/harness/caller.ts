import { type Client, createClient } from '../../client/client.ts';

export type Answer = { status: number; body: any; headers: Headers };

export type TestCaller = {
  token: string | undefined;
  /** Calls the REST surface; a body that is a string is sent as it is. */
  post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
  rpc: Client;
  /** The same caller, acting in another project. */
  in: (projectId: number) => TestCaller;
  /** The same caller again: what it calls does not travel with what others call. */
  alone: () => TestCaller;
};

export function makeCaller(url: string, token?: string, projectId?: number): TestCaller {
  return {
    token,
    rpc: createClient({ url, token, projectId, retries: 0 }),
    in: (id) => makeCaller(url, token, id),
    alone: () => makeCaller(url, token, projectId),
    post: async (path, body, headers) => {
      const response = await fetch(`${url}/api${path}`, {
        method: 'POST',
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(token && { authorization: `Bearer ${token}` }),
          ...(projectId !== undefined && { 'x-project-id': String(projectId) }),
          ...headers,
        },
        body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
      });
      return { status: response.status, body: await response.json(), headers: response.headers };
    },
  };
}

/** What RPC tells of a refusal, in the words of REST. */
export async function refusalOf(call: Promise<unknown>): Promise<{ status: number; message: string; errors?: object }> {
  const error: any = await call.then(
    () => {
      throw new Error('The call was not refused.');
    },
    (refused) => refused,
  );
  if (!error.data) throw error;
  const { httpStatus: status, errors } = error.data;
  return { status, message: error.message, ...(errors && { errors }) };
}
