import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import type { AuditType } from '../../shared/audit.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep } from '../harness/codes.ts';
import { givenService, testDatabase, testService, withOwnService } from '../harness/service.ts';
import { COMPLETED, givenPaid, givenStripe } from '../harness/stripeService.ts';
import {
  givenInvitation,
  givenKey,
  givenMember,
  givenProduct,
  givenThemeVersion,
  givenToken,
  givenTrial,
  givenUser,
  givenWorld,
  insert,
  PASSWORD,
  type TestUser,
  testDb,
} from '../harness/world.ts';

withOwnService();

holdTimeStep();

const NEW_PASSWORD = 'violet lantern under seven bridges';

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

describe('an event of an account', () => {
  it('session.started is of the user who signs in, whatever token they send', async () => {
    const { asOwner } = await givenWorld();
    const { email, id } = await givenProtectedUser();
    const signInAgain = () => asOwner.rpc.auth.authenticate.mutate({ email, password: PASSWORD, code: codeAt(0) });

    expect(await written(signInAgain)).toEqual([event('session.started', { user_id: id })]);
  });

  it('sessions.ended with their number, and key.revoked for each key, in its project', async () => {
    const { asOwner, users, project } = await givenWorld();
    const { id: user_id } = users.owner;
    const [ofProject, ofAll] = [await givenKey(users.owner, { project_id: project.id }), await givenKey(users.owner)];
    await givenToken(users.owner);
    const data = { user_id };

    expect(await written(() => asOwner.rpc.account.signOutEverywhere.mutate({ revoke_keys: true }))).toEqual([
      event('sessions.ended', { user_id, data: { user_id, count: 2 } }),
      event('key.revoked', { ...inProject(project), user_id, subject_id: ofProject.id, data }),
      event('key.revoked', { user_id, subject_id: ofAll.id, data }),
    ]);
  });

  it('user.password_changed, and key.revoked for each key', async () => {
    const user = await givenUser();
    const { id } = await givenKey(user);
    const { rpc } = await asUser(user);
    const change = { password: PASSWORD, new_password: NEW_PASSWORD, revoke_keys: true };

    expect(await written(() => rpc.account.changePassword.mutate(change))).toEqual([
      event('user.password_changed', { user_id: user.id, subject_id: user.id }),
      event('key.revoked', { user_id: user.id, subject_id: id, data: { user_id: user.id } }),
    ]);
  });

  it('user.password_changed alone, if a superadmin changes nothing else', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const { id } = await givenUser({ name: 'Ada' });
    const { update } = asSuperadmin.rpc.users;

    expect(await written(() => update.mutate({ id, name: 'Ada', password: NEW_PASSWORD }))).toEqual([
      event('user.password_changed', { user_id: users.superadmin.id, subject_id: id }),
    ]);
  });

  it('key.created, key.rotated and key.revoked, in the project of the key', async () => {
    const { asMember, users, project } = await givenWorld();
    const { keys } = asMember.rpc;
    const { id: user_id } = users.member;
    let id = 0;
    const create = async () =>
      ({ id } = (await keys.create.mutate({ name: 'Import', scopes: ['boards:read'], project_id: project.id })).key);
    const ofKey = (type: AuditType) => [
      event(type, { ...inProject(project), user_id, subject_id: id, data: { user_id } }),
    ];

    expect(await written(create)).toEqual(ofKey('key.created'));
    expect(await written(() => keys.rotate.mutate({ id, previous_valid_hours: 1 }))).toEqual(ofKey('key.rotated'));
    expect(await written(() => keys.revoke.mutate({ id }))).toEqual(ofKey('key.revoked'));
  });

  it('project.updated with the changed fields, whatever the order of its tools', async () => {
    const { asSuperadmin, users, project } = await givenWorld();
    const { id } = project;
    const update = (more: object) => () => asSuperadmin.rpc.projects.update.mutate({ id, ...more });
    const changed = (...fields: string[]) => [
      event('project.updated', {
        ...inProject(project),
        user_id: users.superadmin.id,
        subject_id: id,
        data: { fields },
      }),
    ];

    expect(await written(update({ tools: ['crm', 'site'] }))).toEqual(changed('tools'));
    expect(await written(update({ name: 'West', is_active: false }))).toEqual(changed('is_active', 'name'));
    expect(await written(update({ tools: ['site', 'crm'] }))).toEqual([]);
  });

  it('invitation.created for another role, and invitation.withdrawn for one that a member accepts', async () => {
    const { asOwner, asMember, users, project } = await givenWorld();
    const { id: user_id } = users.member;
    const invite = (role: 'viewer' | 'member') => () =>
      asOwner.rpc.members.invite.mutate({ email: 'invited@example.test', role });
    await invite('viewer')();

    expect(await written(invite('viewer'))).toEqual([]);
    expect(await written(invite('member'))).toMatchObject([{ type: 'invitation.created', data: { role: 'member' } }]);
    const id = await givenInvitation(project, users.member, { role: 'owner' });
    expect(await written(() => asMember.rpc.account.acceptInvitation.mutate({ id }))).toEqual([
      event('invitation.withdrawn', { ...inProject(project), user_id, subject_id: id }),
    ]);
  });

  it('member.added if a superadmin sets a role', async () => {
    const { asSuperadmin, users, project } = await givenWorld();
    const { id } = await givenUser();
    const choice = { project_id: project.id, user_id: id, role: 'owner' } as const;

    expect(await written(() => asSuperadmin.rpc.members.set.mutate(choice))).toEqual([
      event('member.added', {
        ...inProject(project),
        user_id: users.superadmin.id,
        data: { user_id: id, role: 'owner' },
      }),
    ]);
  });

  it('none for what is refused after the access was checked: a wrong password or code, a taken address, the last owner', async () => {
    const { asSuperadmin, asOwner, asOutsider, users, project } = await givenWorld();
    const user = await givenProtectedUser();
    const { account } = (await asUser(user)).rpc;
    const version_id = await givenThemeVersion(project, { approval_status: 'pending', theme_status: 'draft' });
    const revoked = await givenKey(users.owner, { revoked_at: new Date() });
    const wrong = { password: PASSWORD, code: '000000' };
    const { authenticate } = (await asNobody()).rpc.auth;
    const refused: (() => Promise<unknown>)[] = [
      () => authenticate.mutate({ email: user.email, password: 'wrong' }),
      () => authenticate.mutate({ email: user.email, ...wrong }),
      () => account.changePassword.mutate({ password: 'wrong', new_password: NEW_PASSWORD, revoke_keys: true }),
      () => account.startSecondFactor.mutate({ password: 'wrong' }),
      () => account.confirmSecondFactor.mutate({ code: '000000' }),
      () => account.renewRecoveryCodes.mutate(wrong),
      () => account.dropSecondFactor.mutate(wrong),
      () => asSuperadmin.rpc.users.create.mutate({ name: 'Ada', email: user.email, password: NEW_PASSWORD }),
      () => asSuperadmin.rpc.users.update.mutate({ id: user.id, name: 'Eve', password: 'password' }),
      () => asOwner.rpc.keys.rotate.mutate({ id: revoked.id, previous_valid_hours: 1 }),
      () => asOwner.rpc.members.remove.mutate({ user_id: users.owner.id }),
      () => asOwner.rpc.themes.publishVersion.mutate({ version_id }),
      () => asOutsider.rpc.account.setDefaultProject.mutate({ project_id: project.id }),
    ];

    for (const call of refused) expect(await written(() => refusalOf(call())), String(call)).toEqual([]);
  });
});

