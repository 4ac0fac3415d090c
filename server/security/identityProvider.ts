import type { Configuration, CustomFetch } from 'openid-client';
import { z } from 'zod';
import { badRequest, forbidden } from '../../shared/errors.ts';
import { isStorable } from '../../shared/fields.ts';
import type { Log } from '../runtime/log.ts';
import { isLocalHttp, type SsoIssuer } from '../runtime/ssoIssuers.ts';
import { FetchRefused, type GuardedFetch, makeGuardedFetch } from './guardedFetch.ts';

/** An identity provider of the settings, as the service uses it. Each function throws a 400 or 403 that says what is wrong. */
export type IdentityProvider = {
  settings: SsoIssuer;
  /** The address where a person signs in. */
  authorizationUrl: (parameters: Record<string, string>) => Promise<string>;
  /** Exchanges the code of a callback for the claims of a verified token. */
  exchange: (callback: URL, expected: { state: string; nonce: string; codeVerifier: string }) => Promise<SsoClaims>;
  /** Verifies a logout token. Throws an error for whoever sent it. */
  readLogoutToken: (token: string) => Promise<LogoutToken>;
};

const text = z.string().refine(isStorable);
/** People choose their names there: control characters become blanks. */
const name = z.string().transform((sent) => sent.toWellFormed().replaceAll(/\p{Cc}+/gu, ' '));

/** What is used of a token; whatever else it says is ignored. */
export const SsoClaims = z.object({
  sub: text.min(1).max(255),
  email: text.optional().catch(undefined),
  email_verified: z.boolean().optional().catch(undefined),
  name: name.optional().catch(undefined),
  amr: z.array(text).max(20).default([]).catch([]),
  auth_time: z.number().optional().catch(undefined),
  sid: text.max(255).optional().catch(undefined),
  groups: z.array(text).default([]).catch([]),
});
export type SsoClaims = z.output<typeof SsoClaims>;

type LogoutToken = { sub: string | undefined; sid: string | undefined; jti: string; issuedAt: Date };

const METADATA_KEPT_MILLISECONDS = 60 * 60 * 1000;
/** A provider that is down is asked again after this time, however many people try. */
const FAILURE_KEPT_MILLISECONDS = 3000;
const LONGEST_CLOCK_DIFFERENCE_SECONDS = 60;
/** A logout token is taken for so long after it was issued, and the difference of the clocks. */
export const LONGEST_LOGOUT_SECONDS = 120;
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The providers by their names. Nothing is asked, and no package loaded, before somebody signs in. */
export function makeIdentityProviders(issuers: readonly SsoIssuer[], log: Log): ReadonlyMap<string, IdentityProvider> {
  const hosts = issuers.map(({ issuer }) => new URL(issuer));
  const allowedHosts = hosts.map(
    ({ hostname, port, protocol }) => `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`,
  );
  const fetch = makeGuardedFetch({ allowedHosts });
  return new Map(issuers.map((settings) => [settings.name, makeProvider(settings, fetch, log)]));
}

function makeProvider(settings: SsoIssuer, fetch: GuardedFetch, log: Log): IdentityProvider {
  const discover = kept(() => discoverProvider(settings, fetch));
  const explained = async <Result>(work: (config: Configuration) => Promise<Result>) => {
    try {
      return await work((await discover()).config);
    } catch (error) {
      log.warn({ issuer: settings.name, cause: detailOf(error) }, 'single sign-on failed');
      throw toCallerError(error, settings.title);
    }
  };

  return {
    settings,
    authorizationUrl: (parameters) =>
      explained(async (config) => {
        const { buildAuthorizationUrl } = await import('openid-client');
        return buildAuthorizationUrl(config, { scope: settings.scopes, ...parameters }).href;
      }),
    exchange: (callback, { state: expectedState, nonce: expectedNonce, codeVerifier: pkceCodeVerifier }) =>
      explained(async (config) => {
        const { authorizationCodeGrant, fetchUserInfo } = await import('openid-client');
        const expected = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true };
        const answer = await authorizationCodeGrant(config, callback, expected);
        const token = answer.claims();
        if (!token || token.iat > Date.now() / 1000 + LONGEST_CLOCK_DIFFERENCE_SECONDS)
          throw new ProviderProblem('Its token is from the future: check the clocks of both machines.');
        const groupsOf = (claims: object) => (claims as Record<string, unknown>)[settings.groups_claim ?? ''];
        const isShort = token.email === undefined || (settings.groups_claim && groupsOf(token) === undefined);
        // Some providers keep these claims for the user info. All others are those of the signed token.
        const hasMore = isShort && config.serverMetadata().userinfo_endpoint !== undefined;
        const more: Record<string, unknown> = hasMore
          ? await fetchUserInfo(config, answer.access_token, token.sub)
          : {};
        const { email, email_verified, name } = token.email === undefined ? more : token;
        const groups = groupsOf(token) ?? groupsOf(more);
        return SsoClaims.parse({ ...token, email, email_verified, name: token.name ?? name, groups });
      }),
    readLogoutToken: async (token) => {
      const { keys } = await discover();
      const { jwtVerify } = await import('jose');
      const { payload } = await jwtVerify(token, keys, {
        issuer: settings.issuer,
        audience: settings.client_id,
        algorithms: ALGORITHMS,
        maxTokenAge: LONGEST_LOGOUT_SECONDS,
        clockTolerance: LONGEST_CLOCK_DIFFERENCE_SECONDS,
        requiredClaims: ['iat', 'jti', 'events'],
      });
      const { sub, sid, jti, iat } = LogoutPayload.parse(payload);
      return { sub, sid, jti, issuedAt: new Date(iat * 1000) };
    },
  };
}

