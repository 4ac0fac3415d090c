import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import type { AuditType } from '../shared/audit.ts';
import { makeCaller, refusalOf, type TestCaller } from './harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep } from './harness/codes.ts';
import { givenService, testDatabase, testService, withOwnService } from './harness/service.ts';
import { COMPLETED, givenPaid, givenStripe } from './harness/stripeService.ts';
import {
  givenInvitation,
  givenKey,
  givenMember,
  givenProduct,
  givenServiceAccount,
  givenTheme,
  givenThemeVersion,
  givenToken,
  givenTrial,
  givenUser,
  givenWorld,
  insert,
  PASSWORD,
  type TestUser,
  testDb,
} from './harness/world.ts';

withOwnService();

holdTimeStep();

const NEW_PASSWORD = 'violet lantern under seven bridges';
const MISSING_ID = 2_147_483_647;

type Written = {
  type: AuditType;
  platform_id: number | null;
  project_id: number | null;
  user_id: number | null;
  subject_id: number | null;
  surface: string;
  data: object;
};

/** What some work adds to a table; the tests of a worker run one after the other. */
async function added<Row>(table: 'events' | 'audit_entries', columns: string, work: () => Promise<unknown>) {
  const db = await testDb();
  const [before] = await query(
    db,
    sql<{ last: string }>`select coalesce(max(id), 0)::text as last from ${sql.table(table)}`,
  );
  await work();
  return query(
    db,
    sql<Row>`select ${sql.raw(columns)} from ${sql.table(table)} where id > ${before!.last}::bigint order by id`,
  );
}

const COLUMNS = 'type, platform_id, project_id, user_id, subject_id, surface, data';
const written = (work: () => Promise<unknown>) => added<Written>('events', COLUMNS, work);

/** An event over RPC, outside of projects unless told. */
const event = (type: AuditType, more: Partial<Written>): Written => ({
  type,
  platform_id: null,
  project_id: null,
  user_id: null,
  subject_id: null,
  surface: 'rpc',
  data: {},
  ...more,
});

const asUser = async (user: TestUser): Promise<TestCaller> =>
  makeCaller((await testService()).url, await givenToken(user));
const asNobody = async () => makeCaller((await testService()).url);
const signIn = async ({ email }: { email: string }, more: object = {}) =>
  (await asNobody()).post('/v1/authenticate', { email, password: PASSWORD, ...more });

describe('sessions', () => {
  it('session.started is of the user who signs in, whatever token they send', async () => {
    const { users, asOwner } = await givenWorld();
    const user = await givenProtectedUser();

    expect(await written(() => signIn(users.member))).toEqual([
      event('session.started', { user_id: users.member.id, surface: 'rest' }),
    ]);
    const again = () =>
      asOwner.rpc.auth.authenticate.mutate({ email: user.email, password: PASSWORD, code: codeAt(0) });
    expect(await written(again)).toEqual([event('session.started', { user_id: user.id })]);
  });

  it('nothing for a refused sign-in', async () => {
    const user = await givenProtectedUser();

    expect(await written(() => signIn({ email: 'nobody@example.test' }))).toEqual([]);
    expect(await written(() => signIn(user, { password: 'wrong' }))).toEqual([]);
    expect(await written(() => signIn(user))).toEqual([]);
    expect(await written(() => signIn(user, { code: '000000' }))).toEqual([]);
  });

  it('session.ended, sessions.ended with their number, and key.revoked for each key', async () => {
    const { asMember, asOwner, users, project } = await givenWorld();
    const ofProject = await givenKey(users.owner, { project_id: project.id });
    const { id: user_id } = users.owner;
    await givenToken(users.owner);

    expect(await written(() => asMember.rpc.account.signOut.mutate())).toEqual([
      event('session.ended', { user_id: users.member.id }),
    ]);
    expect(await written(() => refusalOf(asMember.rpc.account.signOut.mutate()))).toEqual([]);
    expect(await written(() => asOwner.rpc.account.signOutEverywhere.mutate({ revoke_keys: true }))).toEqual([
      event('sessions.ended', { user_id, data: { user_id, count: 2 } }),
      event('key.revoked', { ...inProject(project), user_id, subject_id: ofProject.id, data: { user_id } }),
    ]);
  });

  it('sessions.ended by a superadmin, once', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const { id } = users.viewer;
    const signOut = () => asSuperadmin.rpc.users.signOut.mutate({ id });

    expect(await written(signOut)).toEqual([
      event('sessions.ended', { user_id: users.superadmin.id, data: { user_id: id, count: 1 } }),
    ]);
    expect(await written(signOut)).toEqual([]);
    expect(await written(() => refusalOf(asSuperadmin.rpc.users.signOut.mutate({ id: MISSING_ID })))).toEqual([]);
  });
});

