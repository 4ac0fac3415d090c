import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';
import type { NewRow } from '../../server/database/tables.ts';
import { givenServiceAccount, insert } from './world.ts';

/** A key of an issuer: what it publishes, and how it signs. */
export async function makeIssuerKey(alg = 'ES256', options: { modulusLength?: number } = {}) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true, ...options });
  const kid = randomUUID();
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } as JWK };
}
export type IssuerKey = Awaited<ReturnType<typeof makeIssuerKey>>;

const seconds = () => Math.floor(Date.now() / 1000);
export const AUDIENCE = 'https://deckhand.test';
export const SUBJECT = 'repo:acme/app:environment:production';

/** A token of now for five minutes; claims and headers that are sent as undefined are left out. */
export function signToken(
  issuer: string,
  { alg, kid, privateKey }: Pick<IssuerKey, 'alg' | 'kid' | 'privateKey'>,
  claims: Record<string, unknown> = {},
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  const times = { iat: seconds(), nbf: seconds() - 5, exp: seconds() + 300 };
  const all = { iss: issuer, aud: AUDIENCE, sub: SUBJECT, jti: randomUUID(), ...times, ...claims };
  return new SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
}

let fixedKey: Promise<IssuerKey> | undefined;

/** An issuer whose keys are never fetched. */
export async function givenFixedIssuer() {
  fixedKey ??= makeIssuerKey();
  const key = await fixedKey;
  const issuer = `https://${randomUUID()}.example`;
  const jwks = JSON.stringify({ keys: [key.jwk] });
  const id = await insert('identity_issuers', { issuer, jwks: jwks as never });
  return {
    id,
    issuer,
    sign: (claims?: object, header?: object) => signToken(issuer, key, { ...claims }, { ...header }),
  };
}

export async function givenRule(issuer_id: number, state: Partial<NewRow<'identity_rules'>> = {}): Promise<number> {
  const user_id = state.user_id ?? (await givenServiceAccount()).id;
  const match = { audience: AUDIENCE, subject: SUBJECT, scopes: ['cards:read', 'cards:write'], lifetime_seconds: 900 };
  return insert('identity_rules', { name: 'A rule', issuer_id, user_id, ...match, ...state });
}

/** An issuer on loopback that publishes its keys. Tests change what it answers; `asked` are the paths that it was asked for. */
export async function givenServedIssuer() {
  const state = {
    keys: [await makeIssuerKey()],
    asked: [] as string[],
    discovery: {} as Record<string, unknown>,
    /** Answers instead, for a path that ends in this. */
    instead: {} as Record<string, (response: ServerResponse) => unknown>,
  };
  const server = createServer(({ url = '' }, response) => {
    state.asked.push(url);
    const instead = Object.entries(state.instead).find(([path]) => url.endsWith(path))?.[1];
    if (instead) return void instead(response);
    const document = url.endsWith('/jwks')
      ? { keys: state.keys.map(({ jwk }) => jwk) }
      : { issuer, jwks_uri: `${issuer}/jwks`, ...state.discovery };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(document));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const issuer = `http://${host}`;
  const sign = (claims?: object, header?: object) => signToken(issuer, state.keys[0]!, { ...claims }, { ...header });
  return { state, host, issuer, id: await insert('identity_issuers', { issuer }), sign };
}
