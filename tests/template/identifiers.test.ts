import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import {
  copiesIn,
  givenTemplate,
  hideEarlierProjects,
  outcomesOf,
  pushCard as push,
  reportOf,
  sync,
} from '../harness/template.ts';
import { givenCard, givenComment, givenProject, NOWHERE, stored, type TestProject, testDb } from '../harness/world.ts';

const GENERATED = expect.stringMatching(/^[0-9a-f-]{36}$/);

hideEarlierProjects();

/** The live cards of a project with an identifier. */
const liveWith = async (project: TestProject, identifier: string): Promise<any[]> =>
  query(
    await testDb(),
    sql`select * from cards where project_id = ${project.id} and unique_identifier = ${identifier} and deleted_at is null`,
  );

/** A synced template whose first card was deleted, and a new one with its identifier in the second group. */
async function givenReplacedCard() {
  const template = await givenTemplate();
  await sync(template);
  const [old] = template.cards;
  const identifier = `${template.tool}-one`;
  const [copy] = await liveWith(template.projects[0], identifier);
  await template.asSuperadmin.rpc.masterCards.delete.mutate({ id: old });
  const replacement = await givenCard(NOWHERE, {
    is_master: true,
    group_id: template.groups[1],
    title: 'New One',
    unique_identifier: identifier,
    status: 'closed',
    position: 2,
  });
  return { template, old, copy, replacement, identifier };
}

describe('a live copy of a deleted master card', () => {
  it('is adopted by a push of the card that has its identifier now, as the preview says', async () => {
    const { template, copy, replacement, identifier } = await givenReplacedCard();
    const [first, second] = template.projects;
    const comment = await givenComment(first, copy.id, template.users.superadmin);
    const { previewPush } = template.asSuperadmin.rpc.masterCards;
    const preview = await outcomesOf(previewPush.query({ card_id: replacement }), template);
    const nextId = await givenCard(first);

    expect(await push(template, replacement)).toEqual({ projects_updated: 2 });

    const { id, group_id, position, status, priority } = copy;
    const brought = { master_card_id: replacement, title: 'New One', description: null };
    expect(await liveWith(first, identifier)).toMatchObject([{ id, group_id, position, status, priority, ...brought }]);
    expect(await liveWith(second, identifier)).toMatchObject([{ master_card_id: replacement, title: 'New One' }]);
    expect(await stored('comments', comment)).toMatchObject({ card_id: copy.id });
    expect(preview).toMatchObject([
      { outcome: 'updated', cards_updated: 1, cards_added: 0 },
      { outcome: 'updated', cards_updated: 1, cards_added: 0 },
      { outcome: 'skipped', reason: 'no_access' },
    ]);
    expect(await reportOf(template)).toEqual(preview);
    expect(await push(template, replacement)).toEqual({ projects_updated: 0 });
    expect(await givenCard(first)).toBe(nextId + 1);
  });

  it('is adopted by a sync, and keeps its fields until a push', async () => {
    const { template, copy, replacement, identifier } = await givenReplacedCard();
    const [first] = template.projects;

    await sync(template);

    expect(await liveWith(first, identifier)).toMatchObject([
      { id: copy.id, master_card_id: replacement, title: 'One', description: '<p>1</p>' },
    ]);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'updated', cards_updated: 1, cards_added: 0 });
    await sync(template);
    expect((await reportOf(template))[0]).toMatchObject({ outcome: 'unchanged' });
    await push(template, replacement);
    expect(await stored('cards', copy.id)).toMatchObject({ title: 'New One', description: null });
  });

  it('is adopted by a card that is created with push_to_projects', async () => {
    const { template, copy, replacement, identifier } = await givenReplacedCard();
    await template.asSuperadmin.rpc.masterCards.delete.mutate({ id: replacement });

    const { card, projects_updated } = await template.asSuperadmin.rpc.masterCards.create.mutate({
      group_id: template.groups[0],
      title: 'Third One',
      unique_identifier: identifier,
      push_to_projects: true,
    });

    expect(projects_updated).toBe(2);
    expect(await liveWith(template.projects[0], identifier)).toMatchObject([
      { id: copy.id, master_card_id: card.id, title: 'Third One' },
    ]);
  });

  it('is adopted once by syncs and pushes at the same time', async () => {
    const { template, replacement, identifier } = await givenReplacedCard();
    const { asSuperadmin, board } = template;

    await Promise.all([
      ...Array.from({ length: 3 }, () => asSuperadmin.alone().rpc.masterBoards.sync.mutate({ board_id: board })),
      ...Array.from({ length: 3 }, () => asSuperadmin.alone().rpc.masterCards.push.mutate({ card_id: replacement })),
    ]);

    for (const project of template.projects)
      expect(await liveWith(project, identifier)).toMatchObject([{ master_card_id: replacement, title: 'New One' }]);
  });

  it('is not adopted if the project deleted it: the new card is added', async () => {
    const { template, copy, replacement, identifier } = await givenReplacedCard();
    const [first] = template.projects;
    await template.asSuperadmin.in(first.id).rpc.cards.delete.mutate({ id: copy.id });

    await sync(template);

    const [added, ...more] = await liveWith(first, identifier);
    expect(more).toEqual([]);
    expect(added).toMatchObject({ master_card_id: replacement, title: 'New One', status: 'closed' });
    expect(added.id).toBeGreaterThan(copy.id);
  });

  it('is not adopted where the new card is not copied: in a deleted group, or while it is inactive', async () => {
    const { template, old, copy, replacement, identifier } = await givenReplacedCard();
    const [first, second] = template.projects;
    const [, , three] = await copiesIn(first, template);
    await template.asSuperadmin.in(first.id).rpc.groups.delete.mutate({ id: three.group_id });

    await push(template, replacement);
    expect(await stored('cards', copy.id)).toMatchObject({ master_card_id: old, title: 'One', deleted_at: null });
    expect(await liveWith(second, identifier)).toMatchObject([{ master_card_id: replacement }]);

    const other = await givenReplacedCard();
    await query(await testDb(), sql`update cards set is_active = false where id = ${other.replacement}`);
    await push(other.template, other.replacement);
    expect(await stored('cards', other.copy.id)).toMatchObject({ master_card_id: other.old, is_active: true });
  });
});

