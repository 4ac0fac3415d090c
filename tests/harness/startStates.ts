import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Procedure } from '../../server/api/procedures.ts';
import type { Given } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import type { Access } from '../../server/domain/access/access.ts';
import { feedComplete } from './events.ts';
import { givenFixedIssuer, givenRule } from './issuer.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenInvitation,
  givenKey,
  givenLink,
  givenMasterBoard,
  givenMember,
  givenProduct,
  givenProject,
  givenServiceAccount,
  givenTag,
  givenTheme,
  givenThemeVersion,
  givenTrial,
  givenUser,
  givenWebhook,
  insert,
  NOWHERE,
  PASSWORD,
  type TestProject,
  type TestUser,
  testDb,
  type World,
} from './world.ts';

/** The project and author of new rows; earlier rows become the parents of later ones. */
type Place = {
  project: TestProject;
  author: TestUser;
  board?: number;
  card?: number;
  template?: Template;
  release?: ReturnType<typeof givenReleased>;
};
type Template = Record<'board' | 'group' | 'card' | 'copied', number>;

/** A row that an input refers to. */
type Target = {
  make: (place: Place, state: object) => Promise<number | string>;
  /** Its owner. With `nobody`, every caller with access may use it, with `author` only they; otherwise superadmins may, too. */
  owner: 'project' | 'platform' | 'superadmins' | 'author' | 'nobody';
  isDeletable: boolean;
  /** The status for callers of another project, superadmins too, if it is not 403. */
  foreign?: 404;
};

type Make = Target['make'];
const inProject = (make: Make): Target => ({ make, owner: 'project', isDeletable: true });
/** Found in the project of the call alone. */
const foundInProject = (make: Make): Target => ({ make, owner: 'project', isDeletable: false, foreign: 404 });
const inPlatform = (make: Make): Target => ({ make, owner: 'platform', isDeletable: false });
const template = (make: Make): Target => ({ make, owner: 'nobody', isDeletable: true });
const provided = (make: Make): Target => ({ make, owner: 'nobody', isDeletable: false });

/** With a tour card and another in its group, and a tag. */
const board = inProject(async ({ project }, state) => {
  const id = await givenBoard(project, state);
  const group_id = await givenGroup(project, id);
  await givenCard(project, { group_id });
  await givenCard(project, { group_id, tour_key: 'welcome' });
  await givenTag(project);
  return id;
});
const group = inProject(async (place, state) => {
  place.board ??= await givenBoard(place.project);
  return givenGroup(place.project, place.board, state);
});
const card = inProject(async (place, state) => (place.card = await givenCard(place.project, state)));
const comment = inProject(async ({ project, author, card }, state) =>
  givenComment(project, card ?? (await givenCard(project)), author, state),
);
const tag = inProject(({ project }, state) => givenTag(project, state));
const trial = foundInProject(async ({ project }) => (await givenTrial(project)).product);

const masterBoard = template(async (place, state) => (await givenTemplate(place, { board: state })).board);
const masterGroup = template(async (place, state) => (await givenTemplate(place, { group: state })).group);
const masterCard = template(async (place, state) => (await givenTemplate(place, { card: state })).card);
const copiedCard = template(async (place, state) => (await givenTemplate(place, { card: state })).copied);

/** A master board with two cards that the project has access to, and the project's copy of the second. */
async function givenTemplate(place: Place, states: { board?: object; group?: object; card?: object }) {
  if (place.template) return place.template;
  const tool_key = randomUUID();
  await insert('project_tools', { project_id: place.project.id, tool_key });
  const made = await givenMasterBoard({ ...states, board: { tool_key, ...states.board } });
  const copied = await givenCard(NOWHERE, { is_master: true, group_id: made.group, ...states.card });
  await givenCard(place.project, { master_card_id: copied });
  place.template = { ...made, copied };
  return place.template;
}

