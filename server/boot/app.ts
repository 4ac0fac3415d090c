import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { toFailure } from '../../shared/errors.ts';
import type { Services } from '../api/services.ts';
import { logFailure } from '../call/logFailure.ts';
import { asBadRequest } from '../http/body.ts';
import { spreadBursts } from '../http/bursts.ts';
import { compressLargeResponses } from '../http/compress.ts';
import { addDrain, limitConnections } from '../http/connections.ts';
import { addEventStreams } from '../http/eventStream.ts';
import { sendErrorHeaders, sendHeaders } from '../http/headers.ts';
import { health } from '../http/health.ts';
import { malformedRequests } from '../http/malformed.ts';
import { mcpSurface } from '../http/mcp.ts';
import { metrics } from '../http/metrics.ts';
import { logRequests, traceRequests } from '../http/observe.ts';
import { allowOrigins } from '../http/origins.ts';
import { resourceMetadata } from '../http/resourceMetadata.ts';
import { restFacade } from '../http/rest.ts';
import { rpcSurface } from '../http/rpc.ts';
import { ssoLogout } from '../http/ssoLogout.ts';
import { paymentWebhook } from '../http/webhook.ts';
import type { Settings } from '../runtime/env.ts';
import { ownAddress } from '../runtime/host.ts';
import { checkoutPage } from '../web/checkoutPage.ts';
import { pages } from '../web/pages.ts';

declare module 'fastify' {
  interface FastifyInstance {
    ownOrigin: string;
  }
}

type AppOptions = Services & {
  logger: FastifyBaseLogger;
  trustProxy: Settings['TRUST_PROXY'];
  /** Origins whose pages may call the service from a browser (CORS), besides its own. */
  allowedOrigins: readonly string[];
};

const LONGEST_RECEIPT_MILLISECONDS = 30_000;

/** Builds the service without listening. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { logger, trustProxy, allowedOrigins, readiness, isNodeStopping } = options;
  const malformed = malformedRequests(options);
  const app = fastify({
    loggerInstance: logger,
    // One line per request, in onResponse below, instead of Fastify's two.
    logController: new LogController({ disableRequestLogging: true }),
    trustProxy: typeof trustProxy === 'number' ? (_address, hop) => hop < trustProxy : trustProxy,
    requestIdHeader: false,
    genReqId: ({ headers }) => safeRequestId(headers['x-request-id']) ?? randomUUID(),
    requestTimeout: LONGEST_RECEIPT_MILLISECONDS,
    clientErrorHandler: malformed.onClientError,
    http: {
      // Default: 60 seconds. Node applies the longer of both limits to bodies.
      headersTimeout: LONGEST_RECEIPT_MILLISECONDS,
      // Default: Node looks for late requests every 30 seconds.
      connectionsCheckingInterval: 1000,
      // malformed.ts checks it: Node's own 400 has another body and no headers.
      requireHostHeader: false,
    },
    // A stopping node still serves requests on keep-alive connections.
    return503OnClosing: false,
    // Longer than any URL within the header limit: Fastify's own error has another body and no headers.
    routerOptions: { maxParamLength: 100_000 },
    // Zod checks inputs and writes outputs: without these, Fastify loads Ajv for each start.
    schemaController: { compilersFactory: { buildValidator: refuseSchemas, buildSerializer: refuseSchemas } },
    rewriteUrl: ({ url = '/' }) => (isDecodable(url) ? url : url.replaceAll('%', '%25')),
  });

  // Ignores an unknown `Expect` header: Node would send an empty 417.
  app.server.on('checkExpectation', app.routing);
  spreadBursts(app);
  limitConnections(app, { isBehindProxy: trustProxy !== false });
  malformed.attachTo(app);
  compressLargeResponses(app);
  addEventStreams(app, options);
  addDrain(app);
  rememberOrigin(app);
  traceRequests(app);
  logRequests(app);
  // Fastify's own parse any body, even on unknown paths.
  app.removeAllContentTypeParsers();
  sendHeaders(app);
  app.setErrorHandler((error, request, reply) => {
    const failure = toFailure(asBadRequest(error));
    logFailure(request.log, error, failure);
    sendErrorHeaders(reply, failure);
    return reply.code(failure.status).send({ error: true, message: failure.message, data: [] });
  });
  allowOrigins(app, allowedOrigins);
  await metrics(app, options);
  await health(app, { readiness, isStopping: isNodeStopping });
  await app.register(pages, options);
  await app.register(checkoutPage, { prefix: '/checkout', ...options });
  await app.register(paymentWebhook, { prefix: '/webhooks', ...options });
  await app.register(ssoLogout, { prefix: '/sso/logout', ...options });
  await app.register(restFacade, { prefix: '/api', ...options });
  await app.register(rpcSurface, { prefix: '/trpc', ...options });
  await app.register(mcpSurface, { prefix: '/mcp', ...options });
  await app.register(resourceMetadata, { prefix: '/.well-known', ...options });
  return app;
}

/** Stored at the start, since Fastify no longer knows the address while the service stops. */
function rememberOrigin(app: FastifyInstance) {
  app.decorate('ownOrigin', '');
  app.addHook('onListen', async () => {
    const { address, port } = app.server.address() as AddressInfo;
    app.ownOrigin = ownAddress(address, port);
  });
}

/** Undefined if it has characters that are unsafe in logs. */
function safeRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\w.:-]{1,128}$/.test(header) ? header : undefined;
}

function refuseSchemas(): never {
  throw new Error('Routes have no JSON schemas.');
}

/** A path that can't be decoded is a 404, like other unknown paths. */
function isDecodable(url: string): boolean {
  try {
    decodeURI(url);
    return true;
  } catch {
    return false;
  }
}
