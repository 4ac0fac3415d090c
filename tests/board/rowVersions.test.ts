import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type Procedure, restProcedures } from '../../server/api/procedures.ts';
import { inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import type { Answer } from '../harness/caller.ts';
import { eventsOf } from '../harness/events.ts';
import { waitingFor } from '../harness/lock.ts';
import { sampled } from '../harness/sample.ts';
import { databaseUrl } from '../harness/service.ts';
import { allowedCaller, givenStartState } from '../harness/startStates.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMasterBoard,
  givenTag,
  givenWorld,
  stored,
  testDb,
} from '../harness/world.ts';

const OPERATIONS = '/services/operations/v1/operations';
const CARDS = `${OPERATIONS}/cards`;

const ifMatch = (header: string) => ({ 'If-Match': header });
const etagOf = ({ headers }: Answer) => headers.get('etag');

/** The tag of a row, as the service sends it. */
async function tagOf(table: string, id: number): Promise<string> {
  const row = await query(
    await testDb(),
    sql<{ version: string }>`
      select version || '-' || floor(extract(epoch from updated_at) * 1000) as version from ${sql.table(table)} where id = ${id}`,
  );
  return `"${row[0]?.version}"`;
}

/** The table of a procedure's rows: `masterCards.update` is about cards. */
const tableOf = ({ name }: Procedure) =>
  name
    .replace('templates.reset', 'cards')
    .replace(/^master/, '')
    .replace(/\..*/, '')
    .toLowerCase();

const outcomeOf = ({ status, headers }: Answer) => `${status} ${headers.get('x-error-reason')}`;

/** The status and the reason of a call over RPC. */
const rpcOutcomeOf = (call: Promise<unknown>) =>
  call.then(
    () => '200 null',
    ({ status, reason }) => `${status} ${reason}`,
  );