const inProject = ({ id, platform_id }: { id: number; platform_id: number }) => ({ project_id: id, platform_id });

describe('an account', () => {
  it('user.updated for another default project', async () => {
    const { asMember, users, project, otherProject } = await givenWorld();
    const set = (project_id: number) => asMember.rpc.account.setDefaultProject.mutate({ project_id });
    const { id } = users.member;

    expect(await written(() => set(project.id))).toEqual([
      event('user.updated', { user_id: id, subject_id: id, data: { fields: ['default_project_id'] } }),
    ]);
    expect(await written(() => set(project.id))).toEqual([]);
    expect(await written(() => refusalOf(set(otherProject.id)))).toEqual([]);
  });

  it('user.password_changed, and key.revoked for each key', async () => {
    const user = await givenUser();
    const { id } = await givenKey(user);
    const { rpc } = await asUser(user);
    const change = (password: string) =>
      rpc.account.changePassword.mutate({ password, new_password: NEW_PASSWORD, revoke_keys: true });

    expect(await written(() => refusalOf(change('wrong')))).toEqual([]);
    expect(await written(() => change(PASSWORD))).toEqual([
      event('user.password_changed', { user_id: user.id, subject_id: user.id }),
      event('key.revoked', { user_id: user.id, subject_id: id, data: { user_id: user.id } }),
    ]);
  });

  it('second_factor.* and recovery_codes.renewed', async () => {
    const user = await givenUser();
    const { account } = (await asUser(user)).rpc;
    const ofUser = (type: AuditType) => [event(type, { user_id: user.id, data: { user_id: user.id } })];
    const password = PASSWORD;
    let secret = '';
    let codes: string[] = [];

    expect(await written(() => refusalOf(account.startSecondFactor.mutate({ password: 'wrong' })))).toEqual([]);
    const start = async () => ({ secret } = await account.startSecondFactor.mutate({ password }));
    expect(await written(start)).toEqual(ofUser('second_factor.started'));
    expect(await written(() => refusalOf(account.confirmSecondFactor.mutate({ code: '000000' })))).toEqual([]);
    const confirm = async () =>
      ({ recovery_codes: codes } = await account.confirmSecondFactor.mutate({ code: codeAt(0, secret) }));
    expect(await written(confirm)).toEqual(ofUser('second_factor.enabled'));
    const proof = () => ({ password, code: codes.shift()!, is_recovery: true });
    const renew = async () => ({ recovery_codes: codes } = await account.renewRecoveryCodes.mutate(proof()));
    expect(await written(renew)).toEqual(ofUser('recovery_codes.renewed'));
    const drop = () => account.dropSecondFactor.mutate(proof());
    expect(await written(() => refusalOf(account.dropSecondFactor.mutate({ password, code: 'x' })))).toEqual([]);
    expect(await written(drop)).toEqual(ofUser('second_factor.dropped'));
    expect(await written(() => refusalOf(drop()))).toEqual([]);
  });

  it('second_factor.dropped by a superadmin, once', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const { id } = await givenProtectedUser();
    const drop = () => asSuperadmin.rpc.users.dropSecondFactor.mutate({ id });

    expect(await written(drop)).toEqual([
      event('second_factor.dropped', { user_id: users.superadmin.id, data: { user_id: id } }),
    ]);
    expect(await written(drop)).toEqual([]);
  });

  it('user.created, user.updated with the changed fields, and user.password_changed', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const { rpc } = asSuperadmin;
    const user = { name: 'Ada', email: `${randomUUID()}@example.test`, password: NEW_PASSWORD };
    let id = 0;
    const create = async () => ({ id } = (await rpc.users.create.mutate(user)).user);
    const by = users.superadmin.id;

    expect(await written(create)).toEqual([event('user.created', { user_id: by, subject_id: id })]);
    expect(await written(() => refusalOf(create()))).toEqual([]);
    expect(await written(() => rpc.users.update.mutate({ id, name: 'Ada', enable_ai: true, language: 'nl' }))).toEqual([
      event('user.updated', { user_id: by, subject_id: id, data: { fields: ['enable_ai', 'language'] } }),
    ]);
    expect(await written(() => rpc.users.update.mutate({ id, name: 'Ada', enable_ai: true }))).toEqual([]);
    expect(await written(() => rpc.users.update.mutate({ id, password: PASSWORD }))).toEqual([
      event('user.password_changed', { user_id: by, subject_id: id }),
    ]);
    expect(await written(() => refusalOf(rpc.users.update.mutate({ id, name: 'Eve', password: 'password' })))).toEqual(
      [],
    );
    expect(await written(() => refusalOf(rpc.users.update.mutate({ id: MISSING_ID, name: 'Eve' })))).toEqual([]);
  });
});

