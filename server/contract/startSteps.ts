import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { codeOf } from '../security/secondFactor.ts';
import { SURFACES, type Surface } from './judge.ts';
import { OWN, type Rows, type Step } from './writeSteps.ts';

/**
 * Steps that make the start states of further operations: users, keys, releases, webhooks, themes. Each surface has its own; the
 * answers differ, so they are checked one by one.
 */

const PASSWORD = { password: '$password' };
const SIGN_IN: Step = {
  call: 'auth.authenticate',
  as: null,
  input: { email: '$email', ...PASSWORD },
  keeps: { token: 'token' },
};
const USER = { id: '$user_id' };
const MEMBER = { project_id: '$project_id', role: 'member' };
const invite = (title: string): Step => ({
  call: 'members.invite',
  title,
  input: { ...MEMBER, email: '$email' },
  keeps: { invitation_id: 'invitation.id' },
});
const INVITATION = { id: '$invitation_id' };
/** A code of the next time step is valid, too; each only once. */
const code = async ({ totp }: Rows, steps: number) => ({ code: await codeOf(totp as string, steps) });
const KEY = { id: '$key_id' };

/** A user who signs in, and is erased. */
const USER_STEPS: Step[] = [
  { call: 'users.create', input: { name: OWN, kind: 'person', email: '$email', ...PASSWORD }, creates: 'user_id' },
  { call: 'users.update', input: { ...USER, language: 'en' } },
  SIGN_IN,
  { call: 'account.prove', as: 'token', input: PASSWORD },
  invite('to accept'),
  { call: 'account.acceptInvitation', as: 'token', input: INVITATION },
  { call: 'members.leave', as: 'token', input: { project_id: '$project_id' } },
  invite('to decline'),
  { call: 'account.declineInvitation', as: 'token', input: INVITATION },
  invite('to withdraw'),
  { call: 'members.withdrawInvitation', input: INVITATION },
  { call: 'members.add', input: { ...MEMBER, email: '$email' } },
  { call: 'members.remove', input: { project_id: '$project_id', user_id: '$user_id' } },
  { call: 'members.add', title: 'again', input: { ...MEMBER, email: '$email' } },
  { call: 'members.set', input: { ...MEMBER, user_id: '$user_id' } },
  { call: 'account.setDefaultProject', as: 'token', input: { project_id: '$project_id' } },
  { call: 'tour.dismissAll', as: 'token', input: {} },
  { call: 'tour.restart', as: 'token', input: {} },
  { call: 'account.changeAddress', as: 'token', input: { email: '$other_email' } },
  { call: 'account.startExport', as: 'token', input: {} },
  { call: 'account.getExport', as: 'token', input: {} },
  {
    call: 'keys.create',
    as: 'token',
    input: { name: OWN, project_id: '$project_id', scopes: ['cards:read'], expires_at: '$tomorrow' },
    keeps: { key: 'secret', key_id: 'key.id' },
  },
  { call: 'keys.self', as: 'key', input: {} },
  { call: 'keys.rotateSelf', as: 'key', input: {}, keeps: { key: 'secret' } },
  { call: 'keys.rotate', as: 'token', input: { ...KEY, previous_valid_hours: 0 } },
  { call: 'keys.revoke', as: 'token', input: KEY },
  { call: 'account.startSecondFactor', as: 'token', input: PASSWORD, keeps: { totp: 'secret' } },
  {
    call: 'account.confirmSecondFactor',
    as: 'token',
    input: (rows) => code(rows, 0),
    keeps: { recovery_code: 'recovery_codes.0' },
  },
  {
    call: 'account.renewRecoveryCodes',
    as: 'token',
    input: async (rows) => ({ ...PASSWORD, ...(await code(rows, 1)) }),
    keeps: { recovery_code: 'recovery_codes.0' },
  },
  {
    call: 'account.dropSecondFactor',
    as: 'token',
    input: { ...PASSWORD, code: '$recovery_code', is_recovery: true },
  },
  { call: 'users.dropSecondFactor', input: USER },
  { call: 'account.requestPasswordReset', as: null, input: { email: '$email' } },
  { call: 'account.requestConfirmation', as: 'token', input: {} },
  {
    call: 'account.changePassword',
    as: 'token',
    input: { ...PASSWORD, new_password: '$new_password' },
    keeps: { token: 'token' },
  },
  { call: 'account.signOut', as: 'token', input: {} },
  { call: 'users.signOut', input: USER },
  { call: 'users.deactivate', input: USER },
  { call: 'users.activate', input: USER },
  { ...SIGN_IN, title: 'again', input: { email: '$email', password: '$new_password' } },
  { call: 'account.signOutEverywhere', as: 'token', input: {} },
  { ...SIGN_IN, title: 'to be erased', input: { email: '$email', password: '$new_password' } },
  { call: 'account.erase', as: 'token', input: {} },
];

const RULE = { audience: 'https://deckhand.invalid', subject: OWN };