describe('the version of a row', () => {
  it('is not only its number: a restored database gives the same numbers again', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const { version } = await asMember.rpc.cards.get.query({ id });
    const [number] = version.split('-');

    // The same number, from before the restore.
    for (const earlier of [`${number}`, `${number}-1794787200000`]) {
      const answer = await asMember.post(`${CARDS}/update`, { id, title: 'Lost' }, ifMatch(`"${earlier}"`));
      expect(outcomeOf(answer)).toBe('412 row_changed');
    }
  });

  it('is the ETag over REST and beside the row over RPC, the same for both, and not in a body', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);

    const answer = await asMember.post(`${CARDS}/get`, { id });
    const { version } = await asMember.rpc.cards.get.query({ id });

    expect(etagOf(answer)).toBe(`"${version}"`);
    expect(Object.keys(answer.body.data)).toEqual(['card']);
    expect(answer.body.data.card).not.toHaveProperty('version');
  });

  it('begins with a number, which every change raises by one; an update to the same value does not', async () => {
    const { asMember } = await givenWorld();
    const numberOf = ({ version }: { version: string }) => Number(version.split('-')[0]);
    const answers: { version: string }[] = [];
    let id = 0;
    const events = await eventsOf(async () => {
      const { card, ...created } = await asMember.rpc.cards.create.mutate({ title: 'Same' });
      id = card.id;
      answers.push(created, await asMember.rpc.cards.get.query({ id }));
      answers.push(await asMember.rpc.cards.update.mutate({ id, title: 'Same' }));
      answers.push(await asMember.rpc.cards.update.mutate({ id, title: 'Other' }));
      answers.push(await asMember.rpc.cards.snooze.mutate({ id, until: new Date('2030-01-01') }));
      await asMember.rpc.cards.delete.mutate({ id });
      answers.push(await asMember.rpc.cards.restore.mutate({ id }));
    });

    expect(answers.map(numberOf)).toEqual([1, 1, 1, 2, 3, 5]);
    expect(answers[2]).toMatchObject({ version: answers[1]!.version });
    expect(events.map(({ type, data }) => [type, data.version])).toEqual([
      ['card.created', 1],
      ['card.updated', 2],
      ['card.updated', 3],
      ['card.deleted', 4],
      ['card.restored', 5],
    ]);
  });

  it('is accepted as the last release wrote it, with the transaction in the place of the number', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const earlier = sql<{ tag: string }>`
      select xmin || '-' || floor(extract(epoch from updated_at) * 1000) as tag from cards where id = ${id}`;
    const [{ tag } = { tag: '' }] = await query(await testDb(), earlier);

    const [first, second] = [
      await asMember.post(`${CARDS}/update`, { id, title: 'Changed' }, ifMatch(`"${tag}"`)),
      await asMember.post(`${CARDS}/update`, { id, title: 'Lost' }, ifMatch(`"${tag}"`)),
    ];

    expect([first, second].map(outcomeOf)).toEqual(['200 null', '412 row_changed']);
  });

  it('of siblings that move rises by one, and their event names them', async () => {
    const { asMember } = await givenWorld();
    const { board } = await asMember.rpc.boards.create.mutate({ title: 'Board' });
    const create = async (title: string) =>
      (await asMember.rpc.groups.create.mutate({ board_id: board.id, title })).group;
    const [first, second, third] = [await create('First'), await create('Second'), await create('Third')];

    const [event] = await eventsOf(() =>
      asMember.rpc.groups.reorder.mutate({ groups: [{ id: third.id, position: first.position }] }),
    );

    const versions = await query(
      await testDb(),
      sql<{ id: number; version: number }>`select id, version from groups where board_id = ${board.id} order by id`,
    );
    expect(versions).toEqual([first, second, third].map(({ id }) => ({ id, version: 2 })));
    expect(event?.data.ids?.toSorted()).toEqual([first.id, second.id, third.id].toSorted());
  });

  const concerned = restProcedures.filter(({ isVersioned, isConditional }) => isVersioned || isConditional);

  it.each(sampled(concerned).map((procedure) => [procedure.name, procedure] as const))(
    '%s takes the current one, and sends the one that the row has afterwards',
    async (_, procedure) => {
      const world = await givenWorld();
      const given = await givenStartState(procedure, world);
      const current = procedure.isConditional ? ifMatch(await tagOf(tableOf(procedure), given.id as number)) : {};
      const caller = allowedCaller(world, procedure);

      const answer = await caller.post(procedure.rest.path, inputFor(procedure, given), current);

      expect(answer.status).toBe(procedure.rest.status);
      if (!procedure.isVersioned) return;
      const { data } = answer.body;
      const [row] = ('id' in data ? [data] : Object.values(data)) as [string | { id: number }];
      const { id } = typeof row === 'string' ? JSON.parse(row) : row;
      expect(etagOf(answer)).toBe(await tagOf(tableOf(procedure), id));
    },
  );

  it('of a board above 128 KiB is sent, too', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenBoard(project);
    const group_id = await givenGroup(project, id);
    for (let cards = 0; cards < 4; cards++) await givenCard(project, { group_id, description: 'x'.repeat(60_000) });

    const answer = await asMember.post(`${OPERATIONS}/boards/get`, { id });

    expect(etagOf(answer)).toBe(await tagOf('boards', id));
    expect((await asMember.rpc.boards.get.query({ id })).version).toBe(etagOf(answer)?.slice(1, -1));
  });

  it('changes when another card takes the position', async () => {
    const { asMember, project } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    const [first, second] = [
      await givenCard(project, { group_id, position: 1 }),
      await givenCard(project, { group_id, position: 2 }),
    ];
    const { version } = await asMember.rpc.cards.get.query({ id: first });

    await asMember.rpc.cards.move.mutate({ id: second, group_id, position: 1 });

    const outdated = asMember.rpc.cards.update.mutate({ id: first, title: 'x', if_version: version });
    expect(await rpcOutcomeOf(outdated)).toBe('412 row_changed');
  });
});

