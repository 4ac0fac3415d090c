import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { codeAt, givenProtectedUser } from '../harness/codes.ts';
import { testService } from '../harness/service.ts';
import {
  givenCard,
  givenProduct,
  givenProject,
  givenToken,
  givenTrial,
  givenUser,
  givenWorld,
  PASSWORD,
  stored,
} from '../harness/world.ts';

const LIST = '/services/operations/v1/operations/boards/list';
const UNKNOWN = 2147483647;

const asSuperadmin = async () => (await givenWorld()).asSuperadmin.rpc;
const someAddress = () => `${randomUUID()}@example.test`;
const nobody = async () => makeCaller((await testService()).url);

describe('provisioning', () => {
  it('creates a platform, a project, an owner, a trial and a theme, and the owner can use them', async () => {
    const admin = await asSuperadmin();
    const email = someAddress();

    const { platform } = await admin.platforms.create.mutate({ name: 'A customer' });
    const { project } = await admin.projects.create.mutate({
      platform_id: platform.id,
      name: 'A site',
      tools: ['seo', 'shop'],
    });
    const { user } = await admin.users.create.mutate({ name: 'An owner', email, password: PASSWORD });
    await admin.members.set.mutate({ project_id: project.id, user_id: user.id, role: 'owner' });
    const { plan } = await admin.plans.set.mutate({
      product: randomUUID(),
      plan: 'pro',
      period: 'month',
      price_cents: 900,
      currency: 'usd',
    });
    const { subscription } = await admin.subscriptions.setTrial.mutate({
      platform_id: platform.id,
      product: plan.product,
    });
    const { theme } = await admin.themes.create.mutate({ platform_id: platform.id, name: 'A theme' });

    expect(project).toMatchObject({ platform_id: platform.id, is_active: true, tools: ['seo', 'shop'] });
    expect(plan).toMatchObject({ price_cents: 900, currency: 'USD', is_active: true });
    expect(subscription).toMatchObject({ status: 'trial', plan: null, paid_at: null });
    const { body } = await (await nobody()).post('/v1/authenticate', { email, password: PASSWORD });
    const owner = makeCaller((await testService()).url, body.data.token);
    const { boards } = await owner.rpc.boards.list.query({});
    // A new project has the templates that it has access to, and nothing else.
    expect(boards.filter(({ master_board_id }) => master_board_id === null)).toEqual([]);
    const { version } = await owner.rpc.themes.submitVersion.mutate({ theme_id: theme.id, version: '1.0.0' });
    expect(version).toMatchObject({ approval_status: 'pending', theme_status: 'draft' });
  });
});