describe('keys', () => {
  it('key.created, key.rotated and key.revoked, in the project of the key', async () => {
    const { asMember, users, project } = await givenWorld();
    const { keys } = asMember.rpc;
    const { id: user_id } = users.member;
    let id = 0;
    const create = async (more: object = {}) =>
      ({ id } = (await keys.create.mutate({ name: 'Import', scopes: ['boards:read'], ...more })).key);
    const rotate = () => keys.rotate.mutate({ id, previous_valid_hours: 1 });
    const revoke = () => keys.revoke.mutate({ id });
    const ofKey = (type: AuditType, more: object = {}) => [
      event(type, { user_id, subject_id: id, data: { user_id }, ...more }),
    ];

    expect(await written(() => create({ project_id: project.id }))).toEqual(ofKey('key.created', inProject(project)));
    expect(await written(rotate)).toEqual(ofKey('key.rotated', inProject(project)));
    expect(await written(revoke)).toEqual(ofKey('key.revoked', inProject(project)));
    expect(await written(revoke)).toEqual([]);
    expect(await written(() => refusalOf(rotate()))).toEqual([]);
    expect(await written(create)).toEqual(ofKey('key.created'));
  });

  it('of a service tell whose they are', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const service = await givenServiceAccount();
    const { keys } = asSuperadmin.rpc;
    const create = () => keys.create.mutate({ user_id: service.id, name: 'Import', scopes: ['boards:read'] });

    expect(await written(create)).toEqual([
      event('key.created', {
        user_id: users.superadmin.id,
        subject_id: expect.any(Number) as unknown as number,
        data: { user_id: service.id },
      }),
    ]);
    const { id } = await givenKey(users.viewer);
    expect(await written(() => refusalOf(keys.revoke.mutate({ id })))).toEqual([]);
  });

  it('are named by the events of their calls', async () => {
    const { users, project } = await givenWorld();
    const { id, secret } = await givenKey(users.owner);
    const { rpc } = makeCaller((await testService()).url, secret);
    const set = () => rpc.members.set.mutate({ project_id: project.id, user_id: users.viewer.id, role: 'member' });

    expect(await added('events', 'type, key_id, user_id', set)).toEqual([
      { type: 'member.updated', key_id: id, user_id: users.owner.id },
    ]);
  });
});

