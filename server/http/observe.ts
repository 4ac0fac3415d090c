import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import { REASONS } from '../../shared/reasons.ts';
import { findProcedure } from '../api/procedures.ts';
import type { RestOperation } from '../api/restOperation.ts';
import { addHistogram } from '../runtime/histogram.ts';
import { continueIn, isTracing, type RemoteSpan, readTraceparent, type Span, startSpan } from '../runtime/tracing.ts';
import { REASON_HEADER, reasonsOf } from './headers.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    surface?: 'rest' | 'rpc' | 'mcp';
    operation?: string;
    rest?: RestOperation;
    /** A probe or scrape that comes every few seconds: its line in the log is at `debug`. */
    isProbe?: boolean;
  }
  interface FastifyRequest {
    /** The operation of an MCP request; undefined until its body is parsed. */
    operation: string | undefined;
    /** A stream of events, which lasts as long as its client wants. */
    isOpenEnded: boolean;
    span: Span | undefined;
  }
}

/** A line in the log for each request. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    done();
    if (!LEVELS_WITH_REQUESTS.has(app.log.level)) return;
    // Without the query string, which may contain a password by mistake.
    const { config, url = request.url.split('?', 1)[0] } = request.routeOptions;
    const called = config.surface ? { surface: config.surface, operation: operationOf(request) } : { path: url };
    const outcome = {
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime),
      user: request.exchange?.caller?.id,
      key: request.exchange?.caller?.key?.id,
      client: clientVersionOf(request),
    };
    request.log[config.isProbe && reply.statusCode < 400 ? 'debug' : 'info']({ ...called, ...outcome }, 'answered');
  });
}

/** The line is not built at other levels. */
const LEVELS_WITH_REQUESTS = new Set(['info', 'debug', 'trace']);

/**
 * Requests by surface and status, their duration by surface and by operation, and errors by reason. All labels come from closed
 * lists. No metric has both the operation and something else: with its buckets, that would be thousands of series.
 */
export function countRequests(scope: FastifyInstance, registry: Registry): void {
  /** Since the last scrape, by surface and status. What an alert looks for is there from the beginning. */
  const latest = new Map<string, number>([400, 500].map((status) => [`payments ${status}`, 0]));
  new Counter({
    name: 'deckhand_requests_total',
    help: 'Requests, without health checks and scrapes.',
    labelNames: ['surface', 'http_response_status_code'] as const,
    registers: [registry],
    collect() {
      for (const [labels, count] of latest) {
        const [surface = '', http_response_status_code = ''] = labels.split(' ');
        this.inc({ surface, http_response_status_code }, count);
      }
      latest.clear();
    },
  });
  const observeRequest = addHistogram({
    name: 'http_server_request_duration_seconds',
    help: 'Duration of requests, without health checks, scrapes and streams of events.',
    label: 'surface',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registry,
  });
  const observeOperation = addHistogram({
    name: 'deckhand_operation_duration_seconds',
    help: 'Duration of the requests of each operation, over all surfaces.',
    label: 'operation',
    buckets: [0.01, 0.05, 0.25, 1, 5],
    registry,
  });
  const errors = new Counter({
    name: 'deckhand_errors_total',
    help: 'Calls that were refused or failed, by reason (docs/errors.md). Each call of a batch counts.',
    labelNames: ['surface', 'reason'] as const,
    registers: [registry],
  });
  // An increase from nothing to one is none for Prometheus.
  for (const surface of ['rest', 'rpc', 'mcp'])
    for (const reason of Object.keys(REASONS)) errors.inc({ surface, reason }, 0);

  scope.decorateRequest('isOpenEnded', false);
  scope.addHook('onResponse', (request, reply, done) => {
    done();
    const { config, url } = request.routeOptions;
    if (config.isProbe) return;
    const surface = config.surface ?? (url?.startsWith('/webhooks/') ? 'payments' : 'other');
    const labels = `${surface} ${reply.statusCode}`;
    latest.set(labels, (latest.get(labels) ?? 0) + 1);
    if (!request.isOpenEnded) {
      const seconds = reply.elapsedTime / 1000;
      observeRequest(surface, seconds);
      if (config.surface) observeOperation(operationOf(request), seconds);
    }
    for (const reason of reasonsOf(request, reply)) errors.inc({ surface, reason });
  });
}

/** Pages, health checks and metrics have no spans. */
const TRACED = /^\/((api|trpc|webhooks)\/|mcp($|[/?]))/;

/** A span for each request, and its trace in the log; without a tracer, the caller's trace in the log. */
export function traceRequests(app: FastifyInstance): void {
  app.decorateRequest('span', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const { traceparent, tracestate } = request.headers;
    const caller = traceparent === undefined ? undefined : readTraceparent(traceparent, tracestate);
    if (isTracing() && TRACED.test(request.url)) request.span = startRequestSpan(request, caller);

    const trace_id = request.span?.traceId ?? caller?.traceId;
    if (trace_id) request.log = reply.log = request.log.child({ trace_id });
    if (request.span) continueIn(request.span, done);
    else done();
  });
  if (!isTracing()) return;

  app.addHook('onResponse', (request, reply, done) => {
    const { span, routeOptions } = request;
    const reason = reply.getHeader(REASON_HEADER);
    span?.set({
      'http.response.status_code': reply.statusCode,
      ...(routeOptions.config.surface && { 'deckhand.operation': operationOf(request) }),
      ...(reason && { 'deckhand.reason': String(reason) }),
    });
    if (reply.statusCode >= 500) span?.fail(String(reply.statusCode));
    span?.end();
    done();
  });
}

function startRequestSpan(request: FastifyRequest, caller: RemoteSpan | undefined) {
  const { url, protocol, routeOptions } = request;
  const method = methodOf(request);
  const { url: route } = routeOptions;
  const attributes = {
    'http.request.method': method,
    // Without the query string, which may contain a password by mistake.
    'url.path': url.replace(/\?.*/s, ''),
    'url.scheme': protocol,
    ...(route && { 'http.route': route }),
  };
  return startSpan(
    [method === OTHER_METHOD ? 'HTTP' : method, route].filter(Boolean).join(' '),
    { kind: 'server', attributes },
    caller,
  );
}

/** The procedure that a request calls, for logs and metrics: a known name, `batch` or `other`, whatever was sent. */
export function operationOf({ routeOptions, params, operation: named }: FastifyRequest): string {
  const { surface, operation = named } = routeOptions.config;
  if (surface !== 'rpc') return operation ?? 'other';
  const path = (params as { '*': string })['*'];
  const called = path.split(',');
  if (!called.every(findProcedure)) return 'other';
  return called.length === 1 ? path : 'batch';
}

/** The version of the typed client that sent a request, for logs; undefined for other callers, and for what is no version. */
export function clientVersionOf({ headers }: FastifyRequest): string | undefined {
  const version = String(headers['x-deckhand-client']);
  return /^\d{1,6}\.\d{1,6}\.\d{1,6}$/.test(version) ? version : undefined;
}

/** The methods that OpenTelemetry knows; others, which may have any name, are `_OTHER`. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']);
const OTHER_METHOD = '_OTHER';

/** The method of a request, for traces and metrics. */
const methodOf = ({ method }: FastifyRequest) => (METHODS.has(method) ? method : OTHER_METHOD);