async function identityToken({ issuer, signing_key }: Rows): Promise<string> {
  return new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid: 'own' })
    .setIssuer(String(issuer))
    .setAudience(RULE.audience)
    .setSubject(RULE.subject)
    .setIssuedAt()
    .setExpirationTime('2 minutes')
    .sign(signing_key as CryptoKey);
}

/** A service account with a rule, whose tokens are signed with keys of this run. */
const SERVICE_STEPS: Step[] = [
  { call: 'users.create', title: 'for a service', input: { name: OWN, kind: 'service' }, creates: 'service_id' },
  { call: 'members.set', title: 'of a service', input: { ...MEMBER, user_id: '$service_id' } },
  {
    call: 'identityIssuers.create',
    input: async (rows) => {
      const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
      rows.signing_key = privateKey;
      const key = { ...(await exportJWK(publicKey)), kid: 'own', alg: 'ES256', use: 'sig' };
      return { issuer: '$issuer', jwks: JSON.stringify({ keys: [key] }) };
    },
    creates: 'issuer_id',
  },
  {
    call: 'identityRules.create',
    input: {
      ...{ ...RULE, name: OWN, issuer_id: '$issuer_id', user_id: '$service_id', project_id: '$project_id' },
      ...{ claims: [], scopes: ['cards:read'], lifetime_seconds: 60 },
    },
    creates: 'rule_id',
  },
  { call: 'identityRules.update', input: { id: '$rule_id', lifetime_seconds: 90 } },
  {
    call: 'auth.exchange',
    as: null,
    input: async (rows) => ({ token: await identityToken(rows), rule_id: '$rule_id' }),
  },
  { call: 'identityRules.delete', input: { id: '$rule_id' } },
  { call: 'identityIssuers.delete', input: { id: '$issuer_id' } },
  { call: 'users.erase', input: { id: '$service_id' } },
];

const toolOf = (surface: Surface) => `deckhand-contract-check-${surface.toLowerCase()}`;

const BOARD = { board_id: '$board_id' };
const ROLLOUT = { id: '$rollout_id' };
const COPY = { board_id: '$copy_id' };
/** Waits in its first stage, so that it can be paused. */
const STAGES = [{ projects: ['$project_id'], soak_minutes: 60 }, { percent: 100 }];
const plan = (title: string): Step => ({
  call: 'rollouts.plan',
  title,
  input: { release_id: '$release_id', stages: STAGES },
  creates: 'rollout_id',
});
const publish = (title: string): Step => ({
  call: 'releases.publish',
  title,
  input: BOARD,
  keeps: { release_id: 'release.id' },
});

/** A template that reaches the own project alone, by a tool that only this one has. */
const RELEASE_STEPS: Step[] = [
  { call: 'platforms.update', input: { id: '$platform_id', name: OWN } },
  { call: 'projects.update', input: { id: '$project_id', tools: SURFACES.map(toolOf) } },
  {
    call: 'masterBoards.create',
    title: 'for a release',
    input: { title: OWN, tool_key: '$tool' },
    creates: 'board_id',
  },
  { call: 'masterBoards.reorder', input: { boards: [{ id: '$board_id', position: 1_000_000_000 }] } },
  { call: 'masterGroups.create', title: 'for a release', input: { ...BOARD, title: 'First' }, creates: 'group_id' },
  {
    call: 'masterCards.create',
    title: 'for a release',
    input: { group_id: '$group_id', title: 'Say hello' },
    creates: 'card_id',
  },
  { call: 'masterBoards.sync', input: BOARD },
  { call: 'masterBoards.push', input: BOARD },
  { call: 'masterGroups.push', input: { group_id: '$group_id' } },
  { call: 'masterCards.push', input: { card_id: '$card_id' } },
  { call: 'templateRuns.list', needs: 'board_id', input: { limit: 1 }, keeps: { run_id: 'runs.0.id' } },
  { call: 'templateRuns.get', input: { id: '$run_id' } },
  { call: 'templateRuns.report', input: { id: '$run_id' } },
  {
    call: 'boards.list',
    title: 'of a copy',
    needs: 'board_id',
    input: { tool_key: '$tool' },
    keeps: { copy_id: 'boards.-1.id' },
  },
  { call: 'cards.list', title: 'of a copy', input: COPY, keeps: { card_copy_id: 'cards.-1.id' } },
  { call: 'templates.reset', input: { noun: 'card', id: '$card_copy_id' } },
  { call: 'masterCards.update', title: 'for a release', input: { id: '$card_id', title: 'Say welcome' } },
  publish('to abort'),
  plan('to abort'),
  { call: 'rollouts.get', input: ROLLOUT },
  { call: 'rollouts.abort', input: ROLLOUT },
  { call: 'templates.hold', input: COPY },
  plan('to roll back'),
  { call: 'rollouts.start', input: ROLLOUT },
  { call: 'rollouts.get', title: 'while it waits', input: ROLLOUT, keeps: { waits: 'rollout.is_soaking' } },
  { call: 'rollouts.report', input: ROLLOUT },
  { call: 'rollouts.preview', input: { ...ROLLOUT, project_id: '$project_id' } },
  { call: 'rollouts.pause', input: ROLLOUT },
  { call: 'rollouts.resume', input: ROLLOUT },
  { call: 'rollouts.pause', title: 'to retry', input: ROLLOUT },
  { call: 'templates.unhold', input: COPY },
  { call: 'rollouts.retryFailed', input: ROLLOUT },
  { call: 'rollouts.get', title: 'while it waits again', input: ROLLOUT, keeps: { waits: 'rollout.is_soaking' } },
  { call: 'rollouts.advance', input: ROLLOUT },
  { call: 'rollouts.get', title: 'when it is done', input: ROLLOUT, keeps: { ended: 'rollout.finished_at' } },
  { call: 'rollouts.rollback', input: ROLLOUT },
  { call: 'templates.unpin', input: COPY },
  { call: 'templateFiles.export', title: 'to import', input: BOARD, keeps: { template: 'template' } },
  { call: 'templateFiles.import', input: { template: '$template' } },
  { call: 'masterCards.delete', title: 'to restore', input: { id: '$card_id' } },
  { call: 'masterCards.restore', input: { id: '$card_id' } },
];