describe('platforms and projects', () => {
  it('platform.created, and platform.updated for another name', async () => {
    const { asSuperadmin, asOwner, users } = await givenWorld();
    const { platforms } = asSuperadmin.rpc;
    let id = 0;
    const create = async () => ({ id } = (await platforms.create.mutate({ name: 'North' })).platform);
    const ofPlatform = (type: AuditType, data: object) => [
      event(type, { user_id: users.superadmin.id, platform_id: id, subject_id: id, data }),
    ];

    expect(await written(create)).toEqual(ofPlatform('platform.created', {}));
    const rename = () => platforms.update.mutate({ id, name: 'South' });
    expect(await written(rename)).toEqual(ofPlatform('platform.updated', { fields: ['name'] }));
    expect(await written(rename)).toEqual([]);
    expect(await written(() => refusalOf(asOwner.rpc.platforms.create.mutate({ name: 'x' })))).toEqual([]);
    expect(await written(() => refusalOf(platforms.update.mutate({ id: MISSING_ID, name: 'x' })))).toEqual([]);
  });

  it('project.created, and project.updated with the changed fields', async () => {
    const { asSuperadmin, users, project: known } = await givenWorld();
    const { projects } = asSuperadmin.rpc;
    const { platform_id } = known;
    let id = 0;
    const create = async (more: object = {}) =>
      ({ id } = (await projects.create.mutate({ platform_id, name: 'East', tools: ['crm'], ...more })).project);
    const ofProject = (type: AuditType, data: object = {}) => [
      event(type, { user_id: users.superadmin.id, platform_id, project_id: id, subject_id: id, data }),
    ];

    expect(await written(create)).toEqual(ofProject('project.created'));
    expect(await written(() => projects.update.mutate({ id, name: 'East', tools: ['crm', 'site'] }))).toEqual(
      ofProject('project.updated', { fields: ['tools'] }),
    );
    expect(await written(() => projects.update.mutate({ id, name: 'West', is_active: false }))).toEqual(
      ofProject('project.updated', { fields: ['is_active', 'name'] }),
    );
    expect(await written(() => projects.update.mutate({ id, name: 'West', tools: ['site', 'crm'] }))).toEqual([]);
    expect(await written(() => refusalOf(create({ platform_id: MISSING_ID })))).toEqual([]);
    expect(await written(() => refusalOf(projects.update.mutate({ id: MISSING_ID, name: 'x' })))).toEqual([]);
  });
});