describe('users', () => {
  it.each(['用户', 'jo\u0308rg'])('a user with an address like %s@例え.jp signs in, composed or not', async (name) => {
    const admin = await asSuperadmin();
    const email = `${name}-${randomUUID()}@例え.jp`;
    const { id, email: stored } = (await admin.users.create.mutate({ name: 'x', email, password: PASSWORD })).user;
    const signIn = async (email: string) =>
      (await (await nobody()).post('/v1/authenticate', { email, password: PASSWORD })).status;

    expect(stored).toBe(email.normalize('NFC'));
    expect([await signIn(email), await signIn(email.normalize('NFD'))]).toEqual([200, 200]);
    const local = `${randomUUID()}@localhost`;
    expect((await admin.users.update.mutate({ id, email: local })).user.email).toBe(local);
    expect([await signIn(local), await signIn(email)]).toEqual([200, 401]);
  });

  it.each(['a\0@b.test', 'a b@c.test', 'a@b@c.test', '@c.test', '\ud800@c.test'])(
    '422 for the address %j',
    async (email) => {
      const { id } = await givenUser();
      const admin = await asSuperadmin();
      const errors = { email: ['email must be an e-mail address.'] };

      const signIn = await (await nobody()).post('/v1/authenticate', { email, password: PASSWORD });
      expect(signIn).toMatchObject({ status: 422, body: { errors } });
      expect(await refusalOf(admin.users.create.mutate({ name: 'x', email, password: PASSWORD }))).toMatchObject({
        errors,
      });
      expect((await refusalOf(admin.users.update.mutate({ id, email }))).status).toBe(422);
    },
  );

  it('422 for an e-mail address in use, an unknown project, and a password or address of wrong length', async () => {
    const admin = await asSuperadmin();
    const { email } = await givenUser();
    const create = (more: object) =>
      refusalOf(admin.users.create.mutate({ name: 'x', email: someAddress(), password: PASSWORD, ...more }));

    expect((await create({ email: email.toUpperCase() })).errors).toEqual({
      email: ['email belongs to another user.'],
    });
    expect((await create({ default_project_id: UNKNOWN })).errors).toEqual({
      default_project_id: ['default_project_id does not exist.'],
    });
    expect((await create({ password: 'short' })).errors).toEqual({
      password: ['password must be at least 8 characters.'],
    });
    expect((await create({ email: `${'x'.repeat(320)}@example.test` })).status).toBe(422);
  });

  it('422 for a password of more than 1000 characters, counted in code points', async () => {
    const admin = await asSuperadmin();
    const { id } = await givenUser();

    await admin.users.update.mutate({ id, password: '🔑'.repeat(1000) });
    const refusal = await refusalOf(admin.users.update.mutate({ id, password: 'x'.repeat(1001) }));

    expect(refusal.errors).toEqual({ password: ['password must be at most 1000 characters.'] });
  });

  it('422 for a password that is common, or the e-mail address or name, and nothing changes', async () => {
    const admin = await asSuperadmin();
    const { id, email } = await givenUser();
    const create = (more: object) =>
      refusalOf(admin.users.create.mutate({ name: 'x', email: someAddress(), password: PASSWORD, ...more }));
    const update = (more: object) => refusalOf(admin.users.update.mutate({ id, name: 'Another name', ...more }));
    const COMMON = ['password is one of the most common passwords: choose one that nobody would guess.'];
    const OWN = ['password must not be the e-mail address or the name.'];
    const before = await stored('users', id);

    expect(await create({ password: 'Password1' })).toMatchObject({ status: 422, errors: { password: COMMON } });
    expect(await create({ email: 'somebody@example.test', password: 'somebody' })).toMatchObject({
      errors: { password: OWN },
    });
    expect(await update({ password: 'iloveyou' })).toMatchObject({ status: 422, errors: { password: COMMON } });
    for (const password of [email, email.split('@')[0]!, 'another name']) {
      expect(await update({ password })).toMatchObject({ status: 422, errors: { password: OWN } });
    }

    expect(await stored('users', id)).toEqual(before);
  });

  it('update changes only what is sent', async () => {
    const admin = await asSuperadmin();
    const project = await givenProject();
    const user = await givenUser({ project, default_project_id: project.id });

    const { user: changed } = await admin.users.update.mutate({ id: user.id, name: 'Renamed', language: 'de' });
    const { user: cleared } = await admin.users.update.mutate({ id: user.id, language: null, email: null });

    expect(changed).toMatchObject({ name: 'Renamed', language: 'de', email: user.email, is_active: true });
    expect(cleared).toMatchObject({ language: null, email: user.email, default_project_id: project.id });
  });

  it('update keeps the e-mail address if an empty one is sent', async () => {
    const admin = await asSuperadmin();
    const { id, email } = await givenUser();

    expect((await admin.users.update.mutate({ id, email: ' ' })).user.email).toBe(email);
    expect(await refusalOf(admin.users.update.mutate({ id, email: 'nobody' }))).toMatchObject({
      errors: { email: ['email must be an e-mail address.'] },
    });
  });

  it('lose access at once when they are deactivated, demoted or get a new password', async () => {
    const admin = await asSuperadmin();
    const { url } = await testService();
    const project = await givenProject();
    const changes = [
      { more: { is_active: false }, status: 401 },
      { more: { password: 'another password' }, status: 401 },
      { more: { superadmin: false }, status: 403 },
    ];

    for (const { more, status } of changes) {
      const { id, email } = await givenUser({ superadmin: true, default_project_id: project.id });
      const caller = makeCaller(url, await givenToken({ id, email }));
      expect((await caller.post(LIST)).status).toBe(200);
      await admin.users.update.mutate({ id, ...more });
      expect((await caller.post(LIST)).status, JSON.stringify(more)).toBe(status);
    }
  });

  it('can be signed out everywhere, and their second factor can be dropped', async () => {
    const admin = await asSuperadmin();
    const user = await givenProtectedUser();
    const caller = makeCaller((await testService()).url, await givenToken(user));

    await admin.users.dropSecondFactor.mutate({ id: user.id });
    await admin.users.signOut.mutate({ id: user.id });

    expect((await refusalOf(caller.rpc.account.whoAmI.query())).status).toBe(401);
    const signedIn = await (await nobody()).post('/v1/authenticate', {
      email: user.email,
      password: PASSWORD,
      code: codeAt(0),
    });
    expect(signedIn.status).toBe(200);
  });

  it('list searches by part of name or e-mail address, in pages', async () => {
    const admin = await asSuperadmin();
    const part = randomUUID();
    for (const number of [1, 2, 3]) await givenUser({ email: `${part}-${number}@example.test` });

    const first = await admin.users.list.query({ search: part.toUpperCase(), limit: 2 });
    const second = await admin.users.list.query({ search: part, limit: 2, cursor: first.next_cursor });

    const numbers = [...first.users, ...second.users].map(({ email }) => email.at(part.length + 1));
    expect(numbers).toEqual(['1', '2', '3']);
    expect(second.next_cursor).toBeNull();
    expect(JSON.stringify(first)).not.toContain('argon2');
  });

  it('list finds the user with an id, too', async () => {
    const admin = await asSuperadmin();
    const user = await givenUser({ name: 'A 100%_user' });
    const found = async (search: string) => (await admin.users.list.query({ search, limit: 200 })).users;

    expect((await found(String(user.id))).map(({ id }) => id)).toContain(user.id);
    expect(await found('100%_user')).toEqual([expect.objectContaining({ id: user.id })]);
    for (const none of [`${user.id}.0`, '99999999999', '100__user']) expect(await found(none)).toEqual([]);
  });

  it('list with an id has that user alone, however many others have the number in their name', async () => {
    const admin = await asSuperadmin();
    const user = await givenUser();
    await givenUser({ name: `Crane ${user.id}` });

    expect((await admin.users.list.query({ id: user.id })).users).toEqual([expect.objectContaining({ id: user.id })]);
    expect((await admin.users.list.query({ id: user.id, search: 'nobody' })).users).toEqual([]);
  });
});