const PLAN = { product: '$tool', plan: 'free', period: 'month' };
const VERSION = { version_id: '$version_id' };
const submit = (version: string): Step => ({
  call: 'themes.submitVersion',
  title: version,
  input: { theme_id: '$theme_id', version },
  creates: 'version_id',
});

/** On the own platform. */
const PLATFORM_STEPS: Step[] = [
  { call: 'plans.set', input: { ...PLAN, price_cents: 0, is_active: true } },
  { call: 'subscriptions.setTrial', input: { platform_id: '$platform_id', product: '$tool', days: 1 } },
  { call: 'subscriptions.upgradeTrial', input: PLAN },
  { call: 'plans.set', title: 'to withdraw it', input: { ...PLAN, price_cents: 0, is_active: false } },
  { call: 'themes.create', input: { platform_id: '$platform_id', name: OWN }, creates: 'theme_id' },
  submit('1.0.0'),
  { call: 'themes.rejectVersion', input: VERSION },
  submit('1.0.1'),
  { call: 'themes.approveVersion', input: VERSION },
  { call: 'themes.publishVersion', input: VERSION },
  { call: 'themes.deprecateVersion', input: VERSION },
  { call: 'themes.undoDeprecation', input: VERSION },
  { call: 'themes.deprecateWithNotice', input: VERSION },
];

const WEBHOOK = { id: '$webhook_id' };
const SENT = { ...WEBHOOK, event_id: '$event_id' };

/** Its address leads nowhere. */
const WEBHOOK_STEPS: Step[] = [
  { call: 'events.list', title: 'of now', input: { after: 'latest' }, keeps: { cursor: 'cursor' } },
  {
    call: 'webhooks.create',
    input: { project_id: '$project_id', url: 'https://deckhand.invalid/', types: ['tag.created'] },
    creates: 'webhook_id',
  },
  { call: 'webhooks.update', input: { ...WEBHOOK, types: ['tag.created', 'tag.restored'] } },
  { call: 'webhooks.rotateSecret', input: WEBHOOK },
  { call: 'webhooks.sendTest', input: WEBHOOK },
  { call: 'tags.create', title: 'for a webhook', input: { name: OWN }, creates: 'tag_id' },
  {
    call: 'events.list',
    title: 'for a webhook',
    needs: 'tag_id',
    input: { after: '$cursor', types: ['tag.created'] },
    keeps: { event_id: 'events.0.id' },
  },
  { call: 'webhooks.resend', input: SENT },
  { call: 'webhooks.redeliver', input: SENT },
  { call: 'webhooks.skip', input: SENT },
  { call: 'webhooks.deliveries', input: WEBHOOK },
  { call: 'webhooks.delete', input: WEBHOOK },
];

/** Users last: they can be erased only with fresh proof, which the steps before them need, too. */
export const START_STEPS = [RELEASE_STEPS, PLATFORM_STEPS, WEBHOOK_STEPS, USER_STEPS, SERVICE_STEPS];

/** What the start states of a surface begin with. */
export function startRows(surface: Surface): Rows {
  const own = randomUUID();
  return {
    email: `contract-${own}@deckhand.invalid`,
    other_email: `contract-${own}-2@deckhand.invalid`,
    issuer: `https://${own}.deckhand.invalid`,
    password: randomUUID(),
    new_password: randomUUID(),
    tomorrow: new Date(Date.now() + 86_400_000).toISOString(),
    tool: toolOf(surface),
  };
}

/** Why some operations have no start state: they need what this service can't be asked for. */
export const OUTSIDE: Record<string, string> = {
  ...Object.fromEntries(
    ['auth.startSso', 'auth.finishSso', 'account.unlinkIdentity'].map((name) => [name, 'needs an identity provider']),
  ),
  ...Object.fromEntries(
    ['account.resetPassword', 'account.confirmAddress', 'account.showInvitation', 'account.signUp'].map((name) => [
      name,
      'needs the secret of a mail',
    ]),
  ),
  'mails.retry': 'needs a mail that could not be sent',
};
