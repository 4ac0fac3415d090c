import { afterAll, afterEach, expect } from 'vitest';
import type { SentEvent } from '../../server/contract/event.ts';

/**
 * Runs before every suite: each answer to a test is checked, REST against the document and RPC against the models, and each event
 * of a stream.
 */
const unchecked = globalThis.fetch as typeof fetch & { unchecked?: typeof fetch };
if (!unchecked.unchecked) globalThis.fetch = Object.assign(checkedFetch, { unchecked });

/** For suites with wrong answers on purpose. */
export const uncheckedFetch = () => (globalThis.fetch as typeof unchecked).unchecked ?? globalThis.fetch;

type Suite = { found: { test: string | undefined; problem: string }[]; isOver: boolean };

/** Found in streams and messages; reported after the test, or at the end of its suite if that test was over. */
const suite: Suite = { found: [], isOver: false };
/** Suites of a worker share one `fetch`, which finds the current one here. */
const shared = globalThis as typeof globalThis & { currentSuite?: Suite };
shared.currentSuite = suite;

afterEach(() => {
  const { currentTestName } = expect.getState();
  const [own, others] = [suite.found, suite.found].map((all, at) =>
    all.filter(({ test }) => (test === currentTestName) === (at === 0)),
  );
  suite.found = others!;
  mustBeNone(own!);
});

afterAll(() => {
  suite.isOver = true;
  mustBeNone(suite.found);
});

function mustBeNone(found: Suite['found']): void {
  const problems = found.map(({ test, problem }) => `${test}: ${problem}`);
  if (problems.length > 0) throw new Error(`Events are not as documented:\n${problems.join('\n')}`);
}

/** Checks the message of a webhook, which a test has received. */
export async function checkMessage(text: string): Promise<void> {
  const noteWrong = noteForTest();
  const { messageViolations } = await import('../../server/contract/event.ts');
  noteWrong(messageViolations(JSON.parse(text), { isNew: true }));
}

/** Notes what is found for the test and the suite that read it. */
function noteForTest(): (problems: string[]) => void {
  const { currentTestName: test, testPath } = expect.getState();
  const reading = shared.currentSuite!;
  return (problems) => {
    const found = problems.map((problem) => ({ test, problem }));
    if (!reading.isOver) reading.found.push(...found);
    // No later suite must fail for it: the run does.
    else if (found.length > 0) void Promise.reject(new Error(`After the end of ${testPath}, ${problems.join('\n')}`));
  };
}

async function checkedFetch(...parts: Parameters<typeof fetch>): Promise<Response> {
  const { method, url } = parts[0] instanceof Request ? parts[0] : new Request(parts[0], { method: parts[1]?.method });
  const { pathname } = new URL(url);
  const response = await unchecked(...parts);
  const [, surface, path] = /^\/(api|trpc)(?:\/(.*))?$/.exec(pathname) ?? [];
  const type = response.headers.get('content-type') ?? '';
  if (surface !== undefined && type.startsWith('text/event-stream')) return checkedStream(response);
  if (surface === undefined || type === 'application/jsonl') return response;

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
      : (await import('../../server/contract/rpcAnswer.ts')).rpcViolations(path ?? '', text, { isNew: true });
  if (found.length > 0)
    throw new Error(`${method} ${pathname} ${response.status} is not as documented:\n${found.join('\n')}`);
  return new Response(text || null, response);
}

/** The same stream, read as it arrives: each event over REST, and each one in superjson over RPC. */
async function checkedStream(response: Response): Promise<Response> {
  const noteWrong = noteForTest();
  const { eventViolations } = await import('../../server/contract/event.ts');
  const decoder = new TextDecoder();
  let text = '';
  const check = (line: string) => {
    if (!line.startsWith('data: {')) return;
    const sent = JSON.parse(line.slice('data: '.length)) as SentEvent & { json?: SentEvent };
    const event = sent.json ?? sent;
    if (event.created_at !== undefined) noteWrong(eventViolations(event, { isNew: true }));
  };
  const body = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk);
        const lines = (text + decoder.decode(chunk, { stream: true })).split('\n');
        text = lines.pop() ?? '';
        lines.forEach(check);
      },
    }),
  );
  return new Response(body, response);
}
