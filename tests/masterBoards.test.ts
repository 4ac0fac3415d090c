import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { refusalOf } from './harness/caller.ts';
import { givenTemplate } from './harness/template.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, NOWHERE, stored, testDb } from './harness/world.ts';

describe('master boards and groups', () => {
  it('are read with everything on them, in order, tour cards included', async () => {
    const template = await givenTemplate();
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;
    await givenGroup(NOWHERE, template.board, { is_master: true, deleted_at: new Date() });
    await givenCard(NOWHERE, { is_master: true, group_id: template.groups[1], title: 'Zero', position: 0 });

    const { board } = await masterBoards.get.query({ id: template.board });

    expect(board).toMatchObject({
      id: template.board,
      is_master: true,
      project_id: null,
      groups: [
        { id: template.groups[0], cards: [{ id: template.cards[0] }, { id: template.cards[1], tour_key: 'tour' }] },
        { id: template.groups[1], cards: [{ title: 'Zero' }, { id: template.cards[2] }] },
      ],
    });
    expect(board.groups[0]!.cards[0]!.created_at).toBeInstanceOf(Date);
    expect((await masterGroups.list.query({ board_id: template.board })).groups).toMatchObject([
      { id: template.groups[0], title: 'First', color: 'blue', cards_count: 2 },
      { id: template.groups[1], title: 'Second', cards_count: 2 },
    ]);
  });

  it('400 if they are too large for one answer', async () => {
    const template = await givenTemplate();
    await query(
      await testDb(),
      sql`
        insert into groups (is_master, board_id, title, description)
        select true, ${template.board}, 'Large', repeat('x', 65000) from generate_series(1, 140)`,
    );
    const { masterBoards, masterGroups } = template.asSuperadmin.rpc;

    expect(await refusalOf(masterBoards.get.query({ id: template.board }))).toMatchObject({
      status: 400,
      message: 'The master board is too large for one answer. Shorten the descriptions on it.',
    });
    expect(await refusalOf(masterGroups.list.query({ board_id: template.board }))).toMatchObject({
      status: 400,
      message: 'The master groups are too large for one answer. Shorten their descriptions.',
    });
  });

  it('404 for those of a project', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const id = await givenBoard(project);

    expect(await refusalOf(asSuperadmin.rpc.masterBoards.get.query({ id }))).toMatchObject({ status: 404 });
    expect(await refusalOf(asSuperadmin.rpc.masterGroups.list.query({ board_id: id }))).toMatchObject({ status: 404 });
  });

  it('are configured: null clears type, color and icon, and does not change the flags', async () => {
    const { asSuperadmin, groups } = await givenTemplate();
    const { masterBoards, masterGroups } = asSuperadmin.rpc;
    const id = groups[0]!;

    const look = { type: 't', color: 'red', icon: 'i', is_collapsed: true, is_active: false };
    expect((await masterGroups.configure.mutate({ id, ...look })).group).toMatchObject({ id, title: 'First', ...look });
    const cleared = { type: null, color: null, icon: null, is_collapsed: null, is_active: null };
    expect((await masterGroups.configure.mutate({ id, ...cleared })).group).toMatchObject({
      type: null,
      color: null,
      icon: null,
      is_collapsed: true,
      is_active: false,
    });
    expect((await masterGroups.configure.mutate({ id, color: 'red' })).group).toMatchObject({ color: 'red' });
    const { board } = await masterBoards.update.mutate({ id: (await stored('groups', id)).board_id, is_active: false });
    expect(board).toMatchObject({ is_active: false, title: 'Template' });
  });
});
