import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

export type Forged = Awaited<ReturnType<typeof startForgedProvider>>;

/** An identity provider that answers whatever a test wants. Each path is an issuer of its own, with its own fault. */
export async function startForgedProvider() {
  const real = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(real.publicKey)), kid: 'real', alg: 'RS256', use: 'sig' };
  const tooLong = 'x'.repeat(300 * 1024);
  const control = { token: async (): Promise<object> => ({}), isSlow: true };

  const server = createServer(async (request, response) => {
    const [, kind = '', ...rest] = (request.url ?? '').split('/');
    const issuer = `${url}/${kind}`;
    const send = (body: object, status = 200) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    if (rest.join('/') === '.well-known/openid-configuration') {
      if (kind === 'slow') return;
      if (kind === 'moved')
        return response.writeHead(302, { Location: `${url}/fine/.well-known/openid-configuration` }).end();
      if (kind === 'broken') return send({}, 500);
      if (kind === 'page') return response.writeHead(200, { 'Content-Type': 'text/html' }).end('Under maintenance');
      const metadata = {
        issuer: kind === 'another' ? `${url}/fine` : issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: kind === 'inside' ? 'http://169.254.169.254/keys' : `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
        authorization_response_iss_parameter_supported: true,
        ...(kind === 'long' && { tooLong }),
      };
      return send(metadata);
    }
    if (rest[0] === 'keys') return send({ keys: [jwk], ...(kind === 'many-keys' && { tooLong }) });
    if (rest[0] === 'token') return send(await control.token().catch(() => ({ error: 'invalid_grant' })));
    return send({}, 404);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    control,
    publicKey: jwk,
    settings: (name: string, more: object = {}) => ({
      ...{ name, title: name, issuer: `${url}/${name}`, client_id: 'deckhand', client_secret: 'secret', ...more },
    }),
    /** A token as a good provider signs it, with other claims or another key. */
    sign: (claims: JWTPayload, { key = real.privateKey as any, kid = 'real', alg = 'RS256' } = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key),
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