const LogoutPayload = z
  .object({
    sub: z.string().max(255).optional(),
    sid: z.string().max(255).optional(),
    jti: z.string(),
    iat: z.number(),
    nonce: z.undefined().optional(),
    events: z.looseObject({ [LOGOUT_EVENT]: z.looseObject({}) }),
  })
  .refine(({ sub, sid }) => sub !== undefined || sid !== undefined);

async function discoverProvider(settings: SsoIssuer, fetch: GuardedFetch): Promise<Discovered> {
  const [oidc, jose] = await Promise.all([import('openid-client'), import('jose')]);
  const customFetch: CustomFetch = (url, { method, headers, body, signal }) =>
    fetch(url, { method, headers, body: body instanceof URLSearchParams ? body.toString() : undefined, signal });
  const { issuer, client_id, client_secret } = settings;
  const execute = [oidc.enableNonRepudiationChecks, ...(isLocalHttp(issuer) ? [oidc.allowInsecureRequests] : [])];
  const auth = client_secret === undefined ? oidc.None() : undefined;
  const options = { [oidc.customFetch]: customFetch, execute, timeout: 10 };
  const config = await oidc.discovery(new URL(issuer), client_id, client_secret, auth, options);
  const { issuer: own, jwks_uri } = config.serverMetadata();
  // Exactly: the package accepts other tenants of Microsoft, whose users are not those of this issuer.
  if (own !== issuer)
    throw new ProviderProblem('It calls itself by another address than the setting: set issuer to its own.');
  if (jwks_uri === undefined) throw new ProviderProblem('It names no keys.');
  const keys = jose.createRemoteJWKSet(new URL(jwks_uri), {
    [jose.customFetch]: (url, { headers, signal }) => fetch(url, { headers: Object.fromEntries(headers), signal }),
  });
  return { config, keys };
}
type Discovered = { config: Configuration; keys: ReturnType<typeof import('jose').createRemoteJWKSet> };

/** One call at a time: others wait for its result, which is kept. */
function kept<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let current: Promise<Result> | undefined;
  let until = Number.POSITIVE_INFINITY;
  return () => {
    if (current && performance.now() < until) return current;
    until = Number.POSITIVE_INFINITY;
    current = work();
    current.then(
      () => (until = performance.now() + METADATA_KEPT_MILLISECONDS),
      () => (until = performance.now() + FAILURE_KEPT_MILLISECONDS),
    );
    return current;
  };
}

/** What is wrong with a provider, or with what it sent, as a sentence. */
class ProviderProblem extends Error {}

/** Codes of errors that mean: the provider can't be reached, its certificate is not valid, or it answered with a fault or an HTML page. */
export const UNREACHABLE =
  /^(E[A-Z]+|\w*CERT_\w+|\w*_CERT|UNABLE_TO_\w+|ERR_TLS\w+|OAUTH_TIMEOUT|OAUTH_RESPONSE_IS_NOT_(CONFORM|JSON))$/;

function toCallerError(error: unknown, title: string) {
  const causes = causesOf(error);
  const refused = causes.find((cause) => cause instanceof FetchRefused);
  if (refused) return badRequest(`${title} can't be asked at the moment. ${refused.message}`, 'sso_unavailable');
  const isConnection = causes.some(({ code = '' }) => UNREACHABLE.test(code));
  if (isConnection) return badRequest(`${title} can't be reached at the moment. Try again later.`, 'sso_unavailable');
  return forbidden(`The sign-in at ${title} was refused. ${problemOf(causes)}`, 'sso_refused');
}

type Cause = Error & { code?: string; error?: string; claim?: string; cause?: unknown };

/** An error with what caused it; the package wraps its errors twice, and the claim that is wrong is in the innermost cause. */
function causesOf(error: unknown): Cause[] {
  if (typeof error !== 'object' || error === null) return [];
  return [error as Cause, ...causesOf((error as Cause).cause)];
}

const NOT_SIGNED = 'Its token is not signed with one of its keys.';
const PROBLEMS: Record<string, string> = {
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: 'Its token has expired, or the clocks of both machines differ.',
  OAUTH_KEY_SELECTION_FAILED: NOT_SIGNED,
  OAUTH_UNSUPPORTED_OPERATION: 'Its token is not signed in a way that is allowed.',
  OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED: 'It calls itself by another address than the setting.',
};

/** Only texts of ours: what a provider writes could be anything. */
function problemOf(causes: Cause[]): string {
  const own = causes.find((cause) => cause instanceof ProviderProblem);
  if (own) return own.message;
  const said = causes.find(({ error }) => typeof error === 'string' && /^[a-z_]{1,50}$/.test(error))?.error;
  if (said !== undefined) return `It answered ${said}.`;
  const known = causes.map(({ code = '' }) => PROBLEMS[code]).find((text) => text !== undefined);
  if (known !== undefined) return known;
  if (causes.some(({ message = '' }) => message.includes('signature verification'))) return NOT_SIGNED;
  const claim = causes.find(({ claim }) => typeof claim === 'string')?.claim;
  const missing = causes.map(({ message = '' }) => /JWT "(\w+)".* claim missing/.exec(message)?.[1]).find(Boolean);
  if (missing !== undefined) return `Its token is incomplete: ${missing} is missing.`;
  return claim === undefined
    ? 'What it sent is incomplete, or not for this sign-in.'
    : `Its token is not for this sign-in: ${claim} is wrong.`;
}

const detailOf = (error: unknown) =>
  causesOf(error)
    .map(({ message, code }) => [code, message].filter(Boolean).join(' '))
    .join('; ')
    .slice(0, 500);