/** A deleted row: for what restores it. */
const deleted = ({ make, ...target }: Target): Target => ({
  ...target,
  make: (place, state) => make(place, { ...state, deleted_at: new Date() }),
  isDeletable: false,
});

const failedMail = provided(() =>
  insert('mails', { kind: 'invitation', email: 'new@example.com', state: 'failed', failures: 9, error: 'No answer.' }),
);
const run = provided(async () => insert('template_runs', { kind: 'sync', board_id: (await givenMasterBoard()).board }));
/** A release of a master board that the project has access to, with a copy of each row in the project. */
const release = provided(async (place) => (await givenRelease(place)).release);
const givenReleased = async (place: Place) => {
  const { board, group, card } = await givenTemplate(place, {});
  const release = await insert('releases', { board_id: board, number: 1 });
  const rows = { board_id: board, group_id: group, card_id: card };
  for (const [column, id] of Object.entries(rows)) {
    const row_id = await insert('template_rows', {
      [column]: id,
      digest: randomUUID().replaceAll('-', ''),
      content: JSON.stringify({ title: 'Published', is_active: true }),
    } as never);
    const parent_id = { board_id: null, group_id: board, card_id: group }[column] ?? null;
    await insert('release_rows', { release_id: release, row_id, parent_id, position: 1 });
  }
  return { release, board, group, card };
};
const givenRelease = (place: Place) => (place.release ??= givenReleased(place));
const rolloutIn = (state: string, more: object = {}) =>
  provided(async (place) => {
    const { release, board } = await givenRelease(place);
    const stages = JSON.stringify([{ percent: 10 }, { percent: 100 }]);
    const rollout = { board_id: board, release_id: release, state, stages, ...more };
    const id = await insert('rollouts', rollout as never);
    const target = { rollout_id: id, project_id: place.project.id, stage: 1, state: 'failed' } as const;
    await insert('rollout_targets', target);
    return id;
  });
const boardCopy = inProject(async (place, state) => {
  const { board } = await givenRelease(place);
  return givenBoard(place.project, { master_board_id: board, ...state });
});
const cardCopy = inProject(async (place, state) => {
  const { card } = await givenRelease(place);
  return givenCard(place.project, { master_card_id: card, ...state });
});
const platform = provided(async () => (await givenProject()).platform_id);
const project = provided(async () => (await givenProject()).id);
const namedProject: Target = { make: async ({ project }) => project.id, owner: 'platform', isDeletable: false };
const user = provided(async () => (await givenUser()).id);
const deactivatedUser = provided(async () => (await givenUser({ is_active: false })).id);
const member = async ({ project }: Place) => (await givenUser({ project })).id;
const theme = inPlatform(({ project }) => givenTheme(project));
const version = inPlatform(({ project }) => givenThemeVersion(project));
const pendingVersion = inPlatform(({ project }) =>
  givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' }),
);

const invitation = inPlatform(({ project }) => givenInvitation(project, { email: newEmail() }));
const webhook = inPlatform((place) => givenWebhook(place.project));
/** An event of the project, as text. */
const event = async ({ project }: Place) =>
  String(
    await insert('events', {
      type: 'card.created',
      project_id: project.id,
      surface: 'rest',
      subject_id: 1,
      data: { group_id: null, version: 1 },
    }),
  );
/** The next event that this webhook is for, behind those of earlier calls. */
const webhookForTours = inPlatform((place) =>
  givenWebhook(place.project, {
    types: ['tour.restarted'],
    after_transaction: sql`pg_snapshot_xmax(pg_current_snapshot())`,
  }),
);
const tourEvent = async ({ project }: Place) => {
  const id = await insert('events', {
    type: 'tour.restarted',
    project_id: project.id,
    surface: 'rest',
    data: { count: 1 },
  });
  await feedComplete();
  return String(id);
};