describe('members', () => {
  it('invitation.created and invitation.withdrawn, without the e-mail address', async () => {
    const { asOwner, asMember, users, project } = await givenWorld();
    const email = `${randomUUID()}@example.test`;
    let id = 0;
    const invite = async (role: 'viewer' | 'member') =>
      ({ id } = (await asOwner.rpc.members.invite.mutate({ email, role })).invitation);
    const ofInvitation = (type: AuditType, data: object = {}) => [
      event(type, { ...inProject(project), user_id: users.owner.id, subject_id: id, data }),
    ];

    expect(await written(() => invite('viewer'))).toEqual(ofInvitation('invitation.created', { role: 'viewer' }));
    expect(await written(() => invite('viewer'))).toEqual([]);
    expect(await written(() => invite('member'))).toEqual(ofInvitation('invitation.created', { role: 'member' }));
    const refused = asMember.rpc.members.invite.mutate({ email, role: 'member' });
    expect(await written(() => refusalOf(refused))).toEqual([]);
    const withdraw = () => asOwner.rpc.members.withdrawInvitation.mutate({ id });
    expect(await written(withdraw)).toEqual(ofInvitation('invitation.withdrawn'));
    expect(await written(() => refusalOf(withdraw()))).toEqual([]);
  });

  it('member.added by accepting an invitation, invitation.declined by declining one', async () => {
    const { asOutsider, asMember, users, project } = await givenWorld();
    const user_id = users.outsider.id;
    const declined = await givenInvitation(project, users.outsider);
    const decline = (caller: TestCaller) => caller.rpc.account.declineInvitation.mutate({ id: declined });

    expect(await written(() => refusalOf(decline(asMember)))).toEqual([]);
    expect(await written(() => decline(asOutsider))).toEqual([
      event('invitation.declined', { ...inProject(project), user_id, subject_id: declined }),
    ]);
    const id = await givenInvitation(project, users.outsider, { role: 'viewer' });
    const accept = () => asOutsider.rpc.account.acceptInvitation.mutate({ id });
    expect(await written(accept)).toEqual([
      event('member.added', { ...inProject(project), user_id, data: { user_id, role: 'viewer', invitation_id: id } }),
    ]);
    const late = await givenInvitation(project, users.outsider, { role: 'owner' });
    expect(await written(() => asOutsider.rpc.account.acceptInvitation.mutate({ id: late }))).toEqual([
      event('invitation.withdrawn', { ...inProject(project), user_id, subject_id: late }),
    ]);
    expect(await written(() => refusalOf(accept()))).toEqual([]);
  });

  it('member.added, member.updated for another role, and member.removed', async () => {
    const { asSuperadmin, asOwner, asMember, users, project } = await givenWorld();
    const user = await givenUser();
    const choice = { project_id: project.id, user_id: user.id };
    const add = () =>
      asSuperadmin.rpc.members.add.mutate({ project_id: project.id, email: user.email, role: 'viewer' });
    const set = (role: 'viewer' | 'member') => asOwner.rpc.members.set.mutate({ ...choice, role });
    const ofMember = (type: AuditType, by: TestUser, role: string) => [
      event(type, { ...inProject(project), user_id: by.id, data: { user_id: user.id, role } }),
    ];

    expect(await written(add)).toEqual(ofMember('member.added', users.superadmin, 'viewer'));
    expect(await written(() => refusalOf(add()))).toEqual([]);
    expect(await written(() => set('viewer'))).toEqual([]);
    expect(await written(() => set('member'))).toEqual(ofMember('member.updated', users.owner, 'member'));
    expect(await written(() => refusalOf(asMember.rpc.members.remove.mutate(choice)))).toEqual([]);
    const remove = () => asOwner.rpc.members.remove.mutate(choice);
    expect(await written(remove)).toEqual(ofMember('member.removed', users.owner, 'member'));
    expect(await written(() => refusalOf(remove()))).toEqual([]);
    const setAnew = () => asSuperadmin.rpc.members.set.mutate({ ...choice, role: 'owner' });
    expect(await written(setAnew)).toEqual(ofMember('member.added', users.superadmin, 'owner'));
    const leave = async () => (await asUser(user)).rpc.members.leave.mutate({ project_id: project.id });
    expect(await written(leave)).toEqual(ofMember('member.removed', user, 'owner'));
    const last = { ...choice, user_id: users.owner.id };
    expect(await written(() => refusalOf(asOwner.rpc.members.remove.mutate(last)))).toEqual([]);
  });
});