describe('a new identifier of a master card', () => {
  it('reaches its live copies at once, also in projects without access', async () => {
    const template = await givenTemplate();
    const [one, two] = template.cards;
    const [first, second] = template.projects;
    const { masterCards } = template.asSuperadmin.rpc;
    await sync(template);
    const [copy] = await liveWith(first, `${template.tool}-one`);
    await query(await testDb(), sql`delete from project_tools where project_id = ${second.id}`);

    await masterCards.update.mutate({ id: one, unique_identifier: `${template.tool}-new` });

    expect(await stored('cards', copy.id)).toMatchObject({ unique_identifier: `${template.tool}-new`, title: 'One' });
    expect(await liveWith(second, `${template.tool}-new`)).toHaveLength(1);
    expect(await push(template, one)).toEqual({ projects_updated: 0 });

    // Another card may have the old one now, with copies in the same projects.
    await masterCards.update.mutate({ id: two, unique_identifier: `${template.tool}-one` });
    expect(await liveWith(first, `${template.tool}-one`)).toMatchObject([{ master_card_id: two }]);
  });

  it('is taken from copies of a deleted card in projects with both', async () => {
    const { template, copy, replacement, identifier } = await givenReplacedCard();
    const [first] = template.projects;
    const { masterCards } = template.asSuperadmin.rpc;
    await masterCards.update.mutate({ id: replacement, unique_identifier: `${identifier}-other` });
    await sync(template);

    await masterCards.update.mutate({ id: replacement, unique_identifier: identifier });

    expect(await liveWith(first, identifier)).toMatchObject([{ master_card_id: replacement }]);
    expect(await stored('cards', copy.id)).toMatchObject({
      unique_identifier: GENERATED,
      title: 'One',
      deleted_at: null,
    });
    expect(await push(template, replacement)).toEqual({ projects_updated: 0 });
  });

  it('and syncs at the same time: no errors, and all copies have it', async () => {
    const template = await givenTemplate();
    const { asSuperadmin, board, cards, projects, tool } = template;
    await sync(template);
    projects.push(await givenProject({ tools: [tool] }));

    await Promise.all([
      ...Array.from({ length: 4 }, () => asSuperadmin.alone().rpc.masterBoards.sync.mutate({ board_id: board })),
      ...cards.map((id, at) =>
        asSuperadmin.alone().rpc.masterCards.update.mutate({ id, unique_identifier: `${tool}-new-${at}` }),
      ),
    ]);

    for (const project of projects)
      expect((await copiesIn(project, template)).map(({ unique_identifier }) => unique_identifier)).toEqual(
        cards.map((_, at) => `${tool}-new-${at}`),
      );
  });
});

describe('a card of the project itself', () => {
  it('with the identifier of a template is no copy: it stays as it is, and the copy is added', async () => {
    const template = await givenTemplate();
    const [first] = template.projects;
    const unique_identifier = `${template.tool}-one`;
    const own = await givenCard(first, { title: 'Ours', unique_identifier });

    await sync(template);
    await push(template, template.cards[0]);

    expect(await stored('cards', own)).toMatchObject({ title: 'Ours', master_card_id: null, unique_identifier });
    expect(await liveWith(first, unique_identifier)).toHaveLength(2);
  });
});
