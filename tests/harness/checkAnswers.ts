/** Runs before every suite: each answer to a test is checked, REST against the document and RPC against the models. */
const unchecked = globalThis.fetch as typeof fetch & { isChecked?: true };
if (!unchecked.isChecked) globalThis.fetch = Object.assign(checkedFetch, { isChecked: true });

async function checkedFetch(...parts: Parameters<typeof fetch>): Promise<Response> {
  const { method, url } = parts[0] instanceof Request ? parts[0] : new Request(parts[0], { method: parts[1]?.method });
  const { pathname } = new URL(url);
  const response = await unchecked(...parts);
  const [, surface, path] = /^\/(api|trpc)(?:\/(.*))?$/.exec(pathname) ?? [];
  // A stream is read as it arrives.
  if (surface === undefined || response.headers.get('content-type') === 'application/jsonl') return response;

  const text = await response.text();
  // Loaded when needed, since many suites call only one of them, or none.
  const found =
    surface === 'api'
      ? (await import('./answer.ts')).undocumented({ method, path: `/${path ?? ''}`, response, text })
      : (await import('./rpcAnswer.ts')).rpcViolations(path ?? '', text);
  if (found.length > 0)
    throw new Error(`${method} ${pathname} ${response.status} is not as documented:\n${found.join('\n')}`);
  return new Response(text || null, response);
}