describe('billing', () => {
  it('plan.set for a new plan or other terms, subscription.trial_set', async () => {
    const { asSuperadmin, users, project } = await givenWorld();
    const product = await givenProduct();
    const by = users.superadmin.id;
    let id = 0;
    const set = async (more: object = {}) =>
      ({ id } = (
        await asSuperadmin.rpc.plans.set.mutate({ product, plan: 'team', period: 'month', price_cents: 100, ...more })
      ).plan);
    const ofPlan = () => [event('plan.set', { user_id: by, subject_id: id, data: { product, plan: 'team' } })];

    expect(await written(set)).toEqual(ofPlan());
    expect(await written(set)).toEqual([]);
    expect(await written(() => set({ price_cents: 200 }))).toEqual(ofPlan());
    expect(await written(() => set({ price_cents: 200, is_active: false }))).toEqual(ofPlan());
    const { platform_id } = project;
    const setTrial = async (platform: number) =>
      asSuperadmin.rpc.subscriptions.setTrial.mutate({ platform_id: platform, product, days: 3 });
    const [trial] = await written(() => setTrial(platform_id));
    const data = { product, status: 'trial' };
    const subject_id = expect.any(Number) as unknown as number;
    expect(trial).toEqual(event('subscription.trial_set', { user_id: by, platform_id, subject_id, data }));
    expect(await written(() => refusalOf(setTrial(MISSING_ID)))).toEqual([]);
  });

  it('subscription.upgrade_started once for an open checkout, subscription.paid when its page is paid', async () => {
    const { project, asOwner, asMember, users } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { platform_id } = project;
    const choice = { product, plan: 'pro', period: 'month' } as const;
    let checkout = '';
    const upgrade = async () =>
      ({ checkout_url: checkout } = await asOwner.rpc.subscriptions.upgradeTrial.mutate(choice));

    expect(await written(() => refusalOf(asMember.rpc.subscriptions.upgradeTrial.mutate(choice)))).toEqual([]);
    const data = { product, plan: 'pro' };
    expect(await written(upgrade)).toEqual([
      event('subscription.upgrade_started', { user_id: users.owner.id, platform_id, subject_id: id, data }),
    ]);
    expect(await written(upgrade)).toEqual([]);
    const pay = () => fetch(`${checkout}/pay`, { method: 'POST' });
    const paid = { platform_id, subject_id: id, surface: 'payment', data: { ...data, status: 'paid' } };
    expect(await written(pay)).toEqual([event('subscription.paid', paid)]);
    expect(await written(pay)).toEqual([]);
    expect(await written(() => refusalOf(upgrade()))).toEqual([]);
  });

  it('subscription.paid at once for a free plan, and nothing when it is chosen again', async () => {
    const { project, asOwner, users } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { platform_id } = project;
    const upgrade = () => asOwner.rpc.subscriptions.upgradeTrial.mutate({ product, plan: 'free', period: 'month' });

    const data = { product, plan: 'free', status: 'free' };
    expect(await written(upgrade)).toEqual([
      event('subscription.paid', { user_id: users.owner.id, platform_id, subject_id: id, data }),
    ]);
    expect(await written(upgrade)).toEqual([]);
  });

  it('nothing if the provider fails', async () => {
    const stripe = await givenStripe();
    const open = async () => {
      throw new Error('unreachable');
    };
    const service = await givenService(
      {},
      { database: await testDatabase(), payments: { ...stripe.stripe.provider, open } },
    );
    const { project, asOwner } = await givenWorld(service);
    const { product } = await givenTrial(project);

    const upgrade = () =>
      refusalOf(asOwner.rpc.subscriptions.upgradeTrial.mutate({ product, plan: 'pro', period: 'month' }));

    expect(await written(upgrade)).toEqual([]);
  });

  it('subscription.paid once, however often the provider tells', async () => {
    const { stripe, id, upgrade, notify, sessionOf } = await givenStripe();
    await upgrade();
    const session = await sessionOf();
    const tell = () => notify(stripe.notification(COMPLETED, session));

    const events = await written(async () => {
      await Promise.all([tell(), tell()]);
      await tell();
    });

    expect(events).toMatchObject([
      { type: 'subscription.paid', user_id: null, surface: 'payment', subject_id: id, data: { status: 'paid' } },
    ]);
  });

  it('subscription.changed for each other state', async () => {
    const { renewalFails, renewed, deleted } = await givenPaid();

    const events = await written(async () => {
      for (const tell of [renewalFails, renewalFails]) await tell(10);
      for (const tell of [renewed, renewed]) await tell(20);
      for (const tell of [deleted, deleted, renewed]) await tell(30);
    });

    expect(events.map(({ type, surface, data }) => ({ type, surface, data }))).toEqual(
      ['past_due', 'paid', 'ended'].map((status) => ({
        type: 'subscription.changed',
        surface: 'payment',
        data: expect.objectContaining({ plan: 'pro', status }),
      })),
    );
  });
});

