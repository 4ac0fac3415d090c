import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { refusalOf } from '../harness/caller.ts';
import { auditOf, eventsOf } from '../harness/events.ts';
import { countStatements, databaseUrl } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenTag,
  givenWorld,
  stored,
  type TestProject,
  testDb,
} from '../harness/world.ts';

const CREATE_MANY = '/services/operations/v1/operations/cards/create-many';
const UPDATE_MANY = '/services/operations/v1/operations/cards/update-many';
const UNKNOWN = 2_147_483_647;

const givenGroupIn = async (project: TestProject) => givenGroup(project, await givenBoard(project));
const titled = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, at) => ({ title: `Card ${at}`, ...more }));

const cardsIn = async ({ id }: TestProject) =>
  query(
    await testDb(),
    sql<{ id: number; title: string; group_id: number | null; position: number; sort_order: number }>`
      select id, title, group_id, position, sort_order from cards where project_id = ${id} order by id`,
  );

describe('POST …/cards/create-many', () => {
  it('200 with the cards in the order sent, at the end of their groups and of the project, each with an event', async () => {
    const { asMember, project } = await givenWorld();
    const [first, second] = [await givenGroupIn(project), await givenGroupIn(project)];
    await givenCard(project, { group_id: first, position: 5, sort_order: 8 });
    const places = [first, second, null, first, null, second, first];
    const cards = places.map((group_id, at) => ({ title: `Card ${at}`, group_id }));
    let answer: any;

    const events = await eventsOf(async () => {
      answer = await asMember.post(CREATE_MANY, { cards });
    });

    expect(answer).toMatchObject({ status: 200, body: { error: false, message: 'Cards created.' } });
    const created = answer.body.data.results.map(({ card }: any) => card);
    expect(created.map(({ position }: any) => position)).toEqual([6, 1, 1, 7, 2, 2, 8]);
    expect(created.map(({ sort_order }: any) => sort_order)).toEqual([9, 10, 11, 12, 13, 14, 15]);
    expect((await cardsIn(project)).slice(1)).toEqual(
      created.map(({ project_id, ...card }: any, at: number) => ({ ...card, title: `Card ${at}` })),
    );
    expect(events).toMatchObject(
      created.map(({ id, group_id, project_id }: any) => ({
        type: 'card.created',
        project_id,
        platform_id: project.platform_id,
        subject_id: id,
        data: { group_id },
      })),
    );
  });

  it('gives each card the same fields as cards.create, up to the int4 maximum', async () => {
    const { asMember, project, users } = await givenWorld();
    const group_id = await givenGroupIn(project);
    const card = {
      title: ' A "card" ',
      description: 'Line 1\nLine 2 \\ 😀',
      group_id,
      owner_id: users.owner.id,
      tag_id: await givenTag(project),
      due_date: new Date('2030-01-31T00:00:00Z'),
      priority: 'high' as const,
      status: 'doing',
    };
    await givenCard(project, { group_id, position: UNKNOWN - 1, sort_order: UNKNOWN - 1 });

    const single = (await asMember.rpc.cards.create.mutate(card)).card;
    const { results } = await asMember.rpc.cards.createMany.mutate({
      cards: [card, { title: 'x', due_date: '2030-01-31' }],
    });

    // Either field narrows the other one.
    const ids = results.map((result) => (result.error ? result.error.status : result.card.id));
    const { id, unique_identifier, created_at, updated_at, ...same } = await stored('cards', single.id);
    expect(await stored('cards', ids[0]!)).toMatchObject(same);
    expect(same).toMatchObject({ position: UNKNOWN, sort_order: UNKNOWN, is_due_at_midnight: true });
    expect(await stored('cards', ids[1]!)).toMatchObject({
      status: 'open',
      priority: 'normal',
      is_due_at_midnight: false,
      created_by: users.member.id,
    });
  });

  it('422 or 403 that names the row, and nothing is stored', async () => {
    const { asMember, project, otherProject, users } = await givenWorld();
    const foreign = { group_id: await givenGroupIn(otherProject) };
    const refused: [object[], number, object][] = [
      [[{ title: '' }, { title: 'x', priority: 'x' }], 422, { 'cards.1.title': ['cards.1.title is required.'] }],
      [[{ title: 'x', tag_id: UNKNOWN }], 422, { 'cards.1.tag_id': ['cards.1.tag_id does not exist.'] }],
      [
        [
          { title: 'x', owner_id: users.outsider.id },
          { title: 'x', group_id: UNKNOWN },
        ],
        422,
        {
          'cards.1.owner_id': ['cards.1.owner_id is not a member of this project.'],
          'cards.2.group_id': ['cards.2.group_id does not exist.'],
        },
      ],
    ];

    const events = await eventsOf(async () => {
      for (const [cards, status, errors] of refused)
        expect(await asMember.post(CREATE_MANY, { cards: [{ title: 'x' }, ...cards] })).toMatchObject({
          status,
          body: { errors },
        });
      expect(await asMember.post(CREATE_MANY, { cards: [{ title: 'x' }, { title: 'x', ...foreign }] })).toMatchObject({
        status: 403,
        body: { error: true, message: 'cards.1: group_id is not in this project.' },
      });
    });

    expect(events).toEqual([]);
    expect(await cardsIn(project)).toEqual([]);
  });

  it('each: a result for every row in the order sent; refused rows leave no card, event or gap', async () => {
    const { asOwner, users, project, otherProject } = await givenWorld();
    const seen = await givenProject();
    await givenMember(users.owner, seen, 'viewer');
    const group_id = await givenGroupIn(project);
    const cards = [
      { title: 'a', group_id },
      { title: '', group_id: 'x' },
      { title: 'b', group_id, owner_id: UNKNOWN },
      { title: 'c', group_id: await givenGroupIn(otherProject) },
      { title: 'd', group_id: await givenGroupIn(seen) },
      { title: 'e', group_id },
    ];
    let results: any[] = [];

    const events = await eventsOf(async () => {
      const answer = await asOwner.post(CREATE_MANY, { cards, mode: 'each' });
      expect(answer.status).toBe(200);
      results = answer.body.data.results;
    });

    expect(results).toEqual([
      { card: { id: expect.any(Number), project_id: project.id, group_id, position: 1, sort_order: 1 } },
      {
        error: {
          status: 422,
          reason: 'invalid_input',
          message: 'title is required. (and 1 more)',
          errors: { title: ['title is required.'], group_id: ['group_id must be a whole number.'] },
        },
      },
      {
        error: {
          status: 422,
          reason: 'unknown_reference',
          message: 'owner_id is not a member of this project.',
          errors: { owner_id: ['owner_id is not a member of this project.'] },
        },
      },
      { error: { status: 403, reason: 'other_project', message: 'group_id is not in this project.' } },
      {
        error: {
          status: 403,
          reason: 'role_missing',
          message: 'This requires the role member; yours in this project is viewer.',
        },
      },
      { card: { id: expect.any(Number), project_id: project.id, group_id, position: 2, sort_order: 2 } },
    ]);
    expect(events.map(({ subject_id }) => subject_id)).toEqual([results[0].card.id, results[5].card.id]);
    expect((await cardsIn(project)).map(({ title }) => title)).toEqual(['a', 'e']);
  });

  it('200 for cards of several projects of the caller; only for the selected one with X-Project-Id', async () => {
    const { asOwner, users, project } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.owner, second, 'member');
    const cards = [{ title: 'a' }, { title: 'b', tag_id: await givenTag(second) }];

    const { results } = await asOwner.rpc.cards.createMany.mutate({ cards });
    const inFirst = await asOwner.in(project.id).rpc.cards.createMany.mutate({ cards, mode: 'each' });

    expect(results.map(({ card }) => card?.project_id)).toEqual([project.id, second.id]);
    expect(await stored('cards', results[1]!.card!.id)).toMatchObject({ platform_id: second.platform_id });
    expect(inFirst.results.map(({ card, error }) => card?.project_id ?? error?.reason)).toEqual([
      project.id,
      'other_project',
    ]);
  });

  it('422 for 1,001 cards, and for a row that is no object in either mode; 200 for none', async () => {
    const { asMember } = await givenWorld();
    const post = async (cards: unknown, mode?: string) => {
      const { status, body } = await asMember.post(CREATE_MANY, { cards, mode });
      return [status, body.errors ?? body.data.results];
    };

    for (const mode of ['all', 'each']) {
      expect(await post(titled(1001), mode)).toEqual([422, { cards: ['cards must have at most 1000 elements.'] }]);
      expect(await post([{ title: 'x' }, 5], mode)).toEqual([422, { 'cards.1': ['cards.1 must be an object.'] }]);
      expect(await post([], mode)).toEqual([200, []]);
    }
    expect(await post([], 'some')).toEqual([422, { mode: ['mode must be one of all, each.'] }]);
  });

  it('runs as many statements for 100 cards as for one', async () => {
    const { asMember, project, users } = await givenWorld();
    const more = { group_id: await givenGroupIn(project), owner_id: users.owner.id };
    const create = (count: number) => countStatements(() => asMember.post(CREATE_MANY, { cards: titled(count, more) }));

    // With begin and commit, on a server.
    expect(await create(100)).toBe(databaseUrl ? 7 : 5);
    expect(await create(1)).toBe(databaseUrl ? 7 : 5);
  });

  it('creates the cards once for an Idempotency-Key, in both modes', async () => {
    const { asMember, project } = await givenWorld();
    const headers = () => ({ 'Idempotency-Key': randomUUID() });

    for (const body of [{ cards: titled(3) }, { cards: [{ title: '' }, { title: 'x' }], mode: 'each' }]) {
      const key = headers();
      const [first, second] = [
        await asMember.post(CREATE_MANY, body, key),
        await asMember.post(CREATE_MANY, body, key),
      ];
      expect(second.body).toEqual(first.body);
      expect(second.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await cardsIn(project)).toHaveLength(4);
  });

  it('keeps the answer of 1,000 cards for a repeat, since it has no texts', async () => {
    const { asMember } = await givenWorld();
    const body = { cards: titled(1000, { description: 'x'.repeat(900) }) };
    const key = { 'Idempotency-Key': randomUUID() };

    const first = await asMember.post(CREATE_MANY, body, key);

    expect(first.body.data.results).toHaveLength(1000);
    expect((await asMember.post(CREATE_MANY, body, key)).body).toEqual(first.body);
  });

  it('adds an audit entry for each card that a superadmin creates without being a member', async () => {
    const { asSuperadmin, asMember, project } = await givenWorld();
    const cards = titled(3, { group_id: await givenGroupIn(project) });

    expect(await auditOf(() => asMember.post(CREATE_MANY, { cards }))).toEqual([]);
    expect(await auditOf(() => asSuperadmin.post(CREATE_MANY, { cards }))).toMatchObject(
      Array(3).fill({ type: 'card.created', project_id: project.id }),
    );
  });

  it('never deadlocks with calls for the same groups in another order, or with a reorder, and shares no position', async () => {
    const { asMember, asOwner, project } = await givenWorld();
    const board = await givenBoard(project);
    const groups = [
      await givenGroup(project, board),
      await givenGroup(project, board),
      await givenGroup(project, board),
    ];
    const inOrder = (order: number[]) => ({ cards: order.map((group_id, at) => ({ title: `Card ${at}`, group_id })) });
    const orders = [groups, groups.toReversed(), [groups[1]!, groups[0]!, groups[2]!]];
    const placed = (order: number[]) => order.map((id, at) => ({ id, position: at + 1 }));

    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, at) => {
        const order = orders[at % orders.length]!;
        if (at % 4 === 3) return asOwner.alone().rpc.groups.reorder.mutate({ groups: placed(order) });
        return asMember.alone().rpc.cards.createMany.mutate(inOrder(order));
      }),
    );

    expect(answers).toHaveLength(12);
    for (const group_id of groups) {
      const positions = (await cardsIn(project))
        .filter((card) => card.group_id === group_id)
        .map((card) => card.position);
      expect(positions.toSorted((one, other) => one - other)).toEqual(Array.from({ length: 9 }, (_, at) => at + 1));
    }
  });
});

