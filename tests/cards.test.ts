import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { refusalOf } from './harness/caller.ts';
import { countStatements } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenTag,
  givenUser,
  givenWorld,
  stored,
  testDb,
  type World,
} from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';

async function countCards(project: { id: number }): Promise<number> {
  const [row] = await query(
    await testDb(),
    sql<{ count: number }>`select count(*)::int as count from cards where project_id = ${project.id}`,
  );
  return row!.count;
}

describe('POST …/cards/create', () => {
  let world: World;
  beforeAll(async () => {
    world = await givenWorld();
  });

  it('201 with the card, and the documented defaults for all that was not sent', async () => {
    const { asMember, project, users } = world;

    const answer = await asMember.post(CREATE, { title: '  Write the post ' });

    expect(answer).toMatchObject({ status: 201, body: { error: false, message: 'Card created.' } });
    const { card } = answer.body.data;
    expect(card).toEqual({
      id: expect.any(Number),
      project_id: project.id,
      platform_id: project.platform_id,
      master_card_id: null,
      group_id: null,
      owner_id: null,
      tag_id: null,
      created_by: users.member.id,
      sort_order: expect.any(Number),
      position: expect.any(Number),
      is_master: false,
      is_active: true,
      is_overdue: false,
      unique_identifier: expect.stringMatching(/^[0-9a-f-]{36}$/),
      evaluation_check: null,
      tour_key: null,
      short_description: null,
      title: 'Write the post',
      description: null,
      status: 'open',
      priority: 'normal',
      card_type: 'regular',
      due_date: null,
      snoozed_until: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: card.created_at,
      deleted_at: null,
    });
    expect(await stored('cards', card.id)).toMatchObject({ title: 'Write the post', project_id: project.id });
  });

  it('201 with every field that was sent', async () => {
    const { asMember, project, users } = world;
    const group_id = await givenGroup(project, await givenBoard(project));
    const tag_id = await givenTag(project);

    const answer = await asMember.post(CREATE, {
      title: 'All of it',
      description: ' Two\nlines ',
      group_id,
      status: 'waiting',
      owner_id: users.viewer.id,
      tag_id,
      due_date: '2020-02-29T12:30:00.5+02:00',
      priority: 'urgent',
      id: 99,
      is_master: true,
    });

    expect(answer.status).toBe(201);
    expect(answer.body.data.card).toMatchObject({
      title: 'All of it',
      description: 'Two\nlines',
      group_id,
      status: 'waiting',
      owner_id: users.viewer.id,
      tag_id,
      due_date: '2020-02-29T10:30:00.500Z',
      priority: 'urgent',
      is_overdue: true,
      is_master: false,
      position: 1,
    });
  });

  it('stores texts as sent, trimmed at the ends', async () => {
    const { body } = await world.asMember.post(CREATE, { title: '<b>', status: 'a & b', description: ' <p>\n ' });
    const { card } = await world.asMember.rpc.cards.update.mutate({
      id: body.data.card.id,
      short_description: '<script>',
    });

    expect(body.data.card).toMatchObject({ title: '<b>', status: 'a & b', description: '<p>' });
    expect(card).toMatchObject({ short_description: '<script>', description: '<p>' });
  });

  it('puts cards at the end of their group, and of the project', async () => {
    const { asOwner, project } = await givenWorld();
    const board = await givenBoard(project);
    const [first, second] = [await givenGroup(project, board), await givenGroup(project, board)];
    const places = async (group_id: number | null) => {
      const { body } = await asOwner.post(CREATE, { title: 'Next', group_id });
      return [body.data.card.position, body.data.card.sort_order];
    };

    expect(await places(first)).toEqual([1, 1]);
    expect(await places(first)).toEqual([2, 2]);
    expect(await places(second)).toEqual([1, 3]);
    expect(await places(null)).toEqual([1, 4]);
    expect(await places(null)).toEqual([2, 5]);
  });

  it('caps positions at the int4 maximum instead of overflowing', async () => {
    const { asOwner, project } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    await givenCard(project, { group_id, position: 2147483647, sort_order: 2147483647 });

    const answer = await asOwner.post(CREATE, { title: 'Behind the last', group_id });

    expect(answer.body.data.card).toMatchObject({ position: 2147483647, sort_order: 2147483647 });
  });

  it('is overdue once the due date has passed, and not before', async () => {
    const dueIn = async (seconds: number) => {
      const due_date = new Date(Date.now() + seconds * 1000).toISOString();
      return (await world.asMember.post(CREATE, { title: 'Due', due_date })).body.data.card.is_overdue;
    };

    expect([await dueIn(-30), await dueIn(30)]).toEqual([true, false]);
  });

  it('is not overdue when it is closed', async () => {
    const answer = await world.asMember.post(CREATE, {
      title: 'Late, but done',
      due_date: '2020-01-01',
      status: 'closed',
    });

    expect(answer.body.data.card).toMatchObject({ is_overdue: false, due_date: '2020-01-01T00:00:00.000Z' });
  });

  it('treats null, absent and empty the same for nullable fields', async () => {
    const empty = { description: '', status: ' ', due_date: '', priority: '' };
    const nulls = {
      description: null,
      group_id: null,
      status: null,
      owner_id: null,
      tag_id: null,
      due_date: null,
      priority: null,
    };

    for (const fields of [empty, nulls]) {
      const answer = await world.asMember.post(CREATE, { title: 'Mostly nothing', ...fields });
      expect(answer).toMatchObject({
        status: 201,
        body: { data: { card: { description: null, status: 'open', priority: 'normal', due_date: null } } },
      });
    }
  });

  it('counts lengths in code points', async () => {
    const title = '🦑'.repeat(255);

    const fits = await world.asMember.post(CREATE, { title });
    const tooLong = await world.asMember.post(CREATE, { title: `${title}x` });

    expect(fits.body.data.card.title).toBe(title);
    expect(tooLong).toMatchObject({
      status: 422,
      body: { errors: { title: ['title must be at most 255 characters.'] } },
    });
  });

  it.each([
    ['a missing title', {}, { title: ['title is required.'] }],
    ['an empty title', { title: '  ' }, { title: ['title is required.'] }],
    ['null as title', { title: null }, { title: ['title must be text.'] }],
    ['a number as title', { title: 5 }, { title: ['title must be text.'] }],
    ['U+0000', { title: 'a\0b' }, { title: ['title must not contain U+0000 or a lone surrogate.'] }],
    ['a lone surrogate', { title: 'a\ud800' }, { title: ['title must not contain U+0000 or a lone surrogate.'] }],
    [
      'control characters',
      { title: 'a\u0001b', description: '\u001b[0m' },
      {
        title: ['title must not contain control characters other than tab and line ends.'],
        description: ['description must not contain control characters other than tab and line ends.'],
      },
    ],
    [
      'U+0000 in the description',
      { title: 'x', description: '\0' },
      { description: ['description must not contain U+0000 or a lone surrogate.'] },
    ],
    ['a status of 51', { title: 'x', status: 's'.repeat(51) }, { status: ['status must be at most 50 characters.'] }],
    [
      'an unknown priority',
      { title: 'x', priority: 'medium' },
      { priority: ['priority must be one of low, normal, high, urgent.'] },
    ],
    [
      'a boolean as priority',
      { title: 'x', priority: true },
      { priority: ['priority must be one of low, normal, high, urgent.'] },
    ],
    ['a numeric string', { title: 'x', group_id: '5' }, { group_id: ['group_id must be a whole number.'] }],
    ['a boolean id', { title: 'x', group_id: true }, { group_id: ['group_id must be a whole number.'] }],
    ['a fraction', { title: 'x', group_id: 1.5 }, { group_id: ['group_id must be a whole number.'] }],
    ['zero', { title: 'x', tag_id: 0 }, { tag_id: ['tag_id must be at least 1.'] }],
    [
      'an id out of range',
      { title: 'x', owner_id: 2147483648 },
      { owner_id: ['owner_id must be at most 2147483647.'] },
    ],
    ['an id beyond safe integers', { title: 'x', owner_id: 1e300 }, { owner_id: expect.any(Array) }],
    ['an object as id', { title: 'x', tag_id: {} }, { tag_id: ['tag_id must be a whole number.'] }],
  ])('422 for %s', async (_, body, errors) => {
    const answer = await world.asMember.post(CREATE, body);

    expect(answer).toMatchObject({ status: 422 });
    expect(answer.body).toEqual({ message: expect.any(String), errors });
  });

  it.each([
    'tomorrow',
    '2026-02-30',
    '2026-13-01',
    '2026-01-31T10:00:00',
    '2026-01-31T10:00Z',
    '2026-01-31 10:00:00Z',
    '2026-01-31T24:00:00Z',
    '0000-01-01',
    '9999-12-31T23:59:59-12:00',
    '0001-01-01T00:00:00+14:00',
    'infinity',
    '1e3',
    1_700_000_000,
  ])('422 for the due date %s', async (due_date) => {
    const answer = await world.asMember.post(CREATE, { title: 'x', due_date });

    expect(answer).toMatchObject({
      status: 422,
      body: { errors: { due_date: [expect.stringMatching(/^due_date must be /)] } },
    });
  });

  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2024-02-29T23:59:59.999999-11:30', '2024-03-01T11:29:59.999Z'],
    ['2026-01-31t10:00:00z', '2026-01-31T10:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
  ])('accepts the due date %s', async (due_date, answered) => {
    const answer = await world.asMember.post(CREATE, { title: 'x', due_date });

    expect(answer).toMatchObject({ status: 201, body: { data: { card: { due_date: answered } } } });
  });

  it('422 with a summary and every invalid field', async () => {
    const answer = await world.asMember.post(CREATE, { priority: 'x', group_id: -1 });

    expect(answer.body).toEqual({
      message: 'title is required. (and 2 more)',
      errors: {
        title: ['title is required.'],
        group_id: ['group_id must be at least 1.'],
        priority: ['priority must be one of low, normal, high, urgent.'],
      },
    });
  });

  it('422 that lists every reference that does not exist, and nothing is stored', async () => {
    const before = await countCards(world.project);

    const answer = await world.asMember.post(CREATE, {
      title: 'x',
      group_id: 2147483647,
      tag_id: 2147483647,
      owner_id: 2147483647,
    });

    expect(answer).toMatchObject({
      status: 422,
      body: {
        message: 'group_id does not exist. (and 2 more)',
        errors: {
          group_id: ['group_id does not exist.'],
          tag_id: ['tag_id does not exist.'],
          owner_id: ['owner_id is not a member of this project.'],
        },
      },
    });
    expect(await countCards(world.project)).toBe(before);
  });

  it('422 for a deleted group or tag, a master group, and a deactivated user', async () => {
    const { asMember, project } = world;
    const deleted = { deleted_at: new Date() };
    const board = await givenBoard(project);
    const { group: masterGroup } = await givenMasterBoard();
    const references = [
      { group_id: await givenGroup(project, board, deleted) },
      { group_id: masterGroup },
      { tag_id: await givenTag(project, deleted) },
      { owner_id: (await givenUser({ project, is_active: false })).id },
    ];

    for (const reference of references) {
      expect(await asMember.post(CREATE, { title: 'x', ...reference })).toMatchObject({ status: 422 });
    }
  });

  it("403 for another tenant's group and tag, and nothing is stored", async () => {
    const { asMember, project, otherProject } = world;
    const before = await countCards(project);
    const references = [
      { group_id: await givenGroup(otherProject, await givenBoard(otherProject)) },
      { tag_id: await givenTag(otherProject) },
    ];

    for (const reference of references) {
      const answer = await asMember.post(CREATE, { title: 'x', ...reference });
      expect(answer.status).toBe(403);
      expect(answer.body).toEqual({
        error: true,
        message: `${Object.keys(reference)[0]} is not in this project.`,
      });
    }
    expect(await countCards(project)).toBe(before);
  });

  it('422 in the same words for an unknown owner and one who is not a member, and nothing is stored', async () => {
    const { asMember, project, users } = world;
    const before = await countCards(project);

    for (const owner_id of [users.outsider.id, 2147483647]) {
      expect(await asMember.post(CREATE, { title: 'x', owner_id })).toMatchObject({
        status: 422,
        body: { errors: { owner_id: ['owner_id is not a member of this project.'] } },
      });
    }
    expect(await countCards(project)).toBe(before);
  });

  it('403 that does not tell who is a member of the project of a foreign group', async () => {
    const { asMember, otherProject, users } = world;
    const group_id = await givenGroup(otherProject, await givenBoard(otherProject));
    const answers = [users.outsider.id, users.member.id, 2147483647].map((owner_id) =>
      asMember.post(CREATE, { title: 'x', group_id, owner_id }),
    );

    for (const { status, body } of await Promise.all(answers))
      expect({ status, body }).toEqual({
        status: 403,
        body: { error: true, message: 'group_id is not in this project.' },
      });
  });

  it('201 in the project of the group, else of the tag; 403 if they are of two projects', async () => {
    const { asOwner, users, project } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.owner, second, 'member');
    const group_id = await givenGroup(second, await givenBoard(second));
    const tag_id = await givenTag(second);
    const ownTag = await givenTag(project);

    for (const reference of [{ group_id }, { tag_id }, { group_id, tag_id }]) {
      const { status, body } = await asOwner.post(CREATE, { title: 'x', ...reference });
      expect({ status, card: body.data.card }).toMatchObject({
        status: 201,
        card: { project_id: second.id, platform_id: second.platform_id },
      });
    }
    expect((await asOwner.post(CREATE, { title: 'x', group_id, tag_id: ownTag })).status).toBe(403);
  });

  it('403 for a viewer, even if the input is invalid', async () => {
    const answer = await world.asViewer.post(CREATE, { title: 5 });

    expect(answer).toMatchObject({
      status: 403,
      body: { error: true, message: 'This requires the role member; yours in this project is viewer.' },
    });
    expect(answer.body).not.toHaveProperty('data');
  });

  it('lets a superadmin act in any project', async () => {
    const project = await givenProject();

    const answer = await world.asSuperadmin.in(project.id).post(CREATE, { title: 'From above' });

    expect(answer).toMatchObject({ status: 201, body: { data: { card: { project_id: project.id } } } });
  });

  it('returns Date fields over RPC', async () => {
    const { card } = await world.asMember.rpc.cards.create.mutate({
      title: 'Typed',
      due_date: '2026-01-31',
      priority: 'high',
    });

    expect(card).toMatchObject({
      title: 'Typed',
      priority: 'high',
      due_date: new Date('2026-01-31'),
      card_type: 'regular',
    });
    expect(card.created_at).toBeInstanceOf(Date);
  });

  it('never coerces types, over REST or RPC, also after other calls', async () => {
    for (const group_id of ['5', true, '', null, 1.5]) await world.asMember.post(CREATE, { title: 'x', group_id });

    const rest = await world.asMember.post(CREATE, { title: 'x', group_id: '5' });
    const rpc = await refusalOf(world.asMember.rpc.cards.create.mutate({ title: 'x', group_id: '5' as never }));

    expect({ status: rest.status, ...rest.body }).toEqual(rpc);
    expect(rpc).toMatchObject({ status: 422, errors: { group_id: ['group_id must be a whole number.'] } });
  });

  it('creates 20 cards at once in one group without errors', async () => {
    const { asMember, project } = world;
    const group_id = await givenGroup(project, await givenBoard(project));

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => asMember.post(CREATE, { title: 'At once', group_id })),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(201));
  });
});

