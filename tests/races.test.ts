import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { waitingFor } from './harness/lock.ts';
import { databaseUrl } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenTag,
  givenUser,
  givenWorld,
  testDb,
} from './harness/world.ts';

const OPERATIONS = '/services/operations/v1/operations';

const deleted = (table: string, id: number) =>
  sql`update ${sql.table(table)} set deleted_at = now() where id = ${id} and deleted_at is null`;

/** The embedded database runs one transaction at a time. */
describe.skipIf(!databaseUrl)('a call that waits for the change of another', () => {
  it('deletes a board with a card that was created at the same moment', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const group = await givenGroup(project, board);
    const creation = [
      sql`select from groups where id = ${group} for share`,
      sql`insert into cards (project_id, platform_id, group_id, title) values (${project.id}, ${project.platform_id}, ${group}, 'x')`,
    ];

    const answer = await waitingFor(creation, () => asMember.post(`${OPERATIONS}/boards/delete`, { id: board }));

    expect(answer.status).toBe(200);
    const left = sql`select from cards where group_id = ${group} and deleted_at is null`;
    expect(await query(await testDb(), left)).toEqual([]);
  });

  it('deletes a comment with a reply that was created at the same moment', async () => {
    const { asMember, project, users } = await givenWorld();
    const card = await givenCard(project);
    const parent = await givenComment(project, card, users.member);
    const creation = [
      sql`select from comments where id = ${parent} for share`,
      sql`
        insert into comments (project_id, card_id, user_id, parent_comment_id, comment)
        values (${project.id}, ${card}, ${users.viewer.id}, ${parent}, 'x')`,
    ];

    const answer = await waitingFor(creation, () => asMember.post(`${OPERATIONS}/comments/delete`, { id: parent }));

    expect(answer.status).toBe(200);
    const left = sql`select from comments where card_id = ${card} and deleted_at is null`;
    expect(await query(await testDb(), left)).toEqual([]);
  });

  it.each(['create', 'update'])(
    '422 for the owner of cards/%s who is just removed from the project',
    async (action) => {
      const { asMember, project } = await givenWorld();
      const { id: owner_id } = await givenUser({ project });
      const input = { id: await givenCard(project), title: 'x', owner_id };
      const removal = sql`delete from members where project_id = ${project.id} and user_id = ${owner_id}`;

      const answer = await waitingFor([removal], () => asMember.post(`${OPERATIONS}/cards/${action}`, input));

      expect(answer).toMatchObject({ status: 422, body: { message: 'owner_id is not a member of this project.' } });
    },
  );

  it('422 for a group or tag that is just deleted', async () => {
    const { asMember, project } = await givenWorld();
    const [group_id, tag_id] = [await givenGroup(project, await givenBoard(project)), await givenTag(project)];
    const id = await givenCard(project);

    const outcomes = [
      await waitingFor([deleted('groups', group_id)], () =>
        asMember.post(`${OPERATIONS}/cards/move`, { id, group_id }),
      ),
      await waitingFor([deleted('tags', tag_id)], () => asMember.post(`${OPERATIONS}/cards/update`, { id, tag_id })),
    ];

    expect(outcomes).toMatchObject([{ status: 422 }, { status: 422 }]);
  });

  it('404 for a row that is just deleted', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const group = await givenGroup(project, board);
    const card = await givenCard(project);

    const outcomes = [
      await waitingFor([deleted('cards', card)], () =>
        asMember.post(`${OPERATIONS}/comments/create`, { card_id: card, comment: 'x' }),
      ),
      await waitingFor([sql`select from projects where id = ${project.id} for update`, deleted('groups', group)], () =>
        asMember.post(`${OPERATIONS}/groups/reorder`, { groups: [{ id: group, position: 2 }] }),
      ),
      await waitingFor([deleted('boards', board)], () =>
        asMember.post(`${OPERATIONS}/groups/create`, { board_id: board, title: 'x' }),
      ),
    ];

    expect(outcomes).toMatchObject([{ status: 404 }, { status: 404 }, { status: 404 }]);
  });
});
