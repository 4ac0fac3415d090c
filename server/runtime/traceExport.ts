import { setTimeout as pause } from 'node:timers/promises';
import { createTraceState, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Settings } from './env.ts';
import type { Log } from './log.ts';
import { type RemoteSpan, type Span, setTracer, type Tracer } from './tracing.ts';
import { VERSION } from './version.ts';

/** A hanging collector must not block the exit. */
const LONGEST_FLUSH_MILLISECONDS = 3_000;

const LONGEST_ATTRIBUTE = 4_000;

/** The exporter reads headers, timeout and certificates from the environment itself. */
export function startTracing(settings: Settings, url: string, log: Log): { stop: () => Promise<void> } {
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'deckhand', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    sampler: samplerOf(settings),
    spanLimits: { attributeValueLengthLimit: LONGEST_ATTRIBUTE },
    spanProcessors: [new BatchSpanProcessor({ exporter: logOutages(new OTLPTraceExporter({ url }), log) })],
  });
  setTracer(makeTracer(provider));

  return {
    stop: async () => {
      setTracer(undefined);
      const flushed = provider.shutdown().catch(() => undefined);
      await Promise.race([flushed, pause(LONGEST_FLUSH_MILLISECONDS, undefined, { ref: false })]);
    },
  };
}

function makeTracer(provider: TracerProvider): Tracer {
  const tracer = provider.getTracer('deckhand', VERSION);
  const contexts = new WeakMap<object, typeof ROOT_CONTEXT>();

  return {
    start: (name, { kind, attributes = {} }, parent) => {
      const parentContext = (parent && (contexts.get(parent) ?? remoteContext(parent as RemoteSpan))) || ROOT_CONTEXT;
      const otel = tracer.startSpan(name, { kind: KINDS[kind ?? 'internal'], attributes }, parentContext);
      const span: Span = {
        traceId: otel.spanContext().traceId,
        isRecorded: otel.isRecording(),
        set: (more) => void otel.setAttributes(more),
        fail: (type) => void otel.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', type),
        end: () => otel.end(),
      };
      contexts.set(span, trace.setSpan(ROOT_CONTEXT, otel));
      return span;
    },
  };
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

const remoteContext = ({ traceId, spanId, flags, state }: RemoteSpan) =>
  trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flags,
    isRemote: true,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  });

function samplerOf({ OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG }: Settings) {
  const kind = OTEL_TRACES_SAMPLER.replace('parentbased_', '') as keyof typeof SAMPLERS;
  const root = SAMPLERS[kind](OTEL_TRACES_SAMPLER_ARG);
  return OTEL_TRACES_SAMPLER.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (ratio: number) => new TraceIdRatioBasedSampler(ratio),
};

/** Logs when the collector fails and when it works again, instead of each failed batch. */
function logOutages(exporter: SpanExporter, log: Log): SpanExporter {
  let isWorking = true;
  return {
    export: (spans, done) =>
      exporter.export(spans, ({ code, error }) => {
        const { message = 'no response', code: status = '' } = (error ?? {}) as { message?: string; code?: unknown };
        if (isWorking && error) log.warn(`Traces are lost: the collector can't be used (${status} ${message}).`);
        if (!isWorking && !error) log.info('The collector of traces works again.');
        isWorking = !error;
        done({ code });
      }),
    shutdown: () => exporter.shutdown(),
  };
}
