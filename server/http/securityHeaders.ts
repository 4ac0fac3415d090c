import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import helmet from 'helmet';

/** Helmet's headers, computed once, since they are the same for every response. */
export function sendSecurityHeaders(app: FastifyInstance): void {
  const headers = securityHeaders();
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
}

/** By their names in lower case. */
export function securityHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value;
    },
    removeHeader: () => undefined,
  };
  const middleware = helmet({
    // The service has no TLS; the proxy that terminates TLS sends HSTS.
    strictTransportSecurity: false,
    contentSecurityPolicy: {
      // Styles and fonts of our own files only; helmet's defaults allow inline styles and any host with TLS.
      directives: { upgradeInsecureRequests: null, styleSrc: ["'self'"], fontSrc: ["'self'"] },
    },
  });
  middleware({} as IncomingMessage, response as unknown as ServerResponse, (error) => {
    if (error) throw error;
  });
  return headers;
}