describe('POST …/cards/delete', () => {
  const DELETE = '/services/operations/v1/operations/cards/delete';

  it('200 with an empty list, and the card is deleted', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);

    const answer = await asMember.post(DELETE, { id });

    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ error: false, message: 'Card deleted.', data: [] });
    expect((await stored('cards', id)).deleted_at).not.toBeNull();
    expect(await asMember.post(DELETE, { id })).toMatchObject({
      status: 404,
      body: { error: true, message: 'There is no such card.', data: [] },
    });
  });

  it('403 with data for a card of another project, which is not deleted', async () => {
    const { asOutsider, asViewer, project } = await givenWorld();
    const id = await givenCard(project);

    const foreign = await asOutsider.post(DELETE, { id });
    const byViewer = await asViewer.post(DELETE, { id });

    expect(foreign.status).toBe(403);
    expect(foreign.body).toEqual({ error: true, message: 'This card belongs to another project.', data: [] });
    expect(byViewer.body).toEqual({ error: true, message: expect.any(String), data: [] });
    expect((await stored('cards', id)).deleted_at).toBeNull();
  });

  it('404 for a master card', async () => {
    const { asSuperadmin } = await givenWorld();

    expect((await asSuperadmin.post(DELETE, { id: (await givenMasterBoard()).card })).status).toBe(404);
  });

  it('20 times at once: one 200, nineteen 404', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);

    const answers = await Promise.all(Array.from({ length: 20 }, () => asMember.post(DELETE, { id })));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(404)]);
  });
});