describe('POST …/cards/update-many', () => {
  it('200, changes the sent fields of each card alone, with an event for each that changed', async () => {
    const { asMember, project, users } = await givenWorld();
    const tag_id = await givenTag(project);
    const given = { tag_id, owner_id: users.owner.id, description: 'Old', status: 'open', title: 'Old' };
    const [first, second, third] = [
      await givenCard(project, given),
      await givenCard(project, { ...given, due_date: new Date('2030-01-01') }),
      await givenCard(project, given),
    ];
    const cards = [
      { id: third, title: 'Old', status: null, description: 'Old' },
      { id: first, title: 'New', description: null, tag_id: null, sort_order: 4 },
      { id: second, due_date: '2030-01-01T00:00:00Z', owner_id: users.member.id, is_active: false },
    ];
    let answer: any;

    const events = await eventsOf(async () => {
      answer = await asMember.post(UPDATE_MANY, { cards });
    });

    expect(answer).toMatchObject({ status: 200, body: { message: 'Cards updated.' } });
    expect(answer.body.data.results.map(({ card }: any) => card)).toEqual(
      [third, first, second].map((id) => ({
        id,
        project_id: project.id,
        group_id: null,
        position: 0,
        sort_order: id === first ? 4 : 0,
      })),
    );
    expect(await stored('cards', first)).toMatchObject({ ...given, title: 'New', description: null, tag_id: null });
    expect(await stored('cards', second)).toMatchObject({
      ...given,
      owner_id: users.member.id,
      is_active: false,
      is_due_at_midnight: true,
      due_date: new Date('2030-01-01'),
    });
    expect(await stored('cards', third)).toMatchObject(given);
    expect(events).toMatchObject([
      { type: 'card.updated', subject_id: first, data: { fields: ['description', 'sort_order', 'tag_id', 'title'] } },
      { type: 'card.updated', subject_id: second, data: { fields: ['due_date', 'is_active', 'owner_id'] } },
    ]);
  });

  it('404, 403 or 422 that names the row, and nothing changes', async () => {
    const { asMember, project, otherProject, users } = await givenWorld();
    const id = await givenCard(project);
    const template = await givenMasterBoard();
    const refused: [object, number, string][] = [
      [{ id: UNKNOWN, title: 'x' }, 404, 'cards.1: There is no such card.'],
      [{ id: await givenCard(project, { deleted_at: new Date() }) }, 404, 'cards.1: There is no such card.'],
      [{ id: template.card }, 404, 'cards.1: There is no such card.'],
      [{ id: await givenCard(otherProject) }, 403, 'cards.1: This card belongs to another project.'],
      [{ id, title: 'y' }, 422, 'cards.1.id is a duplicate.'],
      [
        { id: await givenCard(project), tag_id: await givenTag(otherProject) },
        403,
        'cards.1: tag_id is not in this project.',
      ],
      [
        { id: await givenCard(project), owner_id: users.outsider.id },
        422,
        'cards.1.owner_id is not a member of this project.',
      ],
      [{ id: await givenCard(project), title: 'x'.repeat(256) }, 422, 'cards.1.title must be at most 255 characters.'],
    ];

    const events = await eventsOf(async () => {
      for (const [row, status, message] of refused)
        expect(
          await refusalOf(
            asMember.rpc.cards.updateMany.mutate({ cards: [{ id, title: 'New' }, row as { id: number }] }),
          ),
        ).toMatchObject({ status, message });
    });

    expect(events).toEqual([]);
    expect(await stored('cards', id)).toMatchObject({ title: 'A card' });
  });

  it('each: changes the others, and tells why it refused a row', async () => {
    const { asMember, project, otherProject } = await givenWorld();
    const [id, other, foreign] = [await givenCard(project), await givenCard(project), await givenCard(otherProject)];

    const { results } = await asMember.rpc.cards.updateMany.mutate({
      cards: [
        { id, title: 'One' },
        { id: foreign, title: 'Two' },
        { id, title: 'Three' },
        { id: UNKNOWN },
        { id: other, title: 'Five' },
        { title: 'Six' } as never,
      ],
      mode: 'each',
    });

    expect(results.map(({ card, error }) => card?.id ?? `${error?.status} ${error?.reason} ${error?.message}`)).toEqual(
      [
        id,
        '403 other_project This card belongs to another project.',
        '422 invalid_input id is a duplicate.',
        '404 not_found There is no such card.',
        other,
        '422 invalid_input id is required.',
      ],
    );
    expect(await stored('cards', id)).toMatchObject({ title: 'One' });
    expect(await stored('cards', other)).toMatchObject({ title: 'Five' });
    expect(await stored('cards', foreign)).toMatchObject({ title: 'A card' });
  });

  it.each<[string, 'all' | 'each']>([
    ['412 that names the row, and nothing changes', 'all'],
    ['each: 412 for the row alone', 'each'],
  ])('%s, if a row has another version than `if_version`', async (_, mode) => {
    const { asMember, project } = await givenWorld();
    const ids = [await givenCard(project), await givenCard(project), await givenCard(project)];
    const versions = await Promise.all(ids.map(async (id) => (await asMember.rpc.cards.get.query({ id })).version));
    await asMember.rpc.cards.update.mutate({ id: ids[1]!, title: 'Of another caller' });
    const cards = ids.map((id, at) => ({ id, title: 'Mine', ...(at < 2 && { if_version: versions[at]! }) }));

    const events = await eventsOf(async () => {
      const response = await asMember.post(UPDATE_MANY, { cards, mode });
      if (mode === 'all')
        expect([response.status, response.body.message]).toEqual([
          412,
          'cards.1: This has changed in the meantime. Read it again, then repeat your change.',
        ]);
      else
        expect(response.body.data.results).toMatchObject([
          { card: { id: ids[0] } },
          { error: { status: 412, reason: 'row_changed' } },
          { card: { id: ids[2] } },
        ]);
    });

    const titles = await Promise.all(ids.map(async (id) => (await stored('cards', id)).title));
    const kept = mode === 'all' ? 'A card' : 'Mine';
    expect(titles).toEqual([kept, 'Of another caller', kept]);
    expect(events).toHaveLength(mode === 'all' ? 0 : 2);
  });

  it('sanitises the descriptions of copies alone, also with an Idempotency-Key', async () => {
    const { asMember, project } = await givenWorld();
    const [{ card: master_card_id }, another] = [await givenMasterBoard(), await givenMasterBoard()];
    const copy = await givenCard(project, { master_card_id });
    const [second, own] = [await givenCard(project, { master_card_id: another.card }), await givenCard(project)];
    const description = '<b>Bold</b><script>1</script>';
    const cards = [
      { id: copy, description },
      { id: own, description },
      { id: second, description: '<script>1</script>' },
    ];

    for (const headers of [undefined, { 'Idempotency-Key': randomUUID() }]) {
      const { results } = (await asMember.post(UPDATE_MANY, { cards, mode: 'each' }, headers)).body.data;
      expect(results[2].error.errors).toEqual({
        description: ['description has only HTML that is not allowed: nothing is left of it.'],
      });
      expect(await stored('cards', copy)).toMatchObject({ description: '<b>Bold</b>' });
      expect(await stored('cards', own)).toMatchObject({ description });
    }
  });

  it('runs as many statements for 100 cards as for one', async () => {
    const { asMember, project } = await givenWorld();
    const { results } = await asMember.rpc.cards.createMany.mutate({ cards: titled(100) });
    const ids = results.map(({ card }) => card!.id);
    const update = (some: number[]) =>
      countStatements(() => asMember.post(UPDATE_MANY, { cards: some.map((id) => ({ id, status: 'closed' })) }));

    expect(await update(ids)).toBe(databaseUrl ? 8 : 6);
    expect(await update(ids.slice(0, 1))).toBe(databaseUrl ? 8 : 6);
    expect((await stored('cards', ids[99]!)).project_id).toBe(project.id);
  });

  it('never deadlocks with calls for the same cards in another order', async () => {
    const { asMember, project } = await givenWorld();
    const ids: number[] = [];
    for (let at = 0; at < 20; at++) ids.push(await givenCard(project));
    const update = (order: number[], status: string) =>
      asMember.alone().rpc.cards.updateMany.mutate({ cards: order.map((id) => ({ id, status })) });

    await Promise.all(
      Array.from({ length: 10 }, (_, at) => update(at % 2 === 0 ? ids : ids.toReversed(), `status ${at}`)),
    );

    const [{ statuses } = { statuses: 0 }] = await query(
      await testDb(),
      sql<{
        statuses: number;
      }>`select count(distinct status)::int as statuses from cards where project_id = ${project.id}`,
    );
    expect(statuses).toBe(1);
  });
});
