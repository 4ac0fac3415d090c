import { sql, type UpdateObject } from 'kysely';
import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import {
  type EndedCredentials,
  IdentityIssuer,
  IdentityRule,
  type IssuerCreate,
  type RuleCreate,
  type RuleUpdate,
} from '../../../shared/identityRule.ts';
import type { Page } from '../../../shared/paging.ts';
import { readPage } from '../../database/page.ts';
import { type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { countRows, insertRow, rowById, updateRow } from '../../database/rows.ts';
import type { Tables } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import { readKeySet } from '../../security/keySets.ts';
import { addressProblem } from '../../security/outgoing.ts';
import type { SignedInContext } from '../access/context.ts';
import { differingFields, writeEvents } from '../event/event.ts';
import { pauseWithoutRight } from '../event/webhookRight.ts';
import { mustFit } from './key.ts';

const MOST_ISSUERS = 100;
/** Of one issuer. */
const MOST_RULES = 1000;

const ISSUER_COLUMNS = IdentityIssuer.keyof().options.map((field) =>
  field === 'has_jwks' ? sql<boolean>`jwks is not null`.as(field) : field,
);
const RULE_COLUMNS = IdentityRule.keyof().options;

const unknownIssuer = () => notFound('There is no such identity issuer.');
const unknownRule = () => notFound('There is no such identity rule.');

export async function createIssuer(context: SignedInContext, { issuer, jwks_uri, jwks }: IssuerCreate) {
  if (!/^https?:\/\/[^\s?#@]+$/.test(issuer) || !URL.canParse(issuer))
    throw invalid({
      issuer: 'must be an address such as https://token.actions.githubusercontent.com, without ? and #',
    });
  if (jwks_uri != null && jwks != null) throw invalid({ jwks_uri: "can't be combined with jwks" });
  const problem = jwks == null ? addressProblem(jwks_uri ?? issuer, context.services.identityAllowedHosts) : undefined;
  if (problem) throw invalid({ [jwks_uri == null ? 'issuer' : 'jwks_uri']: problem });
  const keys = jwks == null ? null : await keysIn(jwks);
  return transact(context.db, async (db) => {
    if ((await countRows(db, 'identity_issuers')) >= MOST_ISSUERS)
      throw full(`There are at most ${MOST_ISSUERS} issuers.`);
    const row = { issuer, jwks_uri, jwks: keys && inJson(keys), created_by: context.caller.id };
    const created = await mapConstraintErrors(insertRow(db, 'identity_issuers', row, ISSUER_COLUMNS), {
      identity_issuers_issuer_unique: () => invalid({ issuer: 'is there already' }, 'already_exists'),
    });
    await writeEvents({ ...context, db }, [{ type: 'identity_issuer.created', subject_id: created.id }]);
    return { issuer: created };
  });
}

const full = (limit: string) => badRequest(`${limit} Delete some of them first.`, 'place_full');

/** The public keys of a JSON text. */
async function keysIn(text: string) {
  try {
    return await readKeySet(text);
  } catch (error) {
    throw invalid({ jwks: (error as Error).message });
  }
}

export const listIssuers = ({ db }: SignedInContext, page: Page) =>
  readPage('issuers', db.selectFrom('identity_issuers').select(ISSUER_COLUMNS), page);

/** Deletes an issuer with its rules, and ends their credentials. */
export async function deleteIssuer(context: SignedInContext, { id }: { id: number }): Promise<EndedCredentials> {
  return transact(context.db, async (db) => {
    await rowById(db, 'identity_issuers', id, ['id'], { lock: 'update', missing: unknownIssuer });
    const rules = await db.selectFrom('identity_rules').select('id').where('issuer_id', '=', id).forUpdate().execute();
    const ended = await endCredentials({ ...context, db }, rules);
    await db.deleteFrom('identity_issuers').where('id', '=', id).execute();
    await writeEvents({ ...context, db }, [
      { type: 'identity_issuer.deleted', subject_id: id, data: countOf(ended, rules.length) },
    ]);
    return ended;
  });
}

export async function createRule(context: SignedInContext, sent: RuleCreate) {
  const { issuer_id, name, audience, subject, claims, user_id, scopes, project_id, lifetime_seconds } = sent;
  await mustBeService(context.db, user_id);
  await mustFit(context.db, user_id, { scopes, project_id });
  return transact(context.db, async (db) => {
    const missing = () => invalid({ issuer_id: 'does not exist' }, 'unknown_reference');
    // One at a time for each issuer, so that the count is right.
    await rowById(db, 'identity_issuers', issuer_id, ['id'], { lock: 'no key update', missing });
    const rules = await countRows(db, 'identity_rules', sql`issuer_id = ${issuer_id}`);
    if (rules >= MOST_RULES) throw full(`An issuer has at most ${MOST_RULES} rules.`);
    const row = {
      ...{ issuer_id, name, audience, subject, user_id, project_id, lifetime_seconds },
      ...{ claims: inJson(claims), scopes: distinct(scopes), single_use: sent.single_use ?? false },
      created_by: context.caller.id,
    };
    const rule = await insertRow(db, 'identity_rules', row, RULE_COLUMNS);
    await writeEvents({ ...context, db }, [{ type: 'identity_rule.created', subject_id: rule.id, data: { user_id } }]);
    return { rule };
  });
}

const inJson = (value: unknown) => sql<never>`${JSON.stringify(value)}::jsonb`;
const distinct = (scopes: string[]) => [...new Set(scopes)].sort();

async function mustBeService(db: Db, user_id: number): Promise<void> {
  const user = await db.selectFrom('users').select('kind').where('id', '=', user_id).executeTakeFirst();
  if (user?.kind !== 'service') throw invalid({ user_id: 'is not a service account' }, 'unknown_reference');
}

export const listRules = ({ db }: SignedInContext, page: Page) =>
  readPage('rules', db.selectFrom('identity_rules').select(RULE_COLUMNS), page);

/** Changes a rule. Unless only its name changes, its credentials end: whoever may still exchange gets another one. */
export async function updateRule(
  context: SignedInContext,
  { id, password, code, is_recovery, scopes, claims, project_id, ...others }: RuleUpdate,
) {
  const sent = Object.entries(others).filter(([, value]) => value != null);
  const changes: UpdateObject<Tables, 'identity_rules'> = {
    ...Object.fromEntries(sent),
    project_id,
    ...(scopes && { scopes: distinct(scopes) }),
    ...(claims && { claims: inJson(claims) }),
  };
  return transact(context.db, async (db) => {
    const before = await rowById(db, 'identity_rules', id, RULE_COLUMNS, { lock: 'update', missing: unknownRule });
    if (others.user_id != null) await mustBeService(db, others.user_id);
    const rule = await updateRow(db, 'identity_rules', id, { ...changes, updated_at: NOW }, RULE_COLUMNS);
    const fields = differingFields(before, rule);
    if (['user_id', 'scopes', 'project_id'].some((field) => fields.includes(field)))
      await mustFit(db, rule.user_id, rule);
    const isSame = fields.every((field) => field === 'name');
    const ended = isSame ? NOTHING_ENDED : await endCredentials({ ...context, db }, [{ id }]);
    if (fields.length > 0)
      await writeEvents({ ...context, db }, [
        { type: 'identity_rule.updated', subject_id: id, data: { fields, ...countOf(ended) } },
      ]);
    return { rule, ...ended };
  });
}

/** Deletes a rule, and ends its credentials. */
export async function deleteRule(context: SignedInContext, { id }: { id: number }): Promise<EndedCredentials> {
  return transact(context.db, async (db) => {
    await rowById(db, 'identity_rules', id, ['id'], { lock: 'update', missing: unknownRule });
    const ended = await endCredentials({ ...context, db }, [{ id }]);
    await db.deleteFrom('identity_rules').where('id', '=', id).execute();
    await writeEvents({ ...context, db }, [{ type: 'identity_rule.deleted', subject_id: id, data: countOf(ended) }]);
    return ended;
  });
}

/** Rows that an event does not name. */
const countOf = ({ credentials_ended }: EndedCredentials, rules = 0) => {
  const count = credentials_ended + rules;
  return count > 0 ? { count } : {};
};

const NOTHING_ENDED: EndedCredentials = { credentials_ended: 0, paused_webhooks: [] };

/** Ends the credentials of locked rules, and pauses webhooks that were created with them. */
async function endCredentials(context: SignedInContext, rules: { id: number }[]): Promise<EndedCredentials> {
  if (rules.length === 0) return NOTHING_ENDED;
  const ids = rules.map(({ id }) => id);
  const ended = await context.db
    .updateTable('api_keys')
    .set({ revoked_at: NOW, updated_at: NOW })
    .where('rule_id', 'in', ids)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', NOW)
    .returning('id')
    .execute();
  if (ended.length === 0) return NOTHING_ENDED;
  const keys = ended.map(({ id }) => id);
  const paused_webhooks = await pauseWithoutRight(context, sql`w.key_id = any(${keys}::int[])`);
  return { credentials_ended: ended.length, paused_webhooks };
}