it('updates, moves and deletions can require a version', () => {
  const conditional = restProcedures.filter(({ isConditional }) => isConditional);

  expect(conditional.map(({ name }) => name)).toEqual([
    ...['boards.update', 'boards.delete', 'groups.update', 'groups.configure', 'groups.delete'],
    ...['cards.delete', 'cards.update', 'cards.move', 'cards.snooze', 'comments.delete', 'tags.update', 'tags.delete'],
    ...['masterBoards.delete', 'masterBoards.update', 'masterGroups.update', 'masterGroups.delete'],
    ...['masterGroups.configure', 'masterCards.delete', 'masterCards.update'],
  ]);
});

describe('If-Match', () => {
  const update = async (header: (tag: string) => string, body: object = {}) => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const headers = ifMatch(header(await tagOf('cards', id)));
    return asMember.post(`${CARDS}/update`, { id, title: 'x', ...body }, headers);
  };

  it.each<[string, (tag: string) => string]>([
    ['the tag', (tag) => tag],
    ['a list with the tag', (tag) => `"1", ${tag},W/"2" , "a,b"`],
    ['*', () => '*'],
  ])('200 with %s', async (_, header) => {
    expect((await update(header)).status).toBe(200);
  });

  it.each<[string, (tag: string) => string]>([
    ['a list without the tag', () => '"1", "2"'],
    ['the tag as a weak one', (tag) => `W/${tag}`],
    ['a tag of another service', () => '"33a64df551425fcc"'],
    ['a tag that contains the right one', (tag) => `"1,${tag.slice(1)}`],
    ['an empty tag', () => '""'],
  ])('412 with %s', async (_, header) => {
    expect(outcomeOf(await update(header))).toBe('412 row_changed');
  });

  it.each<[string, (tag: string) => string]>([
    ['a tag without quotes', (tag) => tag.slice(1, -1)],
    ['nothing', () => ''],
    ['a list with *', (tag) => `${tag}, *`],
    ['an unfinished tag', (tag) => tag.slice(0, -1)],
  ])('400 with %s', async (_, header) => {
    expect(outcomeOf(await update(header))).toBe('400 if_match_invalid');
  });

  it('is the only way to require a version over REST: 422 for if_version in the body', async () => {
    expect(await update(() => '*', { if_version: '5' })).toMatchObject({
      status: 422,
      body: { errors: { if_version: ['if_version is not a known field over REST: send If-Match.'] } },
    });
  });

  it('404 for a row that does not exist, and 403 for one of others, whatever the version', async () => {
    const { asMember, asSuperadmin, otherProject } = await givenWorld();
    const id = await givenCard(otherProject);
    const missing = { id: 2_147_483_647, title: 'x' };

    expect((await asMember.post(`${CARDS}/update`, missing, ifMatch('"1"'))).status).toBe(404);
    expect((await asMember.post(`${CARDS}/update`, { id, title: 'x' }, ifMatch('"1"'))).status).toBe(403);
    const master = asSuperadmin.rpc.masterBoards.update.mutate({ id: missing.id, position: 1, if_version: '1' });
    expect(await rpcOutcomeOf(master)).toBe('404 not_found');
  });

  it('422 for an if_version that is empty, not text, or still an ETag, over RPC', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const tag = await tagOf('cards', id);
    const outcomes = ['', null, 5, tag, `W/${tag}`, tag.slice(1)].map((if_version: any) =>
      rpcOutcomeOf(asMember.rpc.cards.update.mutate({ id, title: 'x', if_version })),
    );

    expect(await Promise.all(outcomes)).toEqual(Array(6).fill('422 invalid_input'));
  });

  it('422 for an ETag as the if_version of a card in a list, with what to send', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const cards = [{ id, title: 'x', if_version: await tagOf('cards', id) }];

    expect(await asMember.post(`${CARDS}/update-many`, { cards })).toMatchObject({
      status: 422,
      body: { message: 'cards.0.if_version must not have quotes: send what is between those of the `ETag`.' },
    });
  });
});