describe('members', () => {
  it('set changes the role; remove clears their cards and default project', async () => {
    const admin = await asSuperadmin();
    const project = await givenProject();
    const user = await givenUser({ project, default_project_id: project.id });
    const card = await givenCard(project, { owner_id: user.id });
    const choice = { project_id: project.id, user_id: user.id };

    await admin.members.set.mutate({ ...choice, role: 'viewer' });
    expect((await admin.members.list.query({ project_id: project.id })).members).toEqual([
      { ...choice, name: 'A user', email: user.email, role: 'viewer' },
    ]);
    await admin.members.remove.mutate(choice);

    expect((await admin.members.list.query({ project_id: project.id })).members).toEqual([]);
    expect(await stored('cards', card)).toMatchObject({ owner_id: null });
    expect(await stored('users', user.id)).toMatchObject({ default_project_id: null });
    expect((await refusalOf(admin.members.remove.mutate(choice))).status).toBe(404);
  });

  it('404 when removing a user who is not a member, and their default project stays', async () => {
    const admin = await asSuperadmin();
    const project = await givenProject();
    const user = await givenUser({ superadmin_billing: true, default_project_id: project.id });

    const removal = admin.members.remove.mutate({ project_id: project.id, user_id: user.id });

    expect((await refusalOf(removal)).status).toBe(404);
    expect(await stored('users', user.id)).toMatchObject({ default_project_id: project.id });
  });

  it('404 for an unknown project, 422 for an unknown user', async () => {
    const admin = await asSuperadmin();
    const [project, user] = [await givenProject(), await givenUser()];
    const set = (more: object) =>
      refusalOf(admin.members.set.mutate({ project_id: project.id, user_id: user.id, role: 'member', ...more }));

    expect((await set({ project_id: UNKNOWN })).status).toBe(404);
    expect((await set({ user_id: UNKNOWN })).errors).toEqual({ user_id: ['user_id does not exist.'] });
  });
});