const ofAuthor = (make: Make): Target => ({ make, owner: 'author', isDeletable: false });
const ownInvitation = ofAuthor(async ({ author }) => givenInvitation(await givenProject(), author));
/** The last one can't be erased. */
const superadmin = provided(async () => (await givenUser({ superadmin: true })).id);
/** Of every user, since a call names none. */
const exported = provided(async () => {
  await query(
    await testDb(),
    sql`with made as (insert into exports (user_id, state) select id, 'ready' from users returning id)
      insert into export_parts select id, 1, '[]' from made`,
  );
  return 1;
});
const furtherProject = ofAuthor(async ({ author }) => {
  const further = await givenProject();
  await givenMember(author, further, 'member');
  return further.id;
});

const identity: Target = {
  ...ofAuthor(({ author: { id: user_id } }) =>
    insert('identities', { user_id, issuer: 'https://id.example', subject: randomUUID() }),
  ),
  foreign: 404,
};
const serviceKey: Target = {
  make: async () => (await givenKey(await givenServiceAccount())).id,
  owner: 'superadmins',
  isDeletable: false,
};

const issuer = provided(async () => {
  const { id } = await givenFixedIssuer();
  await givenRule(id);
  return id;
});
/** With a credential that has not ended. */
const rule = provided(async ({ project }) => {
  const user = await givenServiceAccount({ project });
  const id = await givenRule((await givenFixedIssuer()).id, { user_id: user.id });
  await givenKey(user, { rule_id: id, expires_at: new Date(Date.now() + 900_000) });
  return id;
});
const serviceAccount = async ({ project }: Place) => (await givenServiceAccount({ project })).id;
const identityToken = async () => {
  const { id, sign } = await givenFixedIssuer();
  await givenRule(id);
  return sign();
};
const newIssuer = () => `https://${randomUUID()}.example`;

const author = (place: Place) => place.author.id;
const projectOfCall = ({ project }: Place) => project.id;
const product = givenProduct;
const password = PASSWORD;
const email = async () => (await givenUser()).email;
const url = 'https://example.com/deckhand';
const newIdentifier = () => randomUUID();
const inAMonth = () => new Date(Date.now() + 30 * 86_400_000).toISOString();
const newEmail = () => `${randomUUID()}@example.test`;

const resetLink = async () => {
  const { id: user_id, email } = await givenUser();
  return givenLink({ kind: 'password_reset', email, user_id });
};
const addressLink = ofAuthor(({ author }) =>
  givenLink({ kind: 'address_confirmation', email: newEmail(), user_id: author.id }),
);
const invitationLink = async () => {
  const email = newEmail();
  return givenLink({
    kind: 'invitation',
    email,
    invitation_id: await givenInvitation(await givenProject(), { email }),
  });
};

/** The file of a master board that does not exist yet. */
const newTemplate = {
  board: { key: newIdentifier, groups: [{ key: 'first', cards: [{ key: newIdentifier }] }] },
};

type Row = {
  /** The expected access, so that a wrong one in the router fails. */
  access: Access;
  /** Its input: rows, values, and functions that create values. The first row is the one it acts on. */
  input?: Given;
  /** A row that must exist, but is not part of the input. */
  beside?: Target;
  /** The status for a row that does not exist, or was deleted. */
  missing?: 404 | 422;
  /** The status otherwise; 400 if the start state does not satisfy the rule. */
  success?: 200 | 201 | 400;
  /** Whether it ends the session, so that every call needs a new token. */
  endsSession?: boolean;
};

