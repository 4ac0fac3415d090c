import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient, isRefusal } from '../../client/client.ts';
import { type Deckhand, type Project, refusalOf, startDeckhand } from '../../client/testing/testing.ts';
import { errorOf } from '../harness/client.ts';

let deckhand: Deckhand;
let other: Deckhand;
let project: Project;

beforeAll(async () => {
  [deckhand, other] = await Promise.all([startDeckhand(), startDeckhand()]);
  project = await deckhand.givenProject();
});
afterEach(() => deckhand.clock.reset());
afterAll(() => Promise.all([deckhand.stop(), other.stop()]));

describe('start states', () => {
  it('have unique defaults, and take what is given', async () => {
    const [first, second] = [await deckhand.givenProject(), await deckhand.givenProject({ tools: ['seo'] })];
    const named = await deckhand.givenProject({ name: 'Harbour', platform_id: first.platform_id });

    expect(second).toMatchObject({ tools: ['seo'], is_active: true });
    expect(new Set([first.name, second.name, first.platform_id, second.platform_id]).size).toBe(4);
    expect(named).toMatchObject({ name: 'Harbour', platform_id: first.platform_id });
  });

  it('sign members in, who act in the project with their role', async () => {
    const viewer = await deckhand.givenMember(project, { role: 'viewer', name: 'Ada' });
    const owner = await deckhand.givenOwner(project);
    const members = await Promise.all(Array.from({ length: 12 }, () => deckhand.givenMember(project)));

    const { id, email } = viewer;
    expect((await viewer.client.account.whoAmI.query()).account).toMatchObject({ id, name: 'Ada', email });
    const refused = await errorOf(viewer.client.boards.create.mutate({ title: 'A board' }));
    expect(refused).toMatchObject({ status: 403, reason: 'role_missing' });
    const { members: listed } = await owner.client.members.list.query({ limit: 200 });
    expect(listed).toContainEqual(
      expect.objectContaining({ project_id: project.id, email: owner.email, role: 'owner' }),
    );
    expect(new Set(members.map(({ email }) => email)).size).toBe(12);
  });

  it('make services, whose key has the scopes and acts in the project alone', async () => {
    const { client, secret } = await deckhand.givenService(project, { scopes: ['cards:read'] });
    const elsewhere = await deckhand.givenProject();

    expect(secret).toMatch(/^dkh_/);
    expect(await client.cards.list.query({ status: 'none' })).toMatchObject({ cards: [] });
    expect(await errorOf(client.cards.create.mutate({ title: 'A card' }))).toMatchObject({ reason: 'scope_missing' });
    expect(await errorOf(client.as({ projectId: elsewhere.id }).cards.list.query({}))).toMatchObject({ status: 403 });
  });

  it('write events, which tests can read', async () => {
    const { client, id } = await deckhand.givenMember(project);
    const { card } = await client.cards.create.mutate({ title: 'A card' });

    const created = (await deckhand.events(project)).filter(({ type }) => type === 'card.created');

    expect(created.at(-1)).toMatchObject({ project_id: project.id, user_id: id, subject_id: card.id, surface: 'rpc' });
  });

  it('make boards with groups and cards in the given order', async () => {
    const board = {
      title: 'Launch',
      groups: [
        { title: 'To do', color: 'blue', cards: [{ title: 'First' }, { title: 'Second', priority: 'high' as const }] },
        { title: 'Done', cards: [] },
      ],
    };

    expect(await deckhand.givenBoard(project, board)).toMatchObject({ ...board, project_id: project.id });
  });

  it('make templates and superadmins, whose sync copies to projects with the tool', async () => {
    const template = await deckhand.givenTemplate({ groups: [{ title: 'Start', cards: ['Look around'] }] });
    const { id } = await deckhand.givenProject({ tools: [template.tool_key!] });
    const { client } = await deckhand.givenSuperadmin();

    await client.masterBoards.sync.mutate({ board_id: template.id });

    const { boards } = await client.as({ projectId: id }).boards.list.query();
    expect(boards).toEqual([expect.objectContaining({ title: template.title, cards_count: 1 })]);
  });

  it('make trials, which the test checkout can upgrade', async () => {
    const { plan, period, product } = await deckhand.givenPlan();
    await deckhand.givenTrial({ platform_id: project.platform_id }, { days: 7 });
    const { client } = await deckhand.givenOwner(project);

    const { checkout_url } = await client.subscriptions.upgradeTrial.mutate({ plan, period, product });

    expect(checkout_url.startsWith(deckhand.url)).toBe(true);
  });
});

