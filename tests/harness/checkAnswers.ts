/** Runs before every suite: each answer to a test is checked, REST against the document and RPC against the models. */
const unchecked = globalThis.fetch as typeof fetch & { unchecked?: typeof fetch };
if (!unchecked.unchecked) globalThis.fetch = Object.assign(checkedFetch, { unchecked });

/** For suites with wrong answers on purpose. */
export const uncheckedFetch = () => (globalThis.fetch as typeof unchecked).unchecked ?? globalThis.fetch;

async function checkedFetch(...parts: Parameters<typeof fetch>): Promise<Response> {
  const { method, url } = parts[0] instanceof Request ? parts[0] : new Request(parts[0], { method: parts[1]?.method });
  const { pathname } = new URL(url);
  const response = await unchecked(...parts);
  const [, surface, path] = /^\/(api|trpc)(?:\/(.*))?$/.exec(pathname) ?? [];
  // A stream is read as it arrives.
  const type = response.headers.get('content-type') ?? '';
  if (surface === undefined || ['application/jsonl', 'text/event-stream'].includes(type)) return response;

  const text = await response.text();
  // Loaded when needed, since many suites call only one of them, or none.
  const found =
    surface === 'api'
      ? (await import('../../server/contract/answer.ts')).undocumented({
          method,
          path: `/${path ?? ''}`,
          response,
          text,
        })
      : (await import('../../server/contract/rpcAnswer.ts')).rpcViolations(path ?? '', text);
  if (found.length > 0)
    throw new Error(`${method} ${pathname} ${response.status} is not as documented:\n${found.join('\n')}`);
  return new Response(text || null, response);
}