/** The start state of every procedure: a new one needs a row here for the suites over all procedures. */
const rows: Record<string, Row> = {
  'auth.listIssuers': { access: 'anyone' },
  'auth.startSso': { access: 'anyone', success: 400 },
  'auth.finishSso': { access: 'anyone', success: 400 },
  'auth.authenticate': { access: 'anyone', input: { email, password } },
  'auth.exchange': { access: 'anyone', input: { token: identityToken, rule_id: null } },
  'account.whoAmI': { access: 'signedIn' },
  'account.signOut': { access: 'signedIn', endsSession: true },
  'account.signOutEverywhere': { access: 'signedIn', endsSession: true },
  'account.changePassword': { access: 'signedIn', input: { password, new_password: password }, endsSession: true },
  'account.prove': { access: 'signedIn', input: { password, code: null } },
  'account.setDefaultProject': { access: 'signedIn', input: { project_id: namedProject } },
  'account.listIdentities': { access: 'signedIn' },
  'account.unlinkIdentity': { access: 'signedIn', input: { id: identity } },
  'account.listInvitations': { access: 'signedIn' },
  'account.acceptInvitation': { access: 'signedIn', input: { id: ownInvitation, secret: null } },
  'account.declineInvitation': { access: 'signedIn', input: { id: ownInvitation } },
  'account.startSecondFactor': { access: 'signedIn', input: { password } },
  'account.confirmSecondFactor': { access: 'signedIn', input: { code: '123456' }, success: 400 },
  'account.dropSecondFactor': { access: 'signedIn', input: { password, code: '123456' }, success: 400 },
  'account.startExport': { access: 'signedIn' },
  'account.getExport': { access: 'signedIn', input: { part: 1 }, beside: exported },
  'account.erase': { access: 'signedIn', beside: superadmin, endsSession: true },
  'account.renewRecoveryCodes': { access: 'signedIn', input: { password, code: '123456' }, success: 400 },
  'account.requestPasswordReset': { access: 'anyone', input: { email: newEmail } },
  'account.resetPassword': { access: 'anyone', input: { secret: resetLink, new_password: password } },
  'account.changeAddress': { access: 'signedIn', input: { email: newEmail } },
  'account.requestConfirmation': { access: 'signedIn' },
  'account.confirmAddress': { access: 'signedIn', input: { secret: addressLink }, missing: 422 },
  'account.showInvitation': { access: 'anyone', input: { secret: invitationLink } },
  'account.signUp': { access: 'anyone', input: { secret: invitationLink, password }, success: 201 },
  'projects.listOwn': { access: 'signedIn' },
  'boards.get': { access: 'viewer', input: { id: board } },
  'boards.list': { access: 'viewer', beside: board },
  'boards.create': { access: 'member', success: 201 },
  'boards.update': { access: 'member', input: { id: board } },
  'boards.reorder': { access: 'member', input: { boards: [{ id: board }] } },
  'boards.restore': { access: 'member', input: { id: deleted(board) } },
  'boards.delete': { access: 'member', input: { id: board } },
  'groups.create': { access: 'member', input: { board_id: board }, success: 201 },
  'groups.list': { access: 'viewer', input: { board_id: board } },
  'groups.update': { access: 'member', input: { id: group } },
  'groups.configure': { access: 'member', input: { id: group, is_active: false } },
  'groups.reorder': { access: 'member', input: { groups: [{ id: group }, { id: group }] } },
  'groups.restore': { access: 'member', input: { id: deleted(group) } },
  'groups.delete': { access: 'member', input: { id: group } },
  'cards.create': {
    access: 'member',
    input: { group_id: group, tag_id: tag, owner_id: author },
    missing: 422,
    success: 201,
  },
  'cards.createMany': {
    access: 'member',
    input: { cards: [{ group_id: group, tag_id: tag, owner_id: author }] },
    missing: 422,
  },
  'cards.updateMany': {
    access: 'member',
    input: { cards: [{ id: card, tag_id: tag, owner_id: author }] },
  },
  'cards.get': { access: 'viewer', input: { id: card } },
  'cards.list': { access: 'viewer' },
  'cards.update': { access: 'member', input: { id: card, tag_id: tag, owner_id: author } },
  'cards.move': { access: 'member', input: { id: card, group_id: null } },
  'cards.snooze': { access: 'member', input: { id: card, until: '2030-01-01' } },
  'cards.restore': { access: 'member', input: { id: deleted(card) } },
  'cards.delete': { access: 'member', input: { id: card } },
  'comments.create': { access: 'member', input: { card_id: card, parent_comment_id: comment }, success: 201 },
  'comments.list': { access: 'viewer', input: { card_id: card } },
  'comments.listReplies': { access: 'viewer', input: { id: comment } },
  'comments.markRead': { access: 'member', input: { id: comment } },
  'comments.restore': { access: 'member', input: { id: deleted(comment) } },
  'comments.delete': { access: 'member', input: { id: comment } },
  'tags.create': { access: 'member', beside: tag, success: 201 },
  'tags.list': { access: 'viewer' },
  'events.list': { access: 'viewer', input: { project_id: namedProject, after: async () => 'latest' } },
  'audit.list': { access: 'ownerOrSuperadmin', input: { project_id: namedProject } },
  'tags.update': { access: 'member', input: { id: tag } },
  'tags.restore': { access: 'member', input: { id: deleted(tag) } },
  'tags.delete': { access: 'member', input: { id: tag } },
  'trash.list': { access: 'member' },
  'trash.preview': { access: 'member', input: { type: 'board', id: board } },
  'masterTrash.list': { access: 'superadmin' },
  'masterTrash.preview': { access: 'superadmin', input: { type: 'board', id: masterBoard } },
  'tour.restart': { access: 'viewer', beside: board },
  'tour.dismissAll': { access: 'viewer', beside: board },
  'masterBoards.list': { access: 'superadmin', beside: masterBoard },
  'masterBoards.get': { access: 'superadmin', input: { id: masterBoard } },
  'masterBoards.create': { access: 'superadmin', success: 201 },
  'masterBoards.update': { access: 'superadmin', input: { id: masterBoard } },
  'masterBoards.reorder': { access: 'superadmin', input: { boards: [{ id: masterBoard }] } },
  'masterBoards.restore': { access: 'superadmin', input: { id: deleted(masterBoard) } },
  'masterBoards.delete': { access: 'superadmin', input: { id: masterBoard } },
  'masterBoards.sync': { access: 'superadmin', input: { board_id: masterBoard } },
  'masterBoards.previewSync': { access: 'superadmin', input: { board_id: masterBoard } },
  'masterBoards.push': { access: 'superadmin', input: { board_id: masterBoard } },
  'masterBoards.previewPush': { access: 'superadmin', input: { board_id: masterBoard } },
  'masterGroups.list': { access: 'superadmin', input: { board_id: masterBoard } },
  'masterGroups.create': { access: 'superadmin', input: { board_id: masterBoard }, success: 201 },
  'masterGroups.update': { access: 'superadmin', input: { id: masterGroup } },
  'masterGroups.configure': { access: 'superadmin', input: { id: masterGroup, color: 'red' } },
  'masterGroups.push': { access: 'superadmin', input: { group_id: masterGroup } },
  'masterGroups.previewPush': { access: 'superadmin', input: { group_id: masterGroup } },
  'masterGroups.reorder': {
    access: 'superadmin',
    input: { board_id: masterBoard, groups: [{ id: masterGroup }] },
    missing: 422,
  },
  'masterGroups.restore': { access: 'superadmin', input: { id: deleted(masterGroup) } },
  'masterGroups.delete': { access: 'superadmin', input: { id: masterGroup } },
  'masterCards.create': {
    access: 'superadmin',
    input: { group_id: masterGroup, unique_identifier: newIdentifier },
    success: 201,
  },
  'masterCards.update': { access: 'superadmin', input: { id: masterCard, unique_identifier: newIdentifier } },
  'masterCards.reorder': { access: 'superadmin', input: { group_id: masterGroup, cards: [{ id: masterCard }] } },
  'masterCards.push': { access: 'superadmin', input: { card_id: masterCard } },
  'masterCards.previewPush': { access: 'superadmin', input: { card_id: masterCard } },
  'masterCards.restore': { access: 'superadmin', input: { id: deleted(masterCard) } },
  'masterCards.delete': { access: 'superadmin', input: { id: copiedCard } },
  'templateRuns.list': { access: 'superadmin' },
  'templateFiles.export': { access: 'superadmin', input: { board_id: masterBoard } },
  'templateFiles.plan': { access: 'superadmin', input: { template: newTemplate } },
  'templateFiles.import': { access: 'superadmin', input: { template: newTemplate, plan: null } },
  'templateRuns.get': { access: 'superadmin', input: { id: run } },
  'templateRuns.report': { access: 'superadmin', input: { id: run } },
  'releases.publish': { access: 'superadmin', input: { board_id: masterBoard }, success: 201 },
  'releases.list': { access: 'superadmin', beside: release },
  'releases.get': { access: 'superadmin', input: { id: release } },
  'releases.compare': { access: 'superadmin', input: { id: release, with_id: release } },
  'rollouts.plan': {
    access: 'superadmin',
    input: {
      release_id: release,
      stages: [{ percent: 100, projects: [namedProject] }],
    },
    success: 201,
  },
  'rollouts.start': { access: 'superadmin', input: { id: rolloutIn('planned') } },
  'rollouts.get': { access: 'superadmin', input: { id: rolloutIn('planned') } },
  'rollouts.list': { access: 'superadmin', beside: rolloutIn('planned') },
  'rollouts.report': { access: 'superadmin', input: { id: rolloutIn('planned') } },
  'rollouts.preview': { access: 'superadmin', input: { id: rolloutIn('planned'), project_id: namedProject } },
  'rollouts.pause': { access: 'superadmin', input: { id: rolloutIn('running') } },
  'rollouts.resume': { access: 'superadmin', input: { id: rolloutIn('paused') } },
  'rollouts.abort': { access: 'superadmin', input: { id: rolloutIn('running') } },
  'rollouts.advance': { access: 'superadmin', input: { id: rolloutIn('running', { is_soaking: true }) } },
  'rollouts.retryFailed': { access: 'superadmin', input: { id: rolloutIn('paused') } },
  'rollouts.rollback': { access: 'superadmin', input: { id: rolloutIn('done', { started_at: new Date() }) } },
  'templates.list': { access: 'viewer', beside: boardCopy },
  'templates.hold': { access: 'ownerOrSuperadmin', input: { board_id: boardCopy, until: inAMonth } },
  'templates.unhold': { access: 'ownerOrSuperadmin', input: { board_id: boardCopy } },
  'templates.unpin': { access: 'ownerOrSuperadmin', input: { board_id: boardCopy } },
  'templates.reset': { access: 'member', input: { noun: 'card', id: cardCopy } },
  'templates.drift': { access: 'superadmin', input: { board_id: masterBoard } },
  'subscriptions.upgradeTrial': { access: 'billing', input: { product: trial, plan: 'pro' }, missing: 422 },
  'subscriptions.setTrial': { access: 'superadmin', input: { platform_id: platform, product }, missing: 422 },
  'subscriptions.list': { access: 'billing' },
  'plans.set': { access: 'superadmin', input: { product, plan: 'x', period: 'year' } },
  'plans.list': { access: 'billing' },
  'themes.deprecateVersion': { access: 'ownerOrSuperadmin', input: { version_id: version } },
  'themes.deprecateWithNotice': {
    access: 'ownerOrSuperadmin',
    input: { version_id: version, replacement_version_id: null },
  },
  'themes.undoDeprecation': { access: 'ownerOrSuperadmin', input: { version_id: version } },
  'themes.publishVersion': { access: 'ownerOrSuperadmin', input: { version_id: version } },
  'themes.approveVersion': { access: 'superadmin', input: { version_id: version } },
  'themes.rejectVersion': { access: 'superadmin', input: { version_id: pendingVersion } },
  'themes.submitVersion': { access: 'ownerOrSuperadmin', input: { theme_id: theme }, success: 201 },
  'themes.create': { access: 'superadmin', input: { platform_id: platform }, missing: 422, success: 201 },
  'themes.list': { access: 'ownerOrSuperadmin' },
  'themes.listVersions': { access: 'ownerOrSuperadmin' },
  'platforms.create': { access: 'superadmin', success: 201 },
  'platforms.update': { access: 'superadmin', input: { id: platform } },
  'platforms.list': { access: 'superadmin' },
  'projects.create': { access: 'superadmin', input: { platform_id: platform }, missing: 422, success: 201 },
  'projects.update': { access: 'superadmin', input: { id: project } },
  'projects.list': { access: 'superadmin' },
  'users.create': {
    access: 'superadmin',
    input: { kind: 'person', email: newEmail, password, default_project_id: projectOfCall },
    success: 201,
  },
  'users.update': {
    access: 'superadmin',
    input: { id: user, email: newEmail, password, default_project_id: projectOfCall },
  },
  'users.list': { access: 'superadmin', input: { id: null } },
  'users.signOut': { access: 'superadmin', input: { id: user } },
  'users.erase': { access: 'superadmin', input: { id: user } },
  'users.dropSecondFactor': { access: 'superadmin', input: { id: user } },
  'users.deactivate': { access: 'superadmin', input: { id: user } },
  'users.activate': { access: 'superadmin', input: { id: deactivatedUser } },
  'members.invite': {
    access: 'ownerOrSuperadmin',
    input: { project_id: namedProject, email: newEmail },
    success: 201,
  },
  'members.listInvitations': { access: 'ownerOrSuperadmin', input: { project_id: namedProject } },
  'members.withdrawInvitation': { access: 'ownerOrSuperadmin', input: { id: invitation } },
  'members.leave': { access: 'signedIn', input: { project_id: furtherProject } },
  'members.add': { access: 'superadmin', input: { project_id: project, email }, success: 201 },
  'members.set': { access: 'ownerOrSuperadmin', input: { project_id: namedProject, user_id: member } },
  'members.remove': { access: 'ownerOrSuperadmin', input: { project_id: namedProject, user_id: member } },
  'members.list': { access: 'viewer', input: { project_id: namedProject } },
  'mails.list': { access: 'superadmin', beside: failedMail },
  'mails.retry': { access: 'superadmin', input: { id: failedMail } },
  'webhooks.create': { access: 'ownerOrSuperadmin', input: { project_id: namedProject, url }, success: 201 },
  'webhooks.list': { access: 'ownerOrSuperadmin', input: { project_id: namedProject } },
  'webhooks.update': { access: 'ownerOrSuperadmin', input: { id: webhook, url } },
  'webhooks.delete': { access: 'ownerOrSuperadmin', input: { id: webhook } },
  'webhooks.rotateSecret': { access: 'ownerOrSuperadmin', input: { id: webhook } },
  'webhooks.deliveries': { access: 'ownerOrSuperadmin', input: { id: webhook } },
  'webhooks.redeliver': { access: 'ownerOrSuperadmin', input: { id: webhook, event_id: event } },
  'webhooks.resend': { access: 'ownerOrSuperadmin', input: { id: webhook, event_id: event } },
  'webhooks.skip': { access: 'ownerOrSuperadmin', input: { id: webhookForTours, event_id: tourEvent } },
  'webhooks.sendTest': { access: 'ownerOrSuperadmin', input: { id: webhook } },
  'identityIssuers.create': {
    access: 'superadmin',
    input: { issuer: newIssuer, jwks_uri: null, jwks: null },
    success: 201,
  },
  'identityIssuers.list': { access: 'superadmin', beside: issuer },
  'identityIssuers.delete': { access: 'superadmin', input: { id: issuer } },
  'identityRules.create': {
    access: 'superadmin',
    input: { issuer_id: issuer, user_id: serviceAccount, project_id: projectOfCall, scopes: ['cards:read'] },
    missing: 422,
    success: 201,
  },
  'identityRules.list': { access: 'superadmin', beside: rule },
  'identityRules.update': {
    access: 'superadmin',
    input: { id: rule, user_id: serviceAccount, project_id: projectOfCall, scopes: ['cards:read'] },
  },
  'identityRules.delete': { access: 'superadmin', input: { id: rule } },
  'keys.create': {
    access: 'signedIn',
    input: { project_id: null, user_id: null, expires_at: '2099-01-01' },
    success: 201,
  },
  'keys.list': { access: 'signedIn', input: { user_id: null } },
  'keys.rotate': { access: 'signedIn', input: { id: serviceKey } },
  'keys.revoke': { access: 'signedIn', input: { id: serviceKey } },
  'keys.self': { access: 'key' },
  'keys.rotateSelf': { access: 'key' },
};

