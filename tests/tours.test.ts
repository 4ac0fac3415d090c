import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { makeCaller, type TestCaller } from './harness/caller.ts';
import { testService } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  stored,
  testDb,
} from './harness/world.ts';

const TOUR = '/services/operations/v1/operations/tour';
const DISMISS = `${TOUR}/cards/dismiss-all`;

const tourCard = { tour_key: 'welcome' };
const listed = async (caller: TestCaller, filter: object = {}) =>
  (await caller.rpc.cards.list.query(filter)).cards.map(({ id, is_dismissed }) => ({ id, is_dismissed }));

describe('POST …/tour/cards/dismiss-all', () => {
  it('200 with the number of cards dismissed: each once per user, only in their projects', async () => {
    const { asViewer, asMember, project, otherProject } = await givenWorld();
    await givenCard(project, { tour_key: 'a' });
    await givenCard(project, { tour_key: 'b' });
    await givenCard(project, { tour_key: 'c', deleted_at: new Date() });
    await givenCard(project);
    await givenCard(otherProject, { tour_key: 'a' });

    const first = await asViewer.post(DISMISS);
    const again = await asViewer.post(DISMISS, {});
    const other = await asMember.post(DISMISS, '', { 'content-type': 'application/json' });

    expect(first.body).toEqual({ error: false, message: 'Tour cards dismissed.', data: { dismissed_count: 2 } });
    expect([again.body.data.dismissed_count, other.body.data.dismissed_count]).toEqual([0, 2]);
  });

  it('200 in every active project of the caller, and with X-Project-Id in that one', async () => {
    const { asViewer, project, users } = await givenWorld();
    const [second, inactive] = [await givenProject(), await givenProject({ is_active: false })];
    for (const further of [second, inactive]) await givenMember(users.viewer, further, 'viewer');
    for (const place of [project, second, inactive]) await givenCard(place, tourCard);

    const inOne = await asViewer.in(second.id).post(DISMISS);
    const inAll = await asViewer.post(DISMISS);

    expect([inOne.body.data.dismissed_count, inAll.body.data.dismissed_count]).toEqual([1, 1]);
  });

  it('200 for a superadmin without memberships, in the project that their calls go to', async () => {
    const { asSuperadmin, project, otherProject } = await givenWorld();
    for (const place of [project, otherProject]) await givenCard(place, tourCard);

    expect((await asSuperadmin.post(DISMISS)).body.data.dismissed_count).toBe(1);
  });

  it('counts each card once in ten concurrent calls', async () => {
    const { asViewer, project } = await givenWorld();
    for (let count = 0; count < 5; count++) await givenCard(project, { tour_key: 'a' });

    const answers = await Promise.all(Array.from({ length: 10 }, () => asViewer.post(DISMISS)));

    expect(answers.reduce((sum, { body }) => sum + body.data.dismissed_count, 0)).toBe(5);
  });
});

describe('a dismissed tour card', () => {
  it('is left out of lists unless they ask for it, and is marked there and by cards/get', async () => {
    const { asViewer, asMember, project } = await givenWorld();
    const tour = await givenCard(project, { ...tourCard, sort_order: 1 });
    const regular = await givenCard(project, { sort_order: 2 });
    await asViewer.post(DISMISS);

    expect(await listed(asViewer)).toEqual([{ id: regular, is_dismissed: false }]);
    expect(await listed(asViewer, { include_dismissed: true })).toEqual([
      { id: tour, is_dismissed: true },
      { id: regular, is_dismissed: false },
    ]);
    expect(await listed(asViewer, { text: 'card' })).toEqual([{ id: regular, is_dismissed: false }]);
    expect(await listed(asMember)).toHaveLength(2);
    expect((await asViewer.rpc.cards.get.query({ id: tour })).card.is_dismissed).toBe(true);
    expect((await asMember.rpc.cards.get.query({ id: tour })).card.is_dismissed).toBe(false);
  });

  it('is shown again when its tour_key changes: that is a new step, which can be dismissed again', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenCard(project, tourCard);
    await asViewer.post(DISMISS);
    const change = async (tour_key: string | null) =>
      query(await testDb(), sql`update cards set tour_key = ${tour_key} where id = ${id}`);

    await change('another step');
    expect(await listed(asViewer)).toEqual([{ id, is_dismissed: false }]);
    expect((await asViewer.post(DISMISS)).body.data.dismissed_count).toBe(1);
    expect(await listed(asViewer)).toEqual([]);
    await change(null);
    expect(await listed(asViewer)).toEqual([{ id, is_dismissed: false }]);
  });

  it('does not count in the position that a card is moved to', async () => {
    const { asMember, project } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    const make = (position: number, more: object = {}) => givenCard(project, { group_id, position, ...more });
    const [tour, first, second] = [await make(1, tourCard), await make(2), await make(3)];
    await asMember.post(DISMISS);

    await asMember.rpc.cards.move.mutate({ id: first, group_id, position: 2 });

    const positions = await Promise.all([tour, second, first].map(async (id) => (await stored('cards', id)).position));
    expect(positions).toEqual([1, 2, 3]);
  });
});

describe('POST …/tour/restart', () => {
  it('200, and all tour cards are shown again; with X-Project-Id those of that project', async () => {
    const { url } = await testService();
    const [first, second] = [await givenProject(), await givenProject()];
    const user = await givenUser({ project: first });
    await givenMember(user, second, 'viewer');
    const caller = makeCaller(url, await givenToken(user));
    for (const place of [first, first, second]) await givenCard(place, tourCard);
    await caller.post(DISMISS);

    const inOne = await caller.in(second.id).post(`${TOUR}/restart`);
    const inAll = await caller.post(`${TOUR}/restart`);

    expect(inOne.body).toEqual({ error: false, message: 'Tours restarted.', data: { restored_count: 1 } });
    expect(inAll.body.data.restored_count).toBe(2);
    expect(await listed(caller)).toHaveLength(2);
  });
});