describe('projects', () => {
  it('update keeps the tools unless new ones are sent', async () => {
    const admin = await asSuperadmin();
    const { id } = await givenProject({ tools: ['seo', 'shop'] });

    const renamed = await admin.projects.update.mutate({ id, name: 'Renamed' });
    const changed = await admin.projects.update.mutate({ id, tools: ['shop', 'blog', 'shop'] });
    const emptied = await admin.projects.update.mutate({ id, tools: [], is_active: false });

    expect(renamed.project).toMatchObject({ name: 'Renamed', tools: ['seo', 'shop'], is_active: true });
    expect(changed.project).toMatchObject({ name: 'Renamed', tools: ['blog', 'shop'] });
    expect(emptied.project).toMatchObject({ tools: [], is_active: false });
  });

  it('list returns those of one platform or of all, in pages', async () => {
    const admin = await asSuperadmin();
    const project = await givenProject({ tools: ['seo'] });

    const { projects } = await admin.projects.list.query({ platform_id: project.platform_id });

    expect(projects).toEqual([expect.objectContaining({ id: project.id, tools: ['seo'] })]);
    expect((await admin.projects.list.query({ limit: 1 })).next_cursor).toEqual(expect.any(String));
  });

  it('list finds one by its id, and some by a part of their names', async () => {
    const admin = await asSuperadmin();
    const { id } = await givenProject({ name: `${randomUUID()} 5%_off`, is_active: false });
    const { name } = await stored('projects', id);
    const found = async (input: object) => (await admin.projects.list.query(input)).projects.map((found) => found.id);

    expect(await found({ id })).toEqual([id]);
    expect(await found({ id: UNKNOWN })).toEqual([]);
    expect(await found({ search: name.toUpperCase() })).toEqual([id]);
    expect(await found({ search: name.replace('%', '_') })).toEqual([]);
  });
});

describe('plans and trials', () => {
  it('setting the same plan again changes it', async () => {
    const admin = await asSuperadmin();
    const line = { product: randomUUID(), plan: 'pro', period: 'year' as const };

    const { plan } = await admin.plans.set.mutate({ ...line, price_cents: 100, currency: 'USD' });
    const { plan: withdrawn } = await admin.plans.set.mutate({ ...line, price_cents: 200, is_active: false });
    const { plan: repriced } = await admin.plans.set.mutate({ ...line, price_cents: 300 });

    expect(withdrawn).toMatchObject({ id: plan.id, price_cents: 200, is_active: false });
    expect(repriced).toMatchObject({ id: plan.id, price_cents: 300, currency: 'USD', is_active: false });
    expect((await admin.plans.list.query({ product: line.product })).plans).toHaveLength(1);
  });

  it.each([
    [{ price_cents: -1 }, 'price_cents'],
    [{ price_cents: 1.5 }, 'price_cents'],
    [{ currency: 'euro' }, 'currency'],
    [{ currency: 'JPY' }, 'currency'],
    [{ period: 'week' }, 'period'],
  ])('422 for a plan with %j', async (more, field) => {
    const admin = await asSuperadmin();
    const line: any = { product: 'x', plan: 'pro', period: 'year', price_cents: 1, ...more };

    expect((await refusalOf(admin.plans.set.mutate(line))).errors).toHaveProperty(field);
  });

  it('setting a trial again moves its end', async () => {
    const admin = await asSuperadmin();
    const { platform_id } = await givenProject();
    const product = await givenProduct();

    const { subscription: started } = await admin.subscriptions.setTrial.mutate({ platform_id, product, days: 1 });
    const { subscription: moved } = await admin.subscriptions.setTrial.mutate({ platform_id, product, days: 3 });

    expect(moved.id).toBe(started.id);
    const { trial_ends_at, updated_at } = await stored('subscriptions', moved.id);
    expect((trial_ends_at.getTime() - updated_at.getTime()) / 86_400_000).toBeCloseTo(3);
    expect((await admin.subscriptions.list.query({ platform_id })).subscriptions).toEqual([moved]);
  });

  it('422 for an unknown product or platform', async () => {
    const admin = await asSuperadmin();
    const { platform_id } = await givenProject();
    const { product } = await givenTrial(await givenProject());
    const set = (more: object) => refusalOf(admin.subscriptions.setTrial.mutate({ platform_id, product, ...more }));

    expect((await set({ product: 'nothing' })).errors).toHaveProperty('product');
    expect((await set({ platform_id: UNKNOWN })).errors).toHaveProperty('platform_id');
  });
});