describe('cards over RPC', () => {
  it('get returns is_overdue', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenCard(project, { due_date: new Date('2020-01-01') });

    expect((await asViewer.rpc.cards.get.query({ id })).card).toMatchObject({
      id,
      is_overdue: true,
      due_date: new Date('2020-01-01'),
    });
  });

  it('list filters by each field and by text', async () => {
    const { asViewer, project, users } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    const tag_id = await givenTag(project);
    const past = new Date('2020-01-01');
    const add = (sort_order: number, state: object) => givenCard(project, { sort_order, ...state });
    const grouped = await add(1, { group_id, title: '100% done_now' });
    const owned = await add(2, { owner_id: users.member.id, description: 'Find the NEEDLE here' });
    const tagged = await add(3, { tag_id, priority: 'urgent' });
    const late = await add(4, { due_date: past });
    const closed = await add(5, { due_date: past, status: 'closed' });
    await add(6, { deleted_at: new Date() });
    const listed = async (wanted: object) => (await asViewer.rpc.cards.list.query(wanted)).cards.map(({ id }) => id);

    expect(await listed({})).toEqual([grouped, owned, tagged, late, closed]);
    expect(await listed({ group_id })).toEqual([grouped]);
    expect(await listed({ owner_id: users.member.id })).toEqual([owned]);
    expect(await listed({ tag_id, priority: 'urgent' })).toEqual([tagged]);
    expect(await listed({ tag_id, priority: 'low' })).toEqual([]);
    expect(await listed({ status: 'closed' })).toEqual([closed]);
    expect(await listed({ is_overdue: true })).toEqual([late]);
    expect(await listed({ is_overdue: false })).toEqual([grouped, owned, tagged, closed]);
    expect(await listed({ text: 'needle' })).toEqual([owned]);
    expect(await listed({ text: '0% d' })).toEqual([grouped]);
    expect(await listed({ text: 'e_n' })).toEqual([grouped]);
    expect(await listed({ text: '\\' })).toEqual([]);
    expect(await listed({ group_id: null, text: '' })).toHaveLength(5);
  });

  it('search looks in titles and descriptions of the cards of this project, copies of master cards included', async () => {
    const { asViewer, project, otherProject } = await givenWorld();
    const { card: master_card_id } = await givenMasterBoard();
    const text = { short_description: 'Blue Whale', description: '<p>Ωmega</p>' };
    const own = await givenCard(project, { title: 'Own', sort_order: 1, ...text });
    const copy = await givenCard(project, { title: 'Copy', sort_order: 2, master_card_id, ...text });
    await givenCard(project, { title: 'Gone', deleted_at: new Date(), ...text });
    await givenCard(otherProject, text);
    const listed = async (text: string) => (await asViewer.rpc.cards.list.query({ text })).cards.map(({ id }) => id);

    for (const found of ['blue', 'e w', 'LE <P>ωME', 'ga', 'Ω', '>']) expect(await listed(found)).toEqual([own, copy]);
    expect(await listed('own blue')).toEqual([own]);
    expect(await listed('blue copy')).toEqual([]);
  });

  it('search finds matches beyond the first 1,000 cards, each once and in order, with any page size', async () => {
    const { asViewer, project } = await givenWorld();
    const matching = [2, 3, 999, 1000, 1001, 1900];
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, title, sort_order)
        select ${project.id}, ${project.platform_id}, case when n = any(${matching}::int[]) then 'A needle' else 'Hay' end, n
        from generate_series(1, 2000) as n`,
    );

    for (const limit of [1, 2, 4, 6, 50]) {
      const found: number[] = [];
      let cursor: string | null = null;
      do {
        const page: { cards: { sort_order: number }[]; next_cursor: string | null } =
          await asViewer.rpc.cards.list.query({ text: 'needle', limit, cursor });
        found.push(...page.cards.map(({ sort_order }) => sort_order));
        cursor = page.next_cursor;
      } while (cursor !== null);
      expect(found, `pages of ${limit}`).toEqual(matching);
    }
  });

  it('search for text too short for the index reads 5,000 cards per page', async () => {
    const { asViewer, project } = await givenWorld();
    await query(
      await testDb(),
      sql`
        insert into cards (project_id, platform_id, title, sort_order)
        select ${project.id}, ${project.platform_id}, case when n in (3, 10500) then 'zq' else 'x' end, n
        from generate_series(1, 11000) as n`,
    );

    const pages: number[][] = [];
    let cursor: string | null = null;
    do {
      const page: { cards: { sort_order: number }[]; next_cursor: string | null } = await asViewer.rpc.cards.list.query(
        { text: 'ZQ', cursor },
      );
      pages.push(page.cards.map(({ sort_order }) => sort_order));
      cursor = page.next_cursor;
    } while (cursor !== null);

    expect(pages).toEqual([[3], [], [10500]]);
  });

  it('list pages contain each card once, also with equal sort_order', async () => {
    const { asViewer, project } = await givenWorld();
    const ids: number[] = [];
    for (let count = 0; count < 7; count++) ids.push(await givenCard(project, { sort_order: count < 5 ? 1 : 0 }));

    const seen: number[] = [];
    let cursor: string | null = null;
    do {
      const page: { cards: { id: number }[]; next_cursor: string | null } = await asViewer.rpc.cards.list.query({
        limit: 3,
        cursor,
      });
      seen.push(...page.cards.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor);

    expect(seen).toEqual([...ids.slice(5), ...ids.slice(0, 5)]);
  });

  it('update changes only what is sent; null clears nullable fields', async () => {
    const { asMember, project, users } = await givenWorld();
    const tag_id = await givenTag(project);
    const id = await givenCard(project, {
      title: 'Before',
      description: 'd',
      tag_id,
      owner_id: users.member.id,
      due_date: new Date('2030-01-01'),
      status: 'blocked',
    });

    const { card: renamed } = await asMember.rpc.cards.update.mutate({ id, title: 'After', priority: 'high' });
    const { card: cleared } = await asMember.rpc.cards.update.mutate({
      id,
      title: null,
      status: null,
      description: null,
      tag_id: null,
      owner_id: null,
      due_date: null,
    });

    expect(renamed).toMatchObject({
      title: 'After',
      priority: 'high',
      description: 'd',
      tag_id,
      owner_id: users.member.id,
      status: 'blocked',
    });
    expect(cleared).toMatchObject({
      title: 'After',
      status: 'blocked',
      description: null,
      tag_id: null,
      owner_id: null,
      due_date: null,
    });
  });

  it('422 for unknown and 403 for foreign references in update, and nothing changes', async () => {
    const { asMember, project, otherProject, users } = await givenWorld();
    const id = await givenCard(project);

    expect(await refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'x', tag_id: 2147483647 }))).toMatchObject({
      status: 422,
      errors: { tag_id: ['tag_id does not exist.'] },
    });
    expect(
      await refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'x', tag_id: await givenTag(otherProject) })),
    ).toMatchObject({ status: 403 });
    expect(
      await refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'x', owner_id: users.outsider.id })),
    ).toMatchObject({ status: 422, errors: { owner_id: ['owner_id is not a member of this project.'] } });
    expect(await stored('cards', id)).toMatchObject({ title: 'A card' });
  });

  it('snooze sets and clears snoozed_until', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);

    expect((await asMember.rpc.cards.snooze.mutate({ id, until: '2030-01-01' })).card.snoozed_until).toEqual(
      new Date('2030-01-01'),
    );
    expect((await asMember.rpc.cards.snooze.mutate({ id, until: null })).card.snoozed_until).toBeNull();
  });
});

describe('cards.move', () => {
  const givenCards = async () => {
    const world = await givenWorld();
    const board = await givenBoard(world.project);
    const [from, to] = [await givenGroup(world.project, board), await givenGroup(world.project, board)];
    const add = async (group_id: number, count: number) => {
      const ids: number[] = [];
      for (let position = 1; position <= count; position++)
        ids.push(await givenCard(world.project, { group_id, position: position * 10 }));
      return ids;
    };
    const orderOf = async (group_id: number) => {
      const { board: full } = await world.asViewer.rpc.boards.get.query({ id: board });
      return full.groups.find(({ id }) => id === group_id)!.cards.map(({ id }) => id);
    };
    return { ...world, from, to, moved: await add(from, 3), others: await add(to, 3), orderOf };
  };

  it('moves a card to a position in another group, and shifts the cards there', async () => {
    const { asMember, to, from, moved, others, orderOf } = await givenCards();

    const { card } = await asMember.rpc.cards.move.mutate({ id: moved[1]!, group_id: to, position: 2 });

    expect(card).toMatchObject({ group_id: to, position: 2 });
    expect(await orderOf(to)).toEqual([others[0], moved[1], others[1], others[2]]);
    expect(await orderOf(from)).toEqual([moved[0], moved[2]]);
  });

  it('moves a card to the start, the end, or past the end of its own group', async () => {
    const { asMember, from, moved, orderOf } = await givenCards();
    const [a, b, c] = moved as [number, number, number];

    await asMember.rpc.cards.move.mutate({ id: c, group_id: from, position: 1 });
    expect(await orderOf(from)).toEqual([c, a, b]);
    await asMember.rpc.cards.move.mutate({ id: c, group_id: from });
    expect(await orderOf(from)).toEqual([a, b, c]);
    await asMember.rpc.cards.move.mutate({ id: a, group_id: from, position: 2147483647 });
    expect(await orderOf(from)).toEqual([b, c, a]);
    await asMember.rpc.cards.move.mutate({ id: b, group_id: from, position: 2 });
    expect(await orderOf(from)).toEqual([c, b, a]);
  });

  it('moves a card out of its group', async () => {
    const { asMember, moved } = await givenCards();

    expect((await asMember.rpc.cards.move.mutate({ id: moved[0]!, group_id: null })).card).toMatchObject({
      group_id: null,
      position: 1,
    });
  });

  it('422 for an unknown and 403 for a foreign group, and nothing changes', async () => {
    const { asMember, from, moved, otherProject } = await givenCards();
    const foreign = await givenGroup(otherProject, await givenBoard(otherProject));

    expect(await refusalOf(asMember.rpc.cards.move.mutate({ id: moved[0]!, group_id: 2147483647 }))).toMatchObject({
      status: 422,
    });
    expect(await refusalOf(asMember.rpc.cards.move.mutate({ id: moved[0]!, group_id: foreign }))).toMatchObject({
      status: 403,
    });
    expect(await stored('cards', moved[0]!)).toMatchObject({ group_id: from, position: 10 });
  });

  it('80 concurrent moves between two groups succeed, with each card once and no position twice', async () => {
    const { asMember, from, to, moved, others, orderOf } = await givenCards();
    const cards = [...moved, ...others];
    const moves = Array.from({ length: 80 }, (_, round) => ({
      id: cards[round % 6]!,
      group_id: round % 2 ? from : to,
      position: (round % 4) + 1,
    }));

    const results = await Promise.allSettled(moves.map((move) => asMember.rpc.cards.move.mutate(move)));

    expect(results.filter(({ status }) => status === 'rejected')).toEqual([]);
    expect([...(await orderOf(from)), ...(await orderOf(to))].sort()).toEqual(cards.sort());
    for (const group of [from, to]) {
      const places = await Promise.all((await orderOf(group)).map(async (id) => (await stored('cards', id)).position));
      expect(new Set(places).size).toBe(places.length);
    }
  });
});

describe('the round trips of cards/create', () => {
  it('are two, including the token check', async () => {
    const { asMember, project, users } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));

    const statements = await countStatements(() =>
      asMember.post(CREATE, { title: 'x', group_id, owner_id: users.owner.id }),
    );

    expect(statements).toBe(2);
  });
});