describe('themes', () => {
  it('theme.created, and theme_version.* for each change of a version', async () => {
    const { asSuperadmin, asOwner, asOutsider, users, project } = await givenWorld();
    const { platform_id } = project;
    const by = users.superadmin.id;
    let theme_id = 0;
    const create = async () =>
      ({ id: theme_id } = (await asSuperadmin.rpc.themes.create.mutate({ platform_id, name: 'Harbour' })).theme);
    expect(await written(create)).toEqual([event('theme.created', { user_id: by, platform_id, subject_id: theme_id })]);

    let version_id = 0;
    const submit = async () =>
      ({ id: version_id } = (await asOwner.rpc.themes.submitVersion.mutate({ theme_id, version: '1' })).version);
    const { themes } = asSuperadmin.rpc;
    const ofVersion = (type: AuditType, user: TestUser = users.superadmin) => [
      event(type, { user_id: user.id, platform_id, subject_id: version_id, data: { theme_id } }),
    ];
    const notice = (reason: string) => () => themes.deprecateWithNotice.mutate({ version_id, reason });
    const steps: [AuditType, () => Promise<unknown>][] = [
      ['theme_version.rejected', () => themes.rejectVersion.mutate({ version_id })],
      ['theme_version.submitted', submit],
      ['theme_version.approved', () => themes.approveVersion.mutate({ version_id })],
      ['theme_version.published', () => themes.publishVersion.mutate({ version_id })],
      ['theme_version.deprecated', () => themes.deprecateVersion.mutate({ version_id })],
      ['theme_version.deprecated', notice('Too old')],
      ['theme_version.deprecated', notice('Much too old')],
      ['theme_version.restored', () => themes.undoDeprecation.mutate({ version_id })],
    ];

    expect(await written(submit)).toEqual(ofVersion('theme_version.submitted', users.owner));
    for (const [type, step] of steps) {
      expect(await written(step), type).toEqual(
        ofVersion(type, type === 'theme_version.submitted' ? users.owner : undefined),
      );
      expect(await written(() => step().catch(() => undefined)), `${type} again`).toEqual([]);
    }
    expect(await written(() => refusalOf(asOutsider.rpc.themes.publishVersion.mutate({ version_id })))).toEqual([]);
    expect(
      await written(() => refusalOf(asOutsider.rpc.themes.submitVersion.mutate({ theme_id, version: '2' }))),
    ).toEqual([]);
  });

  it('400 without an event for a version that waits for its review', async () => {
    const { asOwner, project } = await givenWorld();
    const version_id = await givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' });

    expect(await written(() => refusalOf(asOwner.rpc.themes.publishVersion.mutate({ version_id })))).toEqual([]);
  });
});

describe('a repeat with the same idempotency key', () => {
  it('writes no second event', async () => {
    const { asSuperadmin, asOwner, users, project } = await givenWorld();
    const { rpc } = asSuperadmin;
    const user = await givenProtectedUser();
    const member = await givenUser({ project });
    const theme_id = await givenTheme(project);
    const version_id = await givenThemeVersion(project);
    const { product } = await givenTrial(project);
    const [key, invitation] = [
      await givenKey(users.owner),
      await givenInvitation(project, { email: 'x@example.test' }),
    ];
    const repeated: Record<string, (options: { idempotencyKey: string }) => Promise<unknown>> = {
      'users.create': (options) =>
        rpc.users.create.mutate(
          { name: 'Ada', email: `${member.id}-new@example.test`, password: NEW_PASSWORD },
          options,
        ),
      'users.update': (options) => rpc.users.update.mutate({ id: member.id, password: NEW_PASSWORD }, options),
      'users.dropSecondFactor': (options) => rpc.users.dropSecondFactor.mutate({ id: user.id }, options),
      'platforms.create': (options) => rpc.platforms.create.mutate({ name: 'North' }, options),
      'projects.create': (options) =>
        rpc.projects.create.mutate({ platform_id: project.platform_id, name: 'East' }, options),
      'members.set': (options) => rpc.members.set.mutate({ user_id: member.id, role: 'viewer' }, options),
      'members.invite': (options) => rpc.members.invite.mutate({ email: 'y@example.test', role: 'viewer' }, options),
      'members.withdrawInvitation': (options) => rpc.members.withdrawInvitation.mutate({ id: invitation }, options),
      'keys.revoke': (options) => asOwner.rpc.keys.revoke.mutate({ id: key.id }, options),
      'keys.create': (options) => asOwner.rpc.keys.create.mutate({ name: 'Import', scopes: ['boards:read'] }, options),
      'plans.set': (options) =>
        rpc.plans.set.mutate({ product, plan: 'team', period: 'month', price_cents: 100 }, options),
      'subscriptions.setTrial': (options) =>
        rpc.subscriptions.setTrial.mutate({ platform_id: project.platform_id, product, days: 3 }, options),
      'subscriptions.upgradeTrial': (options) =>
        asOwner.rpc.subscriptions.upgradeTrial.mutate({ product, plan: 'pro', period: 'month' }, options),
      'themes.submitVersion': (options) => asOwner.rpc.themes.submitVersion.mutate({ theme_id, version: '1' }, options),
      'themes.deprecateVersion': (options) => asOwner.rpc.themes.deprecateVersion.mutate({ version_id }, options),
    };

    for (const [name, call] of Object.entries(repeated)) {
      const options = { idempotencyKey: randomUUID() };
      expect(await written(() => call(options)), name).toHaveLength(1);
      // 400 where the response is not kept.
      expect(await written(() => call(options).catch(() => undefined)), `${name} again`).toEqual([]);
    }
  });
});

