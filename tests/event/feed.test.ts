import { sql } from 'kysely';
import { describe, expect, it, vi } from 'vitest';
import { query, transact } from '../../server/database/query.ts';
import { type EventRow, toCursor } from '../../server/domain/event/feed.ts';
import type { EventType } from '../../shared/event.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { CARD_DATA, feedComplete } from '../harness/events.ts';
import { databaseUrl, givenDatabase, testService } from '../harness/service.ts';
import {
  givenCard,
  givenKey,
  givenMasterBoard,
  givenMember,
  givenProject,
  givenUser,
  givenWorld,
  type KeyState,
  type TestProject,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const list = (caller: TestCaller, input: object = {}) => caller.rpc.events.list.query(input);

/** The cursor of now. Transactions of other suites on the server may put it a little before. */
const latest = async (caller: TestCaller) => (await list(caller, { after: 'latest' })).cursor;

/** All events behind a cursor, page by page. */
async function readOn(caller: TestCaller, after: string, input: object = {}): Promise<EventRow[]> {
  const { events, cursor, has_more } = await list(caller, { ...input, after });
  return has_more ? [...events, ...(await readOn(caller, cursor, input))] : events;
}

/** Waits until the caller sees this many events: they appear when no older transaction is running on the server. */
async function readUntil(count: number, caller: TestCaller, after: string, input: object = {}): Promise<EventRow[]> {
  return vi.waitFor(
    async () => {
      const events = await readOn(caller, after, input);
      expect(events.length).toBeGreaterThanOrEqual(count);
      return events;
    },
    { interval: 100 },
  );
}

const callerOf = async (user: TestUser, state: KeyState = {}) =>
  makeCaller((await testService()).url, (await givenKey(user, state)).secret);

/** Cards that the member creates in their project, and the outsider in the other one, after a cursor. */
async function givenEvents() {
  const world = await givenWorld();
  const after = await latest(world.asSuperadmin);
  const own: number[] = [];
  for (const title of ['One', 'Two', 'Three'])
    own.push((await world.asMember.rpc.cards.create.mutate({ title })).card.id);
  const other = [(await world.asOutsider.rpc.cards.create.mutate({ title: 'Other' })).card.id];
  const { board } = await world.asSuperadmin.rpc.masterBoards.create.mutate({ title: 'Template' });
  await feedComplete();
  return { ...world, after, own, other, master: board.id };
}

const subjects = (events: EventRow[]) => events.map(({ subject_id }) => subject_id);

describe('events.list', () => {
  it('shows members the events of their projects, in order', async () => {
    const { asViewer, asMember, asOutsider, users, project, after, own, other } = await givenEvents();

    const events = await readOn(asMember, after);

    expect(subjects(events)).toEqual(own);
    expect(events[0]).toEqual({
      id: expect.stringMatching(/^\d+$/),
      type: 'card.created',
      created_at: expect.any(Date),
      platform_id: project.platform_id,
      project_id: project.id,
      user_id: users.member.id,
      key_id: null,
      surface: 'rpc',
      request_id: expect.any(String),
      subject_id: own[0],
      data: { group_id: null, version: 1 },
    });
    expect(await readOn(asViewer, after)).toEqual(events);
    expect(subjects(await readOn(asOutsider, after))).toEqual(other);
  });

  it('shows all projects of a member, until they leave one', async () => {
    const { asMember, users, otherProject, after, own, other } = await givenEvents();
    await givenMember(users.member, otherProject, 'viewer');

    expect(subjects(await readOn(asMember, after))).toEqual([...own, ...other]);
    expect(subjects(await readOn(asMember.in(otherProject.id), after))).toEqual(other);

    await query(
      await testDb(),
      sql`delete from members where user_id = ${users.member.id} and project_id = ${otherProject.id}`,
    );
    expect(subjects(await readOn(asMember, after))).toEqual(own);
  });

  it('shows members nothing of a project while it is deactivated', async () => {
    const { asMember, users, otherProject, after, own, other } = await givenEvents();
    await givenMember(users.member, otherProject, 'owner');
    const key = await callerOf(users.member, { scopes: ['events:read'] });
    const setActive = async (is_active: boolean) =>
      query(await testDb(), sql`update projects set is_active = ${is_active} where id = ${otherProject.id}`);

    await setActive(false);
    for (const caller of [asMember, key]) expect(subjects(await readOn(caller, after))).toEqual(own);
    expect(await errorOf(list(asMember, { project_id: otherProject.id }))).toMatchObject({ status: 403 });

    await setActive(true);
    for (const caller of [asMember, key]) expect(subjects(await readOn(caller, after))).toEqual([...own, ...other]);
  });

  it('shows events of keys, webhooks and invitations to owners, and of a key to its user', async () => {
    const { asViewer, asMember, asOwner, asSuperadmin, users, project } = await givenWorld();
    const after = await latest(asSuperadmin);
    const values = [
      ['key.created', 1, { user_id: users.member.id }],
      ['key.revoked', 1, { user_id: users.owner.id }],
      ['webhook.disabled', 1, { reason: 'gone' }],
      ['invitation.created', 1, { role: 'viewer' }],
      ['member.added', null, { user_id: users.member.id, role: 'member' }],
    ] as const;
    for (const [type, subject, data] of values)
      await query(
        await testDb(),
        sql`insert into events (type, project_id, surface, subject_id, data)
          values (${type}, ${project.id}, 'rest', ${subject}::int, ${JSON.stringify(data)}::jsonb)`,
      );
    await feedComplete();
    const { secret } = await givenKey(users.viewer, { scopes: ['events:read'], project_id: project.id });
    const withKey = makeCaller((await testService()).url, secret);
    const typesFor = async (caller: TestCaller, input: object = {}) =>
      (await readOn(caller, after, input)).map(({ type }) => type);

    const all = values.map(([type]) => type);
    expect(await typesFor(asOwner)).toEqual(all);
    expect(await typesFor(asOwner, { project_id: project.id, limit: 1 })).toEqual(all);
    expect(await typesFor(asSuperadmin.in(project.id))).toEqual(all);
    for (const input of [{}, { project_id: project.id }, { limit: 1 }]) {
      expect(await typesFor(asMember, input)).toEqual(['key.created', 'member.added']);
      expect(await typesFor(asMember.in(project.id), input)).toEqual(['key.created', 'member.added']);
      expect(await typesFor(asViewer, input)).toEqual(['member.added']);
      expect(await typesFor(withKey, input)).toEqual(['member.added']);
    }
    expect(await typesFor(asViewer, { types: ['webhook.disabled'] })).toEqual([]);
  });

  it('shows superadmins all, also those outside of projects, or one project', async () => {
    const { asSuperadmin, project, otherProject, after, own, other, master } = await givenEvents();

    expect(subjects(await readOn(asSuperadmin, after))).toEqual(expect.arrayContaining([...own, ...other, master]));
    expect(subjects(await readOn(asSuperadmin.in(project.id), after))).toEqual(own);
    expect(subjects(await readOn(asSuperadmin, after, { project_id: otherProject.id }))).toEqual(other);
  });

  it('shows an API key what its user sees, or the one project that it is restricted to', async () => {
    const { users, otherProject, after, own, other, master } = await givenEvents();
    await givenMember(users.member, otherProject, 'viewer');
    const scopes = ['events:read'];

    const read = async (user: TestUser, state: KeyState) => subjects(await readOn(await callerOf(user, state), after));

    expect(await read(users.member, { scopes })).toEqual([...own, ...other]);
    expect(await read(users.member, { scopes, project_id: otherProject.id })).toEqual(other);
    expect(await read(users.superadmin, { scopes: [...scopes, 'admin'] })).toContain(master);
    // Without the scope admin, only memberships count.
    expect(await errorOf(read(users.superadmin, { scopes }))).toMatchObject({ status: 403 });
  });

  it('names the API key of a call', async () => {
    const { asMember, users } = await givenWorld();
    const after = await latest(asMember);
    const { id: key_id, secret } = await givenKey(users.member);
    const { url } = await testService();

    await makeCaller(url, secret).rpc.cards.create.mutate({ title: 'By a key' });

    expect(await readUntil(1, asMember, after)).toMatchObject([{ user_id: users.member.id, key_id }]);
  });

  it('403 for a key without the scope events:read, and for projects of others', async () => {
    const { asMember, users, otherProject } = await givenWorld();
    const unscoped = await callerOf(users.member, { scopes: ['boards:read'] });
    const restricted = await callerOf(users.outsider, { project_id: otherProject.id });

    expect(await errorOf(list(unscoped))).toMatchObject({ status: 403, reason: 'scope_missing' });
    expect(await errorOf(list(asMember.in(otherProject.id)))).toMatchObject({ status: 403 });
    expect(await errorOf(list(asMember, { project_id: otherProject.id }))).toMatchObject({ status: 403 });
    expect(await errorOf(list(restricted.in(users.member.id)))).toMatchObject({ status: 403 });
  });

  it('shows the wanted types only', async () => {
    const { asMember, after, own } = await givenEvents();
    const id = own[0]!;
    await asMember.rpc.cards.update.mutate({ id, title: 'Changed' });
    await asMember.rpc.cards.delete.mutate({ id });
    await readUntil(5, asMember, after);

    const types: EventType[] = ['card.updated', 'card.deleted'];
    const events = await readOn(asMember, after, { types });

    expect(events.map(({ type }) => type)).toEqual(types);
    expect(await errorOf(list(asMember, { types: ['card.exploded'] }))).toMatchObject({ status: 422 });
  });

  it('has each event once, in order, on pages of any size', async () => {
    const { asMember, after, own } = await givenEvents();
    const id = own[0]!;
    for (const title of ['A', 'B', 'C', 'D']) await asMember.rpc.cards.update.mutate({ id, title });
    const all = await readUntil(7, asMember, after);

    for (const limit of [1, 2, 3, 7, 8]) expect(await readOn(asMember, after, { limit })).toEqual(all);

    expect(new Set(all.map(({ id }) => id)).size).toBe(7);
    const filtered = await readOn(asMember, after, { limit: 1, types: ['card.updated'] });
    expect(filtered).toEqual(all.slice(3));
    expect(await list(asMember, { after, limit: 7 })).toMatchObject({ events: all, has_more: false });
    expect(await list(asMember, { after, limit: 6 })).toMatchObject({ has_more: true });
  });

  it('has the events of one transaction together, also on several pages', async () => {
    const { asMember, asSuperadmin, project } = await givenWorld();
    const after = await latest(asMember);
    const insert = sql`
      insert into events (type, project_id, surface, subject_id, data)
      select 'card.created', ${project.id}, 'rest', n, ${CARD_DATA} from generate_series(1, 5) n`;
    await query(await testDb(), insert);
    await asMember.rpc.cards.create.mutate({ title: 'Later' });

    const all = await readUntil(6, asMember, after);

    expect(subjects(all).slice(0, 5)).toEqual([1, 2, 3, 4, 5]);
    expect(await readOn(asMember, after, { limit: 2 })).toEqual(all);
    expect(await readOn(asSuperadmin.in(project.id), after, { limit: 4 })).toEqual(all);
  });

  /** So many events of a type that a filter leaves out, more than one page reads. */
  const givenUnwanted = async ({ id }: TestProject, count: number) =>
    query(
      await testDb(),
      sql`insert into events (type, project_id, surface, subject_id, data) select 'card.moved', ${id}, 'rest', 1, ${CARD_DATA} from generate_series(1, ${count}::int)`,
    );

  it('goes on behind unwanted events of several projects, on a page that is empty', async () => {
    const { asMember, users, otherProject, project } = await givenWorld();
    await givenMember(users.member, otherProject, 'viewer');
    const after = await latest(asMember);
    for (const each of [project, otherProject]) await givenUnwanted(each, 600);
    const { tag } = await asMember.rpc.tags.create.mutate({ name: 'Wanted' });
    await feedComplete();

    const types: EventType[] = ['tag.created'];

    expect(await list(asMember, { after, types })).toMatchObject({ events: [], has_more: true });
    expect(subjects(await readOn(asMember, after, { types }))).toEqual([tag.id]);
  });

  it('shows members of more than 20 projects the events of these alone, with and without types', async () => {
    const { project, after, own } = await givenEvents();
    const user = await givenUser({ project, role: 'viewer' });
    for (let number = 0; number < 20; number++) await givenMember(user, await givenProject(), 'viewer');
    const caller = await callerOf(user);

    for (const input of [{}, { limit: 1 }, { types: ['card.created'] }])
      expect(subjects(await readOn(caller, after, input))).toEqual(own);
  });

  it('begins with the oldest event without a cursor', async () => {
    const { asMember, own } = await givenEvents();

    const { events, cursor, has_more } = await list(asMember, { limit: 2 });

    expect(subjects(events)).toEqual(own.slice(0, 2));
    expect(has_more).toBe(true);
    expect(subjects((await list(asMember, { after: cursor })).events)).toEqual(own.slice(2));
  });

  it('has no events for `latest`, but the cursor for those that follow', async () => {
    const { asMember, own } = await givenEvents();

    const now = await list(asMember, { after: 'latest' });
    const { card } = await asMember.rpc.cards.create.mutate({ title: 'New' });
    const next = await readUntil(1, asMember, now.cursor);

    expect(now).toMatchObject({ events: [], has_more: false });
    expect(own).not.toContain(card.id);
    expect(subjects(next).at(-1)).toBe(card.id);
  });

  it('shows no event twice to a reader who follows while others write', async () => {
    const { asMember, asOwner } = await givenWorld();
    let cursor = await latest(asMember);
    const seen: EventRow[] = [];
    const readPage = async () => {
      const page = await list(asMember, { after: cursor, limit: 3 });
      cursor = page.cursor;
      seen.push(...page.events);
      return page;
    };
    const titles = Array.from({ length: 10 }, (_, number) => `Card ${number}`);
    const write = async (caller: TestCaller) => {
      const ids: number[] = [];
      for (const title of titles) ids.push((await caller.rpc.cards.create.mutate({ title })).card.id);
      return ids;
    };

    const writing = Promise.all([write(asMember.alone()), write(asOwner)]);
    for (let page = 0; page < 10; page++) await readPage();
    const written = (await writing).flat();
    await vi.waitFor(
      async () => {
        while ((await readPage()).has_more);
        expect(seen.length).toBeGreaterThanOrEqual(20);
      },
      { interval: 100 },
    );

    expect(subjects(seen).toSorted()).toEqual(written.toSorted());
  });
});

describe('events.list of a card', () => {
  /** A card of the member's project with comments, beside another card with the same. */
  async function givenHistory() {
    const world = await givenWorld();
    const { cards, comments } = world.asMember.rpc;
    const [card_id, beside] = [await givenCard(world.project), await givenCard(world.project)];
    for (const id of [card_id, beside]) {
      await cards.update.mutate({ id, title: 'Another' });
      const { comment } = await comments.create.mutate({ card_id: id, comment: 'Why?' });
      await comments.markRead.mutate({ id: comment.id });
      await comments.delete.mutate({ id: comment.id });
      await cards.delete.mutate({ id });
    }
    await feedComplete();
    return { ...world, card_id };
  }
  const HISTORY = ['card.updated', 'comment.created', 'comment.deleted', 'card.deleted'];
  const typesOf = async (caller: TestCaller, input: object) =>
    (await list(caller, input)).events.map(({ type }) => type);

  it('has what happened to it and its comments, also to a deleted one, in any project of the caller', async () => {
    const { asViewer, asSuperadmin, users, otherProject, project, card_id } = await givenHistory();
    const inBoth = await givenUser({ project: otherProject, default_project_id: otherProject.id });
    await givenMember(inBoth, project, 'viewer');

    for (const caller of [asViewer, asSuperadmin, await callerOf(inBoth)])
      expect(await typesOf(caller, { card_id })).toEqual(HISTORY);
    expect((await list(asViewer, { card_id })).events[1]).toMatchObject({
      user_id: users.member.id,
      data: { card_id },
    });
    expect(await typesOf(asViewer, { card_id, types: ['card.deleted'] })).toEqual(['card.deleted']);
  });

  it('comes in pages, and goes on behind the last one', async () => {
    const { asMember, card_id } = await givenHistory();

    const first = await list(asMember, { card_id, limit: 3 });
    const second = await list(asMember, { card_id, limit: 3, after: first.cursor });
    await asMember.rpc.cards.restore.mutate({ id: card_id });
    await feedComplete();

    expect([...first.events, ...second.events].map(({ type }) => type)).toEqual(HISTORY);
    expect([first.has_more, second.has_more]).toEqual([true, false]);
    expect(await typesOf(asMember, { card_id, after: second.cursor })).toEqual(['card.restored']);
  });

  it('is empty for a card of another project, as for an unknown one or a template', async () => {
    const { asOutsider, asMember, asSuperadmin, users, otherProject, project, card_id } = await givenHistory();
    const { card: template } = await givenMasterBoard();
    const page = async (caller: TestCaller, input: object) => {
      const { events, has_more } = await list(caller, { limit: 1, ...input });
      return { events, has_more };
    };

    const none = { events: [], has_more: false };
    for (const id of [card_id, 2_147_483_647, template]) expect(await page(asOutsider, { card_id: id })).toEqual(none);
    expect(await page(asSuperadmin.in(otherProject.id), { card_id })).toEqual(none);
    expect(await page(asSuperadmin, { card_id, project_id: otherProject.id })).toEqual(none);
    expect(await errorOf(list(asMember, { card_id, project_id: otherProject.id }))).toMatchObject({ status: 403 });

    await givenMember(users.outsider, project, 'owner');
    expect(await page(asOutsider, { card_id })).toMatchObject({ has_more: true });
    await query(await testDb(), sql`update projects set is_active = false where id = ${project.id}`);
    expect(await page(asOutsider, { card_id })).toEqual(none);
  });
});

describe('a cursor', () => {
  const now = () => Math.floor(Date.now() / 1000);
  const DAY_SECONDS = 24 * 60 * 60;

  it('422 with cursor_too_old after the events behind it may have been removed', async () => {
    const { asMember } = await givenWorld();
    const aged = (days: number) => toCursor({ transaction: '5', id: '0', seconds: now() - days * DAY_SECONDS });

    expect(await errorOf(list(asMember, { after: aged(31) }))).toMatchObject({ status: 422, reason: 'cursor_too_old' });
    expect(await list(asMember, { after: aged(29) })).toMatchObject({ events: expect.any(Array) });
  });

  it('of a page is valid for the next one, also if events are older than they are kept', async () => {
    const { asMember, project } = await givenWorld();
    const aged = (hours: number) => sql`
      insert into events (type, project_id, surface, subject_id, data, created_at)
      values ('card.created', ${project.id}, 'rest', ${hours}::int, ${CARD_DATA}, now() - make_interval(hours => ${hours}::int))`;
    const days = 30 * 24;
    for (const hours of [days + 20, days + 13, days - 1, days - 2, days - 3]) await query(await testDb(), aged(hours));
    await feedComplete();

    const first = await list(asMember, { limit: 1 });
    // The oldest kept event grows older than that between two pages.
    await query(
      await testDb(),
      sql`update events set created_at = created_at - interval '5 hours' where project_id = ${project.id}`,
    );
    const parts = JSON.parse(Buffer.from(first.cursor, 'base64url').toString());
    const later = { transaction: parts[0], id: parts[1], seconds: parts[2] - 5 * 60 * 60 };
    const next = await list(asMember, { after: toCursor(later) });

    expect(subjects(first.events)).toEqual([days - 1]);
    expect(subjects(next.events)).toEqual([days - 2, days - 3]);
  });

  it('422 with cursor_too_old if it is of another database, which is further', async () => {
    const { asMember } = await givenWorld();
    const after = toCursor({ transaction: '999999999999', id: '7', seconds: now() });

    expect(await errorOf(list(asMember, { after }))).toMatchObject({ status: 422, reason: 'cursor_too_old' });
  });

  it.each([
    'made-up',
    '17',
    '',
    Buffer.from('[1,2,3]').toString('base64url'),
    Buffer.from('["1","2"]').toString('base64url'),
    Buffer.from(`["1","2 or true",${0}]`).toString('base64url'),
    toCursor({ transaction: '9'.repeat(19), id: '0', seconds: 1 }),
    toCursor({ transaction: '1', id: '1', seconds: Number.MAX_SAFE_INTEGER }),
  ])('422 with cursor_invalid if it was made up: %s', async (after) => {
    const { asMember } = await givenWorld();

    expect(await errorOf(list(asMember, { after }))).toMatchObject({ status: 422, reason: 'cursor_invalid' });
  });

  /** An event in a transaction on another connection, which is still running. */
  async function givenLateEvent({ id }: TestProject) {
    const { db, close } = await givenDatabase();
    const written = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const insert = sql`insert into events (type, project_id, surface, subject_id, data) values ('card.moved', ${id}, 'rest', 1, ${CARD_DATA})`;
    const ended = transact(db, async (db) => {
      await query(db, insert);
      written.resolve();
      await end.promise;
    });
    await written.promise;
    return {
      commit: async () => {
        end.resolve();
        await ended;
        await close();
      },
    };
  }

  it.skipIf(!databaseUrl)('does not skip an event whose transaction commits late', async () => {
    const { asMember, project } = await givenWorld();
    const after = await latest(asMember);
    const late = await givenLateEvent(project);
    const { card } = await asMember.rpc.cards.create.mutate({ title: 'Committed first' });

    const meanwhile = await list(asMember, { after });
    const again = await list(asMember, { after: meanwhile.cursor });
    await late.commit();
    const then = await readUntil(2, asMember, again.cursor);

    // The event that was committed first has the larger id, and waits for the other one.
    expect([...meanwhile.events, ...again.events]).toEqual([]);
    expect(subjects(then)).toEqual([1, card.id]);
    expect(Number(then[0]!.id)).toBeLessThan(Number(then[1]!.id));
  });

  it.skipIf(!databaseUrl)(
    'shows what is older than a running transaction, and its event once it has committed',
    async () => {
      const { asMember, project } = await givenWorld();
      const after = await latest(asMember);
      const { card } = await asMember.rpc.cards.create.mutate({ title: 'Older' });
      const late = await givenLateEvent(project);

      const meanwhile = await readUntil(1, asMember, after);
      const { cursor } = await list(asMember, { after });
      await late.commit();
      const then = await readUntil(1, asMember, cursor);

      expect(subjects(meanwhile)).toEqual([card.id]);
      expect(subjects(then)).toEqual([1]);
    },
  );
});
