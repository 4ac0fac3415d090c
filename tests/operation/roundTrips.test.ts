import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { makeCaller } from '../harness/caller.ts';
import { countStatements, testService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  type TestProject,
} from '../harness/world.ts';

/** How many statements the calls send that users make most: each is a round trip to the database. */

const OPERATIONS = '/services/operations/v1/operations';

type Rows = { board: number; group: number; card: number; comment: number; user: number };

/**
 * The path, the input, and the statements: of the first call, of a second one, and of a call on a row of another project than the
 * default one, where the role is too low.
 */
const CALLS: [string, (rows: Rows) => object, { first: number; again: number; elsewhere: number }][] = [
  ['boards/list', () => ({}), { first: 2, again: 1, elsewhere: 2 }],
  ['boards/get', ({ board }) => ({ id: board }), { first: 2, again: 1, elsewhere: 2 }],
  [
    'cards/create',
    ({ group, user }) => ({ title: 'x', group_id: group, owner_id: user }),
    { first: 2, again: 1, elsewhere: 2 },
  ],
  ['comments/create', ({ card }) => ({ card_id: card, comment: 'x' }), { first: 2, again: 1, elsewhere: 2 }],
  [
    'comments/create',
    ({ card, comment }) => ({ card_id: card, comment: 'x', parent_comment_id: comment }),
    { first: 2, again: 1, elsewhere: 2 },
  ],
  ['groups/update', ({ group }) => ({ id: group, title: randomUUID() }), { first: 2, again: 2, elsewhere: 2 }],
  ['cards/list', ({ group }) => ({ group_id: group }), { first: 2, again: 2, elsewhere: 2 }],
  ['cards/get', ({ card }) => ({ id: card }), { first: 2, again: 2, elsewhere: 2 }],
];

// Opens the connections, which begin with statements of their own.
beforeAll(async () => {
  await (await givenWorld()).asViewer.post(`${OPERATIONS}/boards/list`);
});

it.each(CALLS)(
  '%s of a new caller, again, and in another project',
  async (path, inputOf, { first, again, elsewhere }) => {
    const [low, high] = [await givenProject(), await givenProject()];
    const user = await givenUser({ project: low, role: 'viewer', default_project_id: low.id });
    await givenMember(user, high, 'member');
    const member = await givenUser({ project: high, default_project_id: high.id });
    const input = inputOf(await givenRows(high, member.id, member));
    const counted = async ({ id, email }: typeof user, times: number) => {
      const caller = makeCaller((await testService()).url, await givenToken({ id, email }));
      const counts: number[] = [];
      for (let call = 0; call < times; call++)
        counts.push(
          await countStatements(async () => {
            const { status } = await caller.post(`${OPERATIONS}/${path}`, input);
            expect([200, 201]).toContain(status);
          }),
        );
      return counts;
    };

    expect(await counted(member, 2)).toEqual([first, again]);
    expect(await counted(user, 1)).toEqual([elsewhere]);
  },
);

async function givenRows(project: TestProject, user: number, author: { id: number; email: string }): Promise<Rows> {
  const board = await givenBoard(project);
  const group = await givenGroup(project, board);
  const card = await givenCard(project, { group_id: group });
  return { board, group, card, comment: await givenComment(project, card, author), user };
}
