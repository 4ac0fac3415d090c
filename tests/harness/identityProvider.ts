import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';

/** A person at the provider: what its tokens say. */
export type Person = { email?: string; email_verified?: boolean; name?: string; groups?: string[]; amr?: string[] };

export type TestProvider = {
  /** The issuer, for `SSO_ISSUERS`. */
  url: string;
  /** The persons by their subjects; change them as you like. */
  people: Record<string, Person>;
  /** An entry of `SSO_ISSUERS`. */
  settings: (more?: object) => object;
  /** Tells the provider where the service is, which starts after it. */
  register: (serviceUrl: string) => void;
  /** A browser with its cookies: opens an address of the provider, signs in as this person, and returns the callback. */
  browser: () => { signIn: (url: string, subject: string) => Promise<URL> };
  /** Tells the service, or another address, that a person has signed out here. */
  logOut: (subject: string, sid: string, address?: string) => Promise<unknown>;
  stop: () => Promise<unknown>;
};

const CLIENT = { client_id: 'deckhand', client_secret: 'a secret of the client' };

/** A real identity provider (`oidc-provider`) on loopback. Its sign-in form asks for the subject alone. */
export async function startIdentityProvider(name = 'company'): Promise<TestProvider> {
  let provider: Provider | undefined;
  const people: Record<string, Person> = {};
  const server = createServer((request, response) => {
    if (!provider) return void response.writeHead(503).end();
    if (request.url?.startsWith('/interaction/')) return void interact(provider, people, request, response);
    provider.callback()(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: 'first', use: 'sig', alg: 'RS256' };

  return {
    url,
    people,
    settings: (more = {}) => ({ name, title: `The ${name}`, issuer: url, ...CLIENT, ...more }),
    register: (serviceUrl) => {
      provider = makeProvider(url, people, key, serviceUrl, name);
    },
    browser: () => makeBrowser(url),
    logOut: async (subject, sid, address) => {
      const client = (await provider!.Client.find(CLIENT.client_id)) as any;
      if (!address) return client.backchannelLogout(subject, sid);
      const usual = client.backchannelLogoutUri;
      client.backchannelLogoutUri = address;
      await client.backchannelLogout(subject, sid).finally(() => {
        client.backchannelLogoutUri = usual;
      });
    },
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function makeProvider(url: string, people: Record<string, Person>, key: object, serviceUrl: string, name: string) {
  return new Provider(url, {
    clients: [
      {
        ...CLIENT,
        redirect_uris: [`${serviceUrl}/sso/callback`, `${serviceUrl}/sso/callback/${name}`],
        backchannel_logout_uri: `${serviceUrl}/sso/logout/${name}`,
        backchannel_logout_session_required: true,
        require_auth_time: true,
      },
    ],
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    jwks: { keys: [key] },
    cookies: { keys: ['a key of cookies'] },
    claims: { openid: ['sub', 'amr', 'groups'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    // Its own connections refuse loopback.
    fetch: (url, { dispatcher: _, ...options }: any) => fetch(url, options),
    pkce: { required: () => true },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, sub) => {
      const { amr: _, ...claims } = people[sub] ?? {};
      return { accountId: sub, claims: async () => ({ sub, ...claims }) };
    },
    // Nobody is asked for consent.
    loadExistingGrant: async ({ oidc }) => {
      const { client, session, provider } = oidc;
      const grant = new provider.Grant({ clientId: client?.clientId, accountId: session?.accountId });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
}

/** The sign-in form: the subject of a person is all that it asks for. */
async function interact(
  provider: Provider,
  people: Record<string, Person>,
  request: IncomingMessage,
  response: ServerResponse,
) {
  if (request.method !== 'POST') {
    const form = '<label>Account <input name="subject" autofocus></label> <button>Sign in</button>';
    response.writeHead(200, { 'Content-Type': 'text/html' });
    return response.end(`<!doctype html><title>Provider</title><form method="post">${form}</form>`);
  }
  let body = '';
  for await (const chunk of request) body += chunk;
  const accountId = new URLSearchParams(body).get('subject') ?? '';
  const login = people[accountId] && { accountId, amr: people[accountId].amr ?? ['pwd'] };
  const result = login ? { login } : { error: 'access_denied' };
  await provider.interactionFinished(request, response, result as any, { mergeWithLastSubmission: false });
}

function makeBrowser(issuer: string) {
  const cookies = new Map<string, string>();
  const open = async (address: string, init: RequestInit = {}) => {
    const headers = { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') };
    const response = await fetch(address, { redirect: 'manual', ...init, headers });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(name, value);
    }
    return response;
  };
  return {
    signIn: async (url: string, subject: string): Promise<URL> => {
      let address = url;
      while (address.startsWith(issuer)) {
        const isForm = address.includes('/interaction/');
        const body = new URLSearchParams({ subject });
        const response = await open(address, isForm ? { method: 'POST', body } : {});
        const next = response.headers.get('location');
        if (!next) throw new Error(`The provider answered ${response.status}: ${await response.text()}`);
        address = new URL(next, address).href;
      }
      return new URL(address);
    },
  };
}
