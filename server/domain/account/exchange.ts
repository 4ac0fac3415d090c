import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { badRequest, unauthorized } from '../../../shared/errors.ts';
import type { Exchange } from '../../../shared/identityRule.ts';
import { type Db, transact } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { countRows, insertRow } from '../../database/rows.ts';
import { daysBefore } from '../../database/timestamp.ts';
import { hashKeySecret, makeKeySecret } from '../../security/apiKeys.ts';
import { type IdentityClaims, readIssuer, TokenRefused, verifyIdentityToken } from '../../security/identityToken.ts';
import { KeysUnreadable } from '../../security/keySets.ts';
import type { Context } from '../access/context.ts';
import { writeEvents } from '../event/event.ts';
import { countFailure, mustBeAllowed } from './attempt.ts';

/** Valid credentials of one rule. */
const MOST_CREDENTIALS = 1000;

/** Turns a token of an issuer into a credential of the service account of a rule, for a short time. */
export async function exchangeToken(context: Context, sent: Exchange) {
  try {
    const issuer = await findIssuer(context.db, sent.token);
    const claims = await verifyIdentityToken(sent.token, issuer.issuer, await context.services.keySets.keysOf(issuer));
    return await transact(context.db, async (db) => {
      const rule = await chooseRule(db, issuer.id, claims, sent.rule_id);
      if (rule.single_use) await useOnce(db, rule.id, sent.token, claims.exp);
      return createCredential({ ...context, db }, rule);
    });
  } catch (error) {
    if (error instanceof TokenRefused) throw await refuse(context, sent.token, error);
    if (!(error instanceof KeysUnreadable)) throw error;
    context.log.warn(
      { reason: error.message, cause: error.cause },
      'The keys of an identity issuer could not be read.',
    );
    throw unauthorized(
      `The keys of the token's issuer could not be read: ${error.message} Try again later.`,
      'identity_keys_unreadable',
    );
  }
}

/** Unknown issuers cost a look-up, and no request to them. */
async function findIssuer(db: Db, token: string) {
  const { iss } = await readIssuer(token);
  const issuer = await db
    .selectFrom('identity_issuers')
    .select(['id', 'issuer', 'jwks_uri', 'jwks'])
    .where('issuer', '=', iss)
    .executeTakeFirst();
  if (!issuer) throw new TokenRefused('Its issuer (iss) is not known here: a superadmin adds it.', 'unknown issuer');
  return issuer;
}

type Rule = Awaited<ReturnType<typeof rulesFor>>[number];

const rulesFor = (db: Db, issuerId: number, subject: string) =>
  db
    .selectFrom('identity_rules as r')
    .innerJoin('users as u', 'u.id', 'r.user_id')
    .selectAll('r')
    .select(['u.name as user_name', 'u.is_active as is_user_active'])
    .where('r.issuer_id', '=', issuerId)
    .where('r.subject', '=', subject)
    .orderBy('r.id')
    // Until the commit, the rule does not change, and its credentials can be counted.
    .forNoKeyUpdate('r')
    .execute();

/**
 * The rule that accepts these claims. Anybody may have a token of a public issuer: a refusal says what is in the token, and not
 * which rules there are.
 */
async function chooseRule(db: Db, issuerId: number, claims: IdentityClaims, ruleId?: number | null): Promise<Rule> {
  const audiences = [claims.aud ?? []].flat();
  const noRule = (detail: string) => new TokenRefused(noRuleText(audiences, claims.sub), detail);

  const named = (await rulesFor(db, issuerId, claims.sub)).filter(({ id }) => ruleId == null || id === ruleId);
  if (named.length === 0) throw noRule('no rule with its subject');
  const forUs = named.filter(({ audience }) => audiences.includes(audience));
  if (forUs.length === 0) throw noRule(`another audience than rule ${idsOf(named)}`);
  const accepting = forUs.filter((rule) => differingClaim(rule, claims) === undefined);
  if (accepting.length === 0)
    throw noRule(`another claim ${forUs.map((rule) => differingClaim(rule, claims))} than rule ${idsOf(forUs)}`);
  const active = accepting.filter(({ is_active }) => is_active);
  if (active.length === 0) throw noRule(`rule ${idsOf(accepting)} is not active`);

  const [rule, ...others] = active;
  if (!rule || others.length > 0)
    throw new TokenRefused(`Several rules accept it (${idsOf(active)}): name one of them as rule_id.`, 'several rules');
  if (!rule.is_user_active)
    throw new TokenRefused(`The service account of rule ${rule.id} is deactivated.`, 'deactivated service account');
  return rule;
}