describe('the clock', () => {
  it('is that of the service and of its database, and of no other', async () => {
    const [here, there] = [await deckhand.givenOwner(project), await other.givenOwner(await other.givenProject())];
    deckhand.clock.set('2026-01-31T09:30:00Z');

    const { card } = await here.client.cards.create.mutate({ title: 'Now', due_date: '2026-01-31T09:30:01Z' });
    const { card: real } = await there.client.cards.create.mutate({ title: 'Now' });
    deckhand.clock.advance({ seconds: 2 });

    expect(card).toMatchObject({ created_at: new Date('2026-01-31T09:30:00Z'), is_overdue: false });
    expect((await here.client.cards.get.query({ id: card.id })).card.is_overdue).toBe(true);
    expect(Math.abs(real.created_at.getTime() - Date.now())).toBeLessThan(60_000);
    expect(deckhand.clock.now()).toEqual(new Date('2026-01-31T09:30:02Z'));
  });

  it('decides when a card is overdue: at a time at once, on a date when that day has ended in UTC', async () => {
    const { client } = await deckhand.givenOwner(project);
    deckhand.clock.set('2026-01-30T12:00:00Z');
    const dates = { date: '2026-01-31', time: '2026-01-31T00:00:00Z', moment: new Date('2026-01-31T00:00:00Z') };
    const ids = new Map<number, string>();
    for (const [title, due_date] of Object.entries(dates)) {
      const { card } = await client.cards.create.mutate({ title, due_date });
      expect(card.due_date).toEqual(dates.moment);
      ids.set(card.id, title);
    }
    const overdueAt = async (now: string) => {
      deckhand.clock.set(now);
      const { cards } = await client.cards.list.query({ is_overdue: true, limit: 200 });
      return cards.flatMap(({ id }) => ids.get(id) ?? []);
    };

    expect(await overdueAt('2026-01-31T00:00:00.000Z')).toEqual([]);
    expect(await overdueAt('2026-01-31T00:00:00.001Z')).toEqual(['time', 'moment']);
    expect(await overdueAt('2026-01-31T23:59:59.999Z')).toEqual(['time', 'moment']);
    expect(await overdueAt('2026-02-01T00:00:00.000Z')).toEqual(['date', 'time', 'moment']);
  });

  it('ends tokens, and a client with signIn signs in again', async () => {
    const { client, email, password } = await deckhand.givenMember(project);
    const { token } = await client.auth.authenticate.mutate({ email, password });
    const withToken = createClient({ url: deckhand.url, token });
    await withToken.account.whoAmI.query();

    deckhand.clock.advance({ hours: 13 });

    expect(await errorOf(withToken.account.whoAmI.query())).toMatchObject({ status: 401 });
    expect(await client.account.whoAmI.query()).toMatchObject({ account: { email } });
  });

  it('ends API keys and the lifetime of idempotency keys', async () => {
    const expires_at = new Date(Date.now() + 36 * 3_600_000);
    const scopes = ['cards:read', 'cards:write'] as const;
    const { client } = await deckhand.givenService(project, { scopes: [...scopes], expires_at });
    const create = () => client.cards.create.mutate({ title: 'Once' }, { idempotencyKey: 'once' });
    const [first, repeated] = [await create(), await create()];

    deckhand.clock.advance({ hours: 25 });
    const later = await create();
    deckhand.clock.advance({ hours: 12 });

    expect(repeated.card.id).toBe(first.card.id);
    expect(later.card.id).not.toBe(first.card.id);
    expect(await errorOf(create())).toMatchObject({ status: 401, reason: 'key_ended' });
  });

  it('refuses what is no date, and unknown units', () => {
    expect(() => deckhand.clock.set('tomorrow')).toThrow("The clock can't be set to tomorrow: that is no date.");
    expect(() => deckhand.clock.advance({ fortnights: 1 } as object)).toThrow('not fortnights');
    expect(Math.abs(deckhand.clock.now().getTime() - Date.now())).toBeLessThan(1000);
  });
});

