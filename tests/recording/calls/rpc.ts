import { type Call, callsOf, UNKNOWN } from '../call.ts';

const json = (input: object) => ({ json: input });

/** Some procedures of the same operations over RPC. */
export const rpc: Call[] = [
  ...callsOf('/trpc/auth.authenticate', [
    ['a user', 'nobody', json({ email: 'viewer@demo.test', password: 'demo-password' })],
    ['wrong password', 'nobody', json({ email: 'viewer@demo.test', password: 'wrong' })],
    ['no fields', 'nobody', json({})],
  ]),
  ...callsOf('/trpc/boards.list', [
    ['no input', 'viewer', {}],
    ['tool_key', 'viewer', json({ tool_key: 'seo' })],
    ['no token', 'nobody', {}],
    ['GET', 'viewer', undefined, { method: 'GET' }],
  ]),
  ...callsOf('/trpc/boards.get', [
    ['a board', 'viewer', json({ id: 2 })],
    ['unknown', 'viewer', json({ id: UNKNOWN })],
    ['a board of another project', 'viewer', json({ id: 4 })],
  ]),
  ...callsOf('/trpc/cards.create', [
    ['a card', 'member', json({ title: 'Over RPC', group_id: 8, due_date: '2099-01-31' })],
    ['no fields', 'member', json({})],
    ['role of viewer', 'viewer', json({ title: 'x' })],
  ]),
  ...callsOf('/trpc/cards.delete', [['a card', 'member', json({ id: 21 })]]),
  ...callsOf('/trpc/groups.update', [['a group', 'member', json({ id: 8, color: 'blue' })]]),
  ...callsOf('/trpc/comments.create', [['a comment', 'member', json({ card_id: 20, comment: 'Over RPC' })]]),
  ...callsOf('/trpc/tags.create', [['a tag', 'member', json({ name: 'Over RPC' })]]),
  ...callsOf('/trpc/tour.dismissAll', [['no input', 'member', {}]]),
  ...callsOf('/trpc/masterBoards.list', [
    ['no input', 'admin', {}],
    ['role of owner', 'owner', {}],
  ]),
  ...callsOf('/trpc/masterCards.push', [['a card', 'admin', json({ card_id: 1 })]]),
  ...callsOf('/trpc/themes.deprecateVersion', [
    ['a version', 'owner', json({ version_id: 1 })],
    ['a pending version', 'owner', json({ version_id: 2 })],
  ]),
  ...callsOf('/trpc/subscriptions.upgradeTrial', [
    ['a trial', 'owner', json({ product: 'websites', plan: 'pro', period: 'month' })],
  ]),
  ...callsOf('/trpc/boards.list,boards.get', [
    ['a batch', 'viewer', { 0: json({ tool_key: 'nothing' }), 1: json({ id: UNKNOWN }) }, { tail: '?batch=1' }],
  ]),
  ...callsOf('/trpc/nothing', [['unknown procedure', 'viewer', {}]]),
];

/** The last calls of their caller. */
export const signOuts: Call[] = [
  ...callsOf('/trpc/account.signOut', [['a user', 'otp', {}]]),
  ...callsOf('/trpc/boards.list', [['a token that was signed out', 'otp', {}]]),
  ...callsOf('/api/services/operations/v1/operations/boards/list', [['a token that was signed out', 'otp', {}]]),
  ...callsOf('/api/services/platforms/v1/subscriptions/upgrade-trial', [['a token that was signed out', 'otp', {}]]),
];