const isTarget = (part: unknown): part is Target => typeof part === 'object' && part !== null && 'make' in part;

/** The row that an input acts on: its first one. */
function targetIn(part: unknown): Target | undefined {
  if (isTarget(part)) return part;
  return typeof part === 'object' && part !== null ? Object.values(part).map(targetIn).find(isTarget) : undefined;
}

/** The start state of each procedure, with the row it acts on. */
export const startStates = new Map(
  Object.entries(rows).map(([name, row]) => [name, { ...row, on: targetIn(row.input) }]),
);

/** The row that an input refers to: one of the own project or of the outsider's, a deleted one, or an unknown id. */
export const WHOSE = ['own', 'foreign', 'deleted', 'unknown'] as const;
export type Whose = (typeof WHOSE)[number];

/** Creates the rows for a procedure, and returns the part of its input that refers to them. */
export async function givenStartState({ name }: Procedure, world: World, whose: Whose = 'own'): Promise<Given> {
  const row = startStates.get(name);
  if (!row) throw new Error(`${name} has no start state: add a row for it.`);
  const { project, otherProject, users } = world;
  const place: Place =
    whose === 'foreign' ? { project: otherProject, author: users.outsider } : { project, author: users.member };
  let target = row.on;

  await row.beside?.make(place, {});
  return (await make(row.input ?? {})) as Given;

  async function make(part: unknown): Promise<unknown> {
    if (isTarget(part)) {
      const isFirst = part === target;
      target = undefined;
      if (whose === 'unknown' && isFirst) return part === trial ? 'nothing' : 2_147_483_647;
      return part.make(place, whose === 'deleted' && isFirst ? { deleted_at: new Date() } : {});
    }
    if (typeof part === 'function') return part(place, world);
    if (typeof part !== 'object' || part === null) return part;
    const made = Array.isArray(part) ? [] : {};
    for (const [field, inner] of Object.entries(part)) Object.assign(made, { [field]: await make(inner) });
    return made;
  }
}

export const CALLERS = ['Nobody', 'Viewer', 'Member', 'Owner', 'Outsider', 'Superadmin'] as const;
export type CallerName = (typeof CALLERS)[number];

/** The caller with the fewest rights who has the access; outsiders have as many as owners. None of them has a key. */
const WEAKEST: Record<Exclude<Access, 'key'>, CallerName> = {
  anyone: 'Nobody',
  signedIn: 'Viewer',
  viewer: 'Viewer',
  member: 'Member',
  ownerOrSuperadmin: 'Owner',
  billing: 'Owner',
  superadmin: 'Superadmin',
};

export const hasAccess = (caller: CallerName, access: Access) =>
  access !== 'key' && CALLERS.indexOf(caller) >= CALLERS.indexOf(WEAKEST[access]);

/** A caller with access, signed in only if required. */
export function allowedCaller(world: World, { name, access }: Procedure) {
  if (access === 'anyone') return world.asNobody;
  if (access === 'key') return world.asKey;
  return startStates.get(name)?.on?.owner === 'author' ? world.asMember : world.asSuperadmin;
}
