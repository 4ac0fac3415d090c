import { type Client, createClient } from '../../client/client.ts';

export type Answer = { status: number; body: any; headers: Headers };

export type TestCaller = {
  token: string | undefined;
  /** Calls over REST; a string is sent as it is. */
  post: (path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;
  /** Calls a tool of assistants. */
  tool: (name: string, input: unknown, meta?: object) => Promise<Answer>;
  rpc: Client;
  /** The same caller, acting in another project. */
  in: (projectId: number) => TestCaller;
  /** The same caller with another client, whose calls are not batched with those of this one. */
  alone: () => TestCaller;
};

export function makeCaller(url: string, token?: string, projectId?: number): TestCaller {
  const send = async (path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> => {
    const response = await fetch(url + path, {
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
  };
  return {
    token,
    rpc: createClient({ url, token, projectId, retries: 0 }),
    in: (id) => makeCaller(url, token, id),
    alone: () => makeCaller(url, token, projectId),
    post: (path, body, headers) => send(`/api${path}`, body, headers),
    tool: (name, input, meta) => {
      const params = { name, arguments: input, ...(meta && { _meta: meta }) };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      return send('/mcp', message, { accept: 'application/json, text/event-stream' });
    },
  };
}

/** The error of an RPC call, with the fields that REST has for it. */
export async function refusalOf(call: Promise<unknown>): Promise<{ status: number; message: string; errors?: object }> {
  const error: any = await call.then(() => new Error('The call was not refused.')).catch((refused) => refused);
  if (!error.data) throw error;
  const { httpStatus: status, errors } = error.data;
  return { status, message: error.message, ...(errors && { errors }) };
}
