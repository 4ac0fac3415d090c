import { hash, randomBytes } from 'node:crypto';
import type { TestCaller } from './caller.ts';
import { insert, type TestUser } from './world.ts';

const random = () => randomBytes(32).toString('base64url');

type Start = { issuer?: string; purpose?: 'sign_in' | 'link' | 'prove'; loopback_port?: number };

/** Starts a sign-in as a browser does, and returns how to finish it with what the provider appended. */
export async function startSso(caller: TestCaller, { issuer = 'company', ...more }: Start = {}) {
  const verifier = random();
  const challenge = hash('sha256', verifier, 'base64url');
  const { url, state } = await caller.rpc.auth.startSso.mutate({ issuer, challenge, ...more });
  const finish = (callback: string | URL, others: object = {}) =>
    caller.rpc.auth.finishSso.mutate({
      ...{ state, verifier, callback: typeof callback === 'string' ? callback : callback.search.slice(1), ...others },
    });
  return { url: new URL(url), state, verifier, finish };
}

/** Status and reason of a refused call; `undefined` if it was not refused. */
export const refusal = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    ({ status, reason, message }) =>
      ({ status, reason, message }) as { status: number; reason: string; message: string },
  );

/** A sign-in of a user whose provider has sent its claims already: what finishes it, and the setting that it needs. */
export async function givenVerifiedFlow({ id: user_id }: TestUser) {
  const issuer = 'https://id.example';
  const [state, verifier, subject] = [random(), random(), random()];
  await insert('identities', { user_id, issuer, subject });
  await insert('sso_flows', {
    ...{ state_hash: hash('sha256', state), challenge: hash('sha256', verifier, 'base64url'), nonce: 'x' },
    ...{ issuer: 'company', purpose: 'sign_in', expires_at: new Date(Date.now() + 60_000) },
    claims: JSON.stringify({ sub: subject }) as never,
  });
  const SSO_ISSUERS = JSON.stringify([{ name: 'company', title: 'The company', issuer, client_id: 'deckhand' }]);
  return { SSO_ISSUERS, input: { state, verifier, callback: 'code=x' } };
}
