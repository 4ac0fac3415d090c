/**
 * Set up before every suite: whatever calls REST in a test, the answer is checked against the document, and the call fails
 * where the two disagree.
 */
const unchecked = globalThis.fetch as typeof fetch & { isChecked?: true };
if (!unchecked.isChecked) globalThis.fetch = Object.assign(checkedFetch, { isChecked: true });

async function checkedFetch(...parts: Parameters<typeof fetch>): Promise<Response> {
  const { method, url } = parts[0] instanceof Request ? parts[0] : new Request(parts[0], { method: parts[1]?.method });
  const { pathname } = new URL(url);
  const response = await unchecked(...parts);
  if (!/^\/api(\/|$)/.test(pathname)) return response;

  const text = await response.text();
  // Loaded when first needed: many suites call no REST.
  const { undocumented } = await import('./answer.ts');
  const found = undocumented({ method, path: pathname.slice('/api'.length), response, text });
  if (found.length > 0)
    throw new Error(`${method} ${pathname} answers ${response.status} against the document:\n${found.join('\n')}`);
  return new Response(text || null, response);
}