const inProject = ({ id, platform_id }: { id: number; platform_id: number }) => ({ project_id: id, platform_id });

describe('billing', () => {
  it('plan.set for other terms', async () => {
    const { asSuperadmin } = await givenWorld();
    const plan = { product: await givenProduct(), plan: 'pro', period: 'month' } as const;
    const set = (terms: { price_cents: number; is_active?: boolean }) => () =>
      asSuperadmin.rpc.plans.set.mutate({ ...plan, ...terms });

    expect(await written(set({ price_cents: 1900 }))).toEqual([]);
    for (const terms of [{ price_cents: 200 }, { price_cents: 200, is_active: false }])
      expect(await written(set(terms))).toMatchObject([{ type: 'plan.set' }]);
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

it('theme_version.deprecated again for another notice', async () => {
  const { asOwner, project } = await givenWorld();
  const version_id = await givenThemeVersion(project);
  const notice = (reason: string) => () => asOwner.rpc.themes.deprecateWithNotice.mutate({ version_id, reason });
  await asOwner.rpc.themes.deprecateVersion.mutate({ version_id });

  for (const reason of ['Too old', 'Much too old']) {
    expect(await written(notice(reason))).toMatchObject([{ type: 'theme_version.deprecated' }]);
    expect(await written(notice(reason))).toEqual([]);
  }
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