describe('the audit trail', () => {
  const AUDITED = 'type, user_id, surface, address, data, request_id';
  const audited = (work: () => Promise<unknown>) => added('audit_entries', AUDITED, work);
  const entry = (type: AuditType, user_id: number | null, data: object) => [
    { type, user_id, surface: 'rest', address: '127.0.0.1', data, request_id: expect.any(String) },
  ];

  it('has good and bad sign-ins, without what was typed', async () => {
    const user = await givenProtectedUser();
    const code = codeAt(0);

    expect(await audited(() => signIn({ email: `${randomUUID()}@example.test` }))).toEqual(
      entry('session.refused', null, { reason: 'unknown account' }),
    );
    expect(await audited(() => signIn(user, { password: 'wrong' }))).toEqual(
      entry('session.refused', user.id, { reason: 'wrong password' }),
    );
    expect(await audited(() => signIn(user, { code: '000000' }))).toEqual(
      entry('session.refused', user.id, { reason: 'wrong code' }),
    );
    expect(await audited(() => signIn(user, { code }))).toEqual(entry('session.started', user.id, {}));
  });

  it('has wrong passwords of signed-in callers', async () => {
    const user = await givenUser();
    const caller = await asUser(user);

    expect(await audited(() => caller.post('/v1/account/start-second-factor', { password: 'wrong' }))).toEqual(
      entry('session.refused', user.id, { reason: 'wrong password' }),
    );
  });

  it('has no attempts beyond the limit', async () => {
    const { url } = await givenService();
    const user = await givenUser();
    const guess = () => makeCaller(url).post('/v1/authenticate', { email: user.email, password: 'wrong' });
    const statuses: number[] = [];

    const entries = await audited(async () => {
      for (let at = 0; at < 13; at++) statuses.push((await guess()).status);
    });

    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
    expect(entries).toHaveLength(10);
  });

  it('401 as usual if an attempt can not be written', async () => {
    const { url, logged } = await givenService();
    const { email } = await givenUser();
    const db = await testDb();
    const rename = (from: string, to: string) =>
      query(db, sql`alter table ${sql.table(from)} rename to ${sql.ref(to)}`);
    await rename('audit_entries', 'audit_entries_away');
    try {
      const { status } = await makeCaller(url).post('/v1/authenticate', { email, password: 'wrong' });

      expect(status).toBe(401);
      expect(logged.map(({ msg }) => msg)).toContain('A failed attempt could not be added to the audit trail.');
    } finally {
      await rename('audit_entries_away', 'audit_entries');
    }
  });

  it('has what changes rights, and not what is done with themes', async () => {
    const { asSuperadmin, asOwner, users, project } = await givenWorld();
    const version_id = await givenThemeVersion(project);
    await givenMember(users.outsider, project, 'viewer');
    const remove = () => asOwner.rpc.members.remove.mutate({ user_id: users.outsider.id });

    expect(await audited(remove)).toMatchObject([{ type: 'member.removed', user_id: users.owner.id, surface: 'rpc' }]);
    expect(await audited(() => asSuperadmin.rpc.themes.deprecateVersion.mutate({ version_id }))).toEqual([]);
    const id = await insert('platforms', { name: 'A platform' });
    expect(await audited(() => asSuperadmin.rpc.platforms.update.mutate({ id, name: 'North' }))).toMatchObject([
      { type: 'platform.updated' },
    ]);
  });
});