describe('a Deckhand', () => {
  it('is empty after empty(), and serves the next test', async () => {
    const before = await other.givenMember(await other.givenProject());
    other.clock.set('2030-01-01T00:00:00Z');

    await other.empty();

    const { client } = await other.givenSuperadmin();
    const { users } = await client.users.list.query({});
    expect(await client.projects.list.query({})).toMatchObject({ projects: [] });
    expect(users).toHaveLength(2);
    expect(users.map(({ id }) => id)).not.toContain(before.id);
    expect(await errorOf(before.client.account.whoAmI.query())).toMatchObject({ reason: 'wrong_credentials' });
    expect(Math.abs(other.clock.now().getTime() - Date.now())).toBeLessThan(60_000);
  });

  it('refuses with the errors that refusalOf makes', async () => {
    const { client } = await deckhand.givenMember(project);
    const refusals = [
      await errorOf(client.cards.get.query({ id: 2_000_000_000 })),
      await errorOf(client.platforms.create.mutate({ name: 'A platform' })),
      await errorOf(client.cards.create.mutate({ title: '' })),
      await errorOf(createClient({ url: deckhand.url }).account.whoAmI.query()),
    ].filter(isRefusal);

    const made = refusals.map(({ status, reason, message, fields }) =>
      refusalOf({ status: status as 403, reason: reason!, message, ...(status === 422 && { fields }) }),
    );

    expect(made.map(({ status, reason, message, fields }) => ({ status, reason, message, fields }))).toEqual(
      refusals.map(({ status, reason, message, fields }) => ({ status, reason, message, fields })),
    );
    expect(made.map(({ data }) => data)).toEqual(refusals.map(({ data }) => ({ ...data, path: undefined })));
    expect(refusals.map(({ status }) => status)).toEqual([404, 403, 422, 401]);
  });

  it('takes settings, whose limits follow the clock; can be stopped twice, and not be emptied then', async () => {
    const limited = await startDeckhand({ settings: { RATE_LIMIT_PER_MINUTE: '3' } });
    const client = createClient({ url: limited.url, retries: 0 });
    const call = () => errorOf(client.account.whoAmI.query());
    const statuses = [await call(), await call(), await call(), await call()].map(({ status }) => status);
    limited.clock.advance({ minutes: 1 });
    statuses.push((await call()).status);
    const emptying = limited.empty();

    await Promise.all([limited.stop(), emptying.catch(() => undefined)]);
    await limited[Symbol.asyncDispose]();

    expect(statuses).toEqual([401, 401, 401, 429, 401]);
    await expect(limited.empty()).rejects.toThrow('This Deckhand was stopped.');
    await expect(fetch(limited.url)).rejects.toThrow('fetch failed');
  });

  it.each([
    [{ TOKEN_LIFETIME_HOURS: 'many' }, 'TOKEN_LIFETIME_HOURS'],
    [{ RATE_LIMT_PER_MINUTE: '5' }, 'RATE_LIMT_PER_MINUTE is not a setting. Did you mean RATE_LIMIT_PER_MINUTE?'],
    [{ NOPE: 'x' }, 'NOPE is not a setting. docs/settings.md of Deckhand lists them.'],
    [{ PORT: '4000' }, "PORT can't be set: the address and the database of a test are fixed."],
    [{ RATE_LIMIT_PER_MINUTE: 5 as never }, 'RATE_LIMIT_PER_MINUTE must be text, as in the environment.'],
  ])('does not start with the settings %j', async (settings, message) => {
    await expect(startDeckhand({ settings: settings as object })).rejects.toThrow(message);
  });
});
