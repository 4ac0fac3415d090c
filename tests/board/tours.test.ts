import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import type { TestCaller } from '../harness/caller.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMember,
  givenProject,
  givenWorld,
  stored,
  testDb,
} from '../harness/world.ts';

const tourCard = { tour_key: 'welcome' };
const dismiss = async ({ rpc }: TestCaller) => (await rpc.tour.dismissAll.mutate()).dismissed_count;
const restart = async ({ rpc }: TestCaller) => (await rpc.tour.restart.mutate()).restored_count;
const listed = async (caller: TestCaller, filter: object = {}) =>
  (await caller.rpc.cards.list.query(filter)).cards.map(({ id, is_dismissed }) => ({ id, is_dismissed }));

describe('tours', () => {
  it('are dismissed and restarted in every active project of the caller, and with X-Project-Id in that one', async () => {
    const { asViewer, project, otherProject, users } = await givenWorld();
    const [second, inactive] = [await givenProject(), await givenProject({ is_active: false })];
    for (const further of [second, inactive]) await givenMember(users.viewer, further, 'viewer');
    for (const place of [project, project, second, inactive, otherProject]) await givenCard(place, tourCard);
    await givenCard(project, { ...tourCard, deleted_at: new Date() });
    await givenCard(project);

    expect([await dismiss(asViewer.in(second.id)), await dismiss(asViewer), await dismiss(asViewer)]).toEqual([
      1, 2, 0,
    ]);
    expect([await restart(asViewer.in(second.id)), await restart(asViewer)]).toEqual([1, 2]);
    expect(await listed(asViewer)).toHaveLength(3);
  });

  it('are dismissed by a superadmin without memberships in the project that their calls go to', async () => {
    const { asSuperadmin, project, otherProject } = await givenWorld();
    for (const place of [project, otherProject]) await givenCard(place, tourCard);

    expect(await dismiss(asSuperadmin)).toBe(1);
  });
});

describe('a dismissed tour card', () => {
  it('is left out of lists unless they ask for it, and is marked there and by cards/get', async () => {
    const { asViewer, asMember, project } = await givenWorld();
    const tour = await givenCard(project, { ...tourCard, sort_order: 1 });
    const regular = await givenCard(project, { sort_order: 2 });
    await dismiss(asViewer);
    const isDismissed = async ({ rpc }: TestCaller) => (await rpc.cards.get.query({ id: tour })).card.is_dismissed;

    const shown = { id: regular, is_dismissed: false };
    expect(await listed(asViewer)).toEqual([shown]);
    expect(await listed(asViewer, { text: 'card' })).toEqual([shown]);
    expect(await listed(asViewer, { include_dismissed: true })).toEqual([{ id: tour, is_dismissed: true }, shown]);
    expect(await listed(asMember)).toHaveLength(2);
    expect([await isDismissed(asViewer), await isDismissed(asMember)]).toEqual([true, false]);
  });

  it('is shown again when its tour_key changes: that is a new step, which can be dismissed again', async () => {
    const { asViewer, project } = await givenWorld();
    const id = await givenCard(project, tourCard);
    await dismiss(asViewer);
    const change = async (tour_key: string | null) =>
      query(await testDb(), sql`update cards set tour_key = ${tour_key} where id = ${id}`);

    await change('another step');
    expect(await listed(asViewer)).toEqual([{ id, is_dismissed: false }]);
    expect(await dismiss(asViewer)).toBe(1);
    expect(await listed(asViewer)).toEqual([]);
    await change(null);
    expect(await listed(asViewer)).toEqual([{ id, is_dismissed: false }]);
  });

  it('does not count in the position that a card is moved to', async () => {
    const { asMember, project } = await givenWorld();
    const group_id = await givenGroup(project, await givenBoard(project));
    const make = (position: number, more: object = {}) => givenCard(project, { group_id, position, ...more });
    const [tour, first, second] = [await make(1, tourCard), await make(2), await make(3)];
    await dismiss(asMember);

    await asMember.rpc.cards.move.mutate({ id: first, group_id, position: 2 });

    const positions = await Promise.all([tour, second, first].map(async (id) => (await stored('cards', id)).position));
    expect(positions).toEqual([1, 2, 3]);
  });
});
