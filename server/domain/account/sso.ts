import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { sql } from 'kysely';
import { badRequest, forbidden, unauthorized } from '../../../shared/errors.ts';
import type { SsoFinish, SsoStart } from '../../../shared/sso.ts';
import { type Db, query } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import type { Row } from '../../database/tables.ts';
import { type IdentityProvider, SsoClaims } from '../../security/identityProvider.ts';
import type { SecretBox } from '../../security/secretBox.ts';
import { isOperator } from '../access/caller.ts';
import type { Context, SignedInContext, With } from '../access/context.ts';
import { isProven, proofRequired } from './proof.ts';

/** How long a person may take at the identity provider. */
const FLOW_MINUTES = 10;

/** Where a provider sends people back to. With several providers, each has an address of its own: so no answer is taken for another's. */
export const callbackOf = (providers: ReadonlyMap<string, unknown>, name: string) =>
  providers.size > 1 ? `${SSO_CALLBACK}/${name}` : SSO_CALLBACK;
export const SSO_CALLBACK = '/sso/callback';

export const listIssuers = ({ services: { identityProviders } }: With<'identityProviders'>) => ({
  issuers: [...identityProviders.values()].map(({ settings: { name, title } }) => ({ name, title })),
});

export function providerOf({ services: { identityProviders } }: With<'identityProviders'>, name: string) {
  const provider = identityProviders.get(name);
  if (!provider)
    throw badRequest('This service has no such issuer: auth.listIssuers names them.', 'sso_unknown_issuer');
  return provider;
}

/** Starts a sign-in at an identity provider. Only who has the verifier of the challenge can finish it. */
export async function startSso(context: Context, { issuer, purpose, challenge, loopback_port }: SsoStart) {
  const { user_id, session_id } = purpose === 'sign_in' ? NOBODY : sessionOf(context);
  if (purpose === 'link' && !(await isProven(context as SignedInContext))) throw proofRequired();
  const provider = providerOf(context, issuer);
  const state = randomBytes(32).toString('base64url');
  const [{ nonce, codeVerifier }] = secretsOf(context.services.secretBox, state);

  const url = await provider.authorizationUrl({
    redirect_uri: `${context.origin.serviceUrl}${callbackOf(context.services.identityProviders, issuer)}`,
    state,
    nonce,
    code_challenge: hash('sha256', codeVerifier, 'base64url'),
    code_challenge_method: 'S256',
    ...(purpose === 'prove' && { prompt: 'login', max_age: '0' }),
  });
  await query(
    context.db,
    sql`
      insert into sso_flows (state_hash, issuer, purpose, challenge, nonce, user_id, session_id, loopback_port, expires_at)
      values (${hash('sha256', state)}, ${issuer}, ${purpose}, ${challenge}, ${nonce}, ${user_id}, ${session_id}::uuid,
        ${loopback_port ?? null}, now() + make_interval(mins => ${sql.lit(FLOW_MINUTES)}))`,
  );
  return { url, state };
}

const NOBODY = { user_id: null, session_id: null };

function sessionOf({ caller }: Context) {
  if (!caller?.id)
    throw unauthorized('Sign in first, to link an identity or to prove that it is you.', 'not_signed_in');
  if (caller.key || isOperator(caller))
    throw forbidden('Only a person who is signed in can do this.', 'key_not_allowed');
  return { user_id: caller.id, session_id: caller.sessionId };
}

/** The nonce and the PKCE verifier are derived from the state, for each known secret: the database has neither of both. */
const secretsOf = (box: Pick<SecretBox, 'hashes'>, state: string) => {
  const verifiers = box.hashes(`sso code ${state}`);
  const all = box.hashes(`sso nonce ${state}`).map((nonce, at) => ({ nonce, codeVerifier: verifiers[at] ?? '' }));
  return all as [(typeof all)[number], ...typeof all];
};

export type Flow = Pick<Row<'sso_flows'>, 'purpose' | 'issuer' | 'user_id' | 'session_id' | 'created_at'>;

/** What the provider says of the person who signed in there. The code is exchanged once; the claims stay until the flow ends. */
export async function verifySso(
  context: Context,
  { state, callback, verifier }: SsoFinish,
): Promise<{ flow: Flow; provider: IdentityProvider; claims: SsoClaims }> {
  const { db } = context;
  const state_hash = hash('sha256', state);
  const flow = await db
    .selectFrom('sso_flows')
    .selectAll()
    .where('state_hash', '=', state_hash)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirstOrThrow(flowEnded);
  if (!isSame(flow.challenge, hash('sha256', verifier, 'base64url'))) throw flowEnded();
  const provider = providerOf(context, flow.issuer);
  if (flow.claims) return { flow, provider, claims: SsoClaims.parse(flow.claims) };

  const secrets = secretsOf(context.services.secretBox, state).find(({ nonce }) => nonce === flow.nonce);
  const claimed = await db
    .updateTable('sso_flows')
    .set({ exchanged_at: sql<Date>`now()` })
    .where('state_hash', '=', state_hash)
    .where('exchanged_at', 'is', null)
    .returning('state_hash')
    .executeTakeFirst();
  if (!claimed || !secrets) throw flowEnded();
  const url = new URL(`${context.origin.serviceUrl}${callbackOf(context.services.identityProviders, flow.issuer)}`);
  url.search = callback;
  try {
    const claims = await provider.exchange(url, { state, ...secrets });
    // With the user, whose erasure then finds what is known of them here.
    await query(
      db,
      sql`
        update sso_flows set claims = ${JSON.stringify(claims)}::jsonb, user_id = coalesce(user_id, (
          select user_id from identities where issuer = ${provider.settings.issuer} and subject = ${claims.sub}))
        where state_hash = ${state_hash}`,
    );
    return { flow, provider, claims };
  } catch (error) {
    await endFlow(db, state);
    throw error;
  }
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** One text for all, so that nobody learns which states exist. */
export const flowEnded = () =>
  badRequest(
    'This sign-in has expired, was finished already, or was started in another browser. Start it again.',
    'sso_expired',
  );

export const refused = (text: string) => forbidden(text, 'sso_refused');
export const DEACTIVATED = 'This account is deactivated. Ask a superadmin.';

/** Ends a sign-in. Of several calls at once, one gets true. */
export async function endFlow(db: Db, state: string): Promise<boolean> {
  const ended = await query(
    db,
    sql`delete from sso_flows where state_hash = ${hash('sha256', state)} returning 1 as one`,
  );
  return ended.length > 0;
}

/**
 * The port of the command that started this sign-in; undefined for a browser, and for unknown states. A sign-in whose answer comes to
 * the address of another provider ends: its code would be sent to the one that it was started at.
 */
export async function loopbackPortOf(
  db: Db,
  providers: ReadonlyMap<string, unknown>,
  state: string,
  address: string,
): Promise<number | undefined> {
  const [flow] = await query(
    db,
    sql<Pick<Row<'sso_flows'>, 'issuer' | 'loopback_port'>>`
      select issuer, loopback_port from sso_flows where state_hash = ${hash('sha256', state)} and expires_at > now()`,
  );
  if (!flow) return undefined;
  if (callbackOf(providers, flow.issuer) === address) return flow.loopback_port ?? undefined;
  await endFlow(db, state);
  return undefined;
}

export const SSO_REMOVAL: Removal = {
  table: 'sso_flows',
  due: (now) => sql`t.expires_at < ${now}`,
  by: 'expires_at',
};