describe('a repeat with the same idempotency key', () => {
  it('gets the first answer with its ETag, though the row has another version now', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const headers = { ...ifMatch(await tagOf('cards', id)), 'Idempotency-Key': `update-${id}` };
    const call = () => asMember.post(`${CARDS}/update`, { id, title: 'Once' }, headers);

    const [first, second] = [await call(), await call()];

    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(second.body).toEqual(first.body);
    expect(etagOf(second)).toBe(etagOf(first));
  });

  it('of a call that was a 412 is tried again', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const call = (tag: string) =>
      asMember.post(`${CARDS}/update`, { id, title: 'x' }, { ...ifMatch(tag), 'Idempotency-Key': `again-${id}` });

    expect((await call('"1"')).status).toBe(412);
    expect((await call(await tagOf('cards', id))).status).toBe(200);
  });
});

describe('50 calls at once that require the same version', () => {
  const times = <Part>(part: (at: number) => Part) => Array.from({ length: 50 }, (_, at) => part(at));
  const sorted = async (outcomes: Promise<string>[]) => (await Promise.all(outcomes)).sort();
  const ONE_OF_50 = ['200 null', ...Array(49).fill('412 row_changed')];

  it('change a card once over REST, with one event', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const tag = await tagOf('cards', id);
    const update = async (at: number) =>
      outcomeOf(await asMember.post(`${CARDS}/update`, { id, title: `Title ${at}` }, ifMatch(tag)));

    const events = await eventsOf(async () => {
      expect(await sorted(times(update))).toEqual(ONE_OF_50);
    });

    expect(events.map(({ type }) => type)).toEqual(['card.updated']);
  });

  it('change a card once over RPC', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const { version } = await asMember.rpc.cards.get.query({ id });
    const update = (at: number) =>
      rpcOutcomeOf(asMember.rpc.cards.update.mutate({ id, title: `Title ${at}`, if_version: version }));

    expect(await sorted(times(update))).toEqual(ONE_OF_50);
  });

  it('change and place a board, a tag, and a master board once', async () => {
    const { asMember, asSuperadmin, project } = await givenWorld();
    const [board, tag] = [await givenBoard(project), await givenTag(project)];
    const { board: master } = await givenMasterBoard();
    const paths = [
      [asMember, `${OPERATIONS}/boards/update`, 'boards', board, 'title'],
      [asMember, `${OPERATIONS}/tags/update`, 'tags', tag, 'name'],
      [asSuperadmin, '/services/operations/v1/admin/master-boards/update', 'boards', master, 'title'],
    ] as const;

    for (const [caller, path, table, id, field] of paths) {
      const required = ifMatch(await tagOf(table, id));
      const update = async (at: number) =>
        outcomeOf(await caller.post(path, { id, [field]: `Text ${at}`, position: at }, required));
      expect([path, await sorted(times(update))]).toEqual([path, ONE_OF_50]);
    }
  });
});

/** The embedded database runs one transaction at a time. */
describe.skipIf(!databaseUrl)('412 for a call that waits for the change of another', () => {
  const TEXTS: Record<string, string> = { boards: 'title', cards: 'title', comments: 'comment', tags: 'name' };
  const changed = (table: string, id: number) => [
    sql`update ${sql.table(table)} set ${sql.ref(TEXTS[table]!)} = 'Changed', updated_at = now() where id = ${id}`,
  ];

  it.each<[string, string, object]>([
    ['boards', 'update', { title: 'x' }],
    ['boards', 'update', { title: 'x', position: 3 }],
    ['boards', 'delete', {}],
    ['tags', 'delete', {}],
    ['cards', 'move', { group_id: null }],
    ['comments', 'delete', {}],
  ])('%s/%s with %j', async (table, action, input) => {
    const { asMember, project, users } = await givenWorld();
    const card = await givenCard(project);
    const make: Record<string, () => Promise<number>> = {
      boards: () => givenBoard(project),
      tags: () => givenTag(project),
      cards: async () => card,
      comments: () => givenComment(project, card, users.member),
    };
    const id = await make[table]!();
    const required = ifMatch(await tagOf(table, id));
    const call = () => asMember.post(`${OPERATIONS}/${table}/${action}`, { id, ...input }, required);

    expect(outcomeOf(await waitingFor(changed(table, id), call))).toBe('412 row_changed');
    expect((await stored(table, id)).deleted_at).toBeNull();
  });
});
