import { AsyncLocalStorage } from 'node:async_hooks';

/** Spans for OpenTelemetry. Without a tracer (`traceExport.ts` sets it), `trace` only runs the work. */

export type Attributes = Record<string, string | number>;

export type Span = {
  traceId: string;
  /** Whether the trace is sampled. */
  isRecorded: boolean;
  set: (attributes: Attributes) => void;
  /** A status or error code, never a message, which may contain values. */
  fail: (type: string) => void;
  end: () => void;
};

/** The caller's span, from the request headers. */
export type RemoteSpan = { traceId: string; spanId: string; flags: number; state: string | undefined };

export type SpanOptions = { kind?: 'server' | 'client'; attributes?: Attributes };

export type Tracer = { start: (name: string, options: SpanOptions, parent: Span | RemoteSpan | undefined) => Span };

let tracer: Tracer | undefined;
const current = new AsyncLocalStorage<Span>();

export function setTracer(next: Tracer | undefined): void {
  tracer = next;
}

export const isTracing = () => tracer !== undefined;

export const isTraced = () => tracer !== undefined && current.getStore()?.isRecorded === true;

/** Runs work in a child span. Work outside of requests, such as upkeep, has no span. */
export function trace<Result>(
  name: string,
  work: (span?: Span) => Promise<Result>,
  options: SpanOptions = {},
): Promise<Result> {
  const parent = current.getStore();
  return tracer && parent?.isRecorded ? runInSpan(tracer.start(name, options, parent), work) : work();
}

async function runInSpan<Result>(span: Span, work: (span: Span) => Promise<Result>): Promise<Result> {
  try {
    return await current.run(span, work, span);
  } catch (error) {
    const { code, name } = error as { code?: unknown; name?: string };
    span.fail(typeof code === 'string' ? code : (name ?? 'Error'));
    throw error;
  } finally {
    span.end();
  }
}

/** Starts the span of a request; the caller ends it. */
export const startSpan = (name: string, options: SpanOptions, parent: RemoteSpan | undefined): Span | undefined =>
  tracer?.start(name, options, parent);

export const continueIn = (span: Span, next: () => void): void => current.run(span, next);

/** Reads the W3C headers; undefined if `traceparent` is missing or malformed. */
export function readTraceparent(traceparent: unknown, tracestate?: unknown): RemoteSpan | undefined {
  if (typeof traceparent !== 'string') return undefined;
  // Node joins repeated headers. An instrumented `fetch` appends its own of the same trace: the last one is the parent.
  const spans = traceparent.split(',').map((text) => parse(text.trim()));
  const parent = spans.at(-1);
  if (!parent || spans.some((span) => span?.traceId !== parent.traceId)) return undefined;
  return { ...parent, state: typeof tracestate === 'string' ? tracestate : undefined };
}

function parse(text: string): Omit<RemoteSpan, 'state'> | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(text) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & 1 };
}

/** Later versions may append fields. */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