const idsOf = (rules: Rule[]) => rules.map(({ id }) => id).join(', ');

/** The first claim that a token lacks, or has with another value or type. */
const differingClaim = ({ claims: wanted }: Rule, claims: IdentityClaims): string | undefined =>
  wanted.find(({ name, value }) => !Object.hasOwn(claims, name) || claims[name] !== value)?.name;

const LONGEST_SHOWN = 200;
const shown = (text: string) =>
  text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN).toWellFormed()}…` : text;

const noRuleText = (audiences: unknown[], subject: string) =>
  `No rule accepts it. Its aud is ${shown(JSON.stringify(audiences))}, its sub ${shown(JSON.stringify(subject))}: compare them, and its other claims, with the rule.`;

/** By what is signed: a signature can be written in several ways. */
async function useOnce(db: Db, rule_id: number, token: string, exp: number): Promise<void> {
  const token_hash = hash('sha256', token.slice(0, token.lastIndexOf('.')));
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('identity_tokens_used')
    .values({ rule_id, token_hash, expires_at: new Date(exp * 1000) })
    .onConflict((same) => same.doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows === 0n)
    throw new TokenRefused(
      'It was exchanged before, and its rule accepts each token once: get another one.',
      'used before',
    );
}

async function createCredential(context: Context, rule: Rule) {
  const { db } = context;
  const { id: rule_id, user_id, project_id, name, scopes, lifetime_seconds } = rule;
  const valid = await countRows(db, 'api_keys', sql`rule_id = ${rule_id} and expires_at > now()`);
  if (valid >= MOST_CREDENTIALS)
    throw badRequest(
      `A rule has at most ${MOST_CREDENTIALS} valid credentials. Use them again until they end, or shorten lifetime_seconds.`,
      'place_full',
    );
  const secret = makeKeySecret();
  const row = {
    ...{ user_id, project_id, rule_id, name, scopes, names_grants: true, secret_hash: hashKeySecret(secret) },
    expires_at: sql<Date>`now() + make_interval(secs => ${lifetime_seconds})`,
  };
  const key = await insertRow(db, 'api_keys', row, ['id', 'expires_at']);
  // A token that is sent along says nothing about who exchanges this one.
  await writeEvents({ ...context, caller: undefined }, [
    { type: 'key.exchanged', project_id, subject_id: key.id, user_id, data: { user_id, rule_id } },
  ]);
  return {
    ...{ token: secret, expires_at: key.expires_at as Date, expires_in_seconds: lifetime_seconds },
    ...{ user: { id: user_id, name: rule.user_name }, scopes, project_id, rule_id },
  };
}

/** The 401 of a token, or the 429 after many. Only refused tokens count: others can't keep a right one from being exchanged. */
async function refuse(context: Context, token: string, { message, detail }: TokenRefused): Promise<Error> {
  const counted = { ...context, services: { attemptLimit: context.services.exchangeLimit } };
  const sender = await readIssuer(token).then(
    ({ iss, sub }) => `${iss} ${sub}`,
    () => 'unreadable token',
  );
  await mustBeAllowed(counted, sender);
  await countFailure(counted, { id: null, email: sender }, `identity token: ${detail}`);
  return tokenRefused(message);
}

/** Credentials that ended a day ago, and tokens that would be refused anyway by now. */
export const IDENTITY_REMOVALS: Removal[] = [
  {
    table: 'api_keys',
    due: (now) => sql`t.rule_id is not null and t.expires_at < ${daysBefore(now, 1)}`,
    by: 'expires_at',
  },
  { table: 'identity_tokens_used', due: (now) => sql`t.expires_at < ${daysBefore(now, 1)}`, by: 'expires_at' },
];

export const tokenRefused = (problem: string) =>
  unauthorized(`The token was refused. ${problem}`, 'identity_token_invalid');
