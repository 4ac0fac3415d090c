import type { FastifyInstance, FastifyRequest } from 'fastify';
import { continueIn, isTracing, type RemoteSpan, readTraceparent, type Span, startSpan } from '../runtime/tracing.ts';
import { REASON_HEADER } from './errorHeaders.ts';
import { methodOf, OTHER_METHOD, operationOf } from './operation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | undefined;
  }
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
