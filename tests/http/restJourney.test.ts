import { describe, expect, it } from 'vitest';
import { testService } from '../harness/service.ts';
import { givenMember, givenProject, givenUser, insert, PASSWORD } from '../harness/world.ts';

/** What a newcomer does who has REST alone: every id comes from an answer, never from the database. */

type Post = (path: string, body?: object) => Promise<any>;

/** Signs in, and returns a function that calls with the token and expects success. */
async function signIn(email: string): Promise<Post> {
  const { url } = await testService();
  const send = async (path: string, body: object, token?: string) => {
    const response = await fetch(`${url}/api${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    });
    const answer: any = await response.json();
    expect([200, 201], `${path} ${JSON.stringify(answer)}`).toContain(response.status);
    return answer.data;
  };
  const { token } = await send('/v1/authenticate', { email, password: PASSWORD });
  return (path, body = {}) => send(path, body, token);
}

const OPERATIONS = '/services/operations/v1/operations';
const ADMIN = '/services/operations/v1/admin';
const PLATFORMS = '/services/platforms/v1';

describe('with REST alone', () => {
  it('a member finds their project, makes a board, group and card, assigns, comments, moves and closes it', async () => {
    const project = await givenProject();
    const colleague = await givenUser({ project, role: 'viewer', name: 'A colleague' });
    const { email } = await givenUser({ project });
    const post = await signIn(email);

    const [own] = (await post(`${PLATFORMS}/projects/list-own`)).projects;
    expect(own).toMatchObject({ id: project.id, role: 'member', is_default: true });

    const { board } = await post(`${OPERATIONS}/boards/create`, { title: 'A launch' });
    const { group } = await post(`${OPERATIONS}/groups/create`, { board_id: board.id, title: 'To do' });
    const { group: done } = await post(`${OPERATIONS}/groups/create`, { board_id: board.id, title: 'Done' });
    const { card } = await post(`${OPERATIONS}/cards/create`, { title: 'Write the post', group_id: group.id });

    const { members } = await post(`${PLATFORMS}/members/list`);
    const { user_id } = members.find(({ name }: { name: string }) => name === 'A colleague');
    expect(user_id).toBe(colleague.id);
    const { tag } = await post(`${OPERATIONS}/tags/create`, { name: 'Press' });
    expect((await post(`${OPERATIONS}/tags/list`)).tags).toEqual([tag]);
    await post(`${OPERATIONS}/cards/update`, { id: card.id, owner_id: user_id, tag_id: tag.id });

    const { comment } = await post(`${OPERATIONS}/comments/create`, { card_id: card.id, comment: 'Who starts?' });
    expect((await post(`${OPERATIONS}/comments/list`, { card_id: card.id })).threads).toMatchObject([
      { id: comment.id },
    ]);
    await post(`${OPERATIONS}/comments/mark-read`, { id: comment.id });

    await post(`${OPERATIONS}/cards/move`, { id: card.id, group_id: done.id });
    await post(`${OPERATIONS}/cards/update`, { id: card.id, status: 'closed' });

    const shown = JSON.parse((await post(`${OPERATIONS}/boards/get`, { id: board.id })).board);
    expect(shown.groups).toMatchObject([
      { title: 'To do', cards: [] },
      { title: 'Done', cards: [{ title: 'Write the post', status: 'closed', owner_id: user_id, tag_id: tag.id }] },
    ]);
    const { boards } = await post(`${OPERATIONS}/boards/list`);
    expect(boards).toMatchObject([{ id: board.id, groups_count: 2, cards_count: 1 }]);
  });

  it('an owner invites a member to a second project, who accepts, and pays for a trial that they found by listing', async () => {
    const project = await givenProject();
    const { email, id } = await givenUser({ project, role: 'owner' });
    const second = await givenProject();
    await givenMember({ id, email }, second, 'owner');
    const colleague = await givenUser();
    const product = `shop-${second.id}`;
    await insert('plans', { product, plan: 'pro', period: 'month', price_cents: 900 });
    await insert('subscriptions', {
      platform_id: project.platform_id,
      product,
      status: 'trial',
      trial_ends_at: new Date(),
    });
    const post = await signIn(email);

    const invitation = { project_id: second.id, email: colleague.email, role: 'viewer' };
    await post(`${PLATFORMS}/members/invite`, invitation);
    const postAsColleague = await signIn(colleague.email);
    const [invited] = (await postAsColleague('/v1/account/list-invitations')).invitations;
    const { member } = await postAsColleague('/v1/account/accept-invitation', { id: invited.id });
    await post(`${PLATFORMS}/members/set`, { project_id: second.id, user_id: member.user_id, role: 'member' });
    expect((await post(`${PLATFORMS}/members/list`, { project_id: second.id })).members).toMatchObject([
      { user_id: id, role: 'owner' },
      { user_id: colleague.id, role: 'member' },
    ]);
    await post(`${PLATFORMS}/members/remove`, { project_id: second.id, user_id: member.user_id });

    const [subscription] = (await post(`${PLATFORMS}/subscriptions/list`)).subscriptions;
    const [plan] = (await post(`${PLATFORMS}/plans/list`, { product: subscription.product })).plans;
    const checkout = await post(`${PLATFORMS}/subscriptions/upgrade-trial`, {
      product: plan.product,
      plan: plan.plan,
      period: plan.period,
    });
    expect(checkout).toMatchObject({ subscription_id: subscription.id, checkout_url: expect.any(String) });
  });

  it('a superadmin makes a template, previews, syncs, changes and pushes it, and reads the report', async () => {
    const { email } = await givenUser({ superadmin: true });
    const post = await signIn(email);
    const { platform } = await post(`${PLATFORMS}/platforms/create`, { name: 'A customer' });
    const tool = `tool-${platform.id}`;
    const { project } = await post(`${PLATFORMS}/projects/create`, {
      platform_id: platform.id,
      name: 'Their site',
      tools: [tool],
    });

    const { board } = await post(`${ADMIN}/master-boards/create`, { title: 'Welcome', tool_key: tool });
    const { group } = await post(`${ADMIN}/master-groups/create`, { board_id: board.id, title: 'Start' });
    const { card } = await post(`${ADMIN}/master-cards/create`, { group_id: group.id, title: 'Look around' });
    const full = (await post(`${ADMIN}/master-boards/get`, { id: board.id })).board;
    expect(full.groups).toMatchObject([{ id: group.id, cards: [{ id: card.id }] }]);
    expect((await post(`${ADMIN}/master-groups/list`, { board_id: board.id })).groups).toMatchObject([
      { id: group.id },
    ]);

    expect(await outcomeIn(`${ADMIN}/master-boards/preview-sync`, { board_id: board.id })).toMatchObject({
      outcome: 'added',
      cards_added: 1,
    });
    expect(await post(`${ADMIN}/master-boards/sync`, { board_id: board.id })).toMatchObject({ synced_count: 1 });

    await post(`${ADMIN}/master-boards/update`, { id: board.id, title: 'Welcome aboard' });
    await post(`${ADMIN}/master-groups/configure`, { id: group.id, color: '#0b6e99' });
    await post(`${ADMIN}/master-cards/update`, { id: card.id, title: 'Look around first' });
    expect(await outcomeIn(`${ADMIN}/master-boards/preview-push`, { board_id: board.id })).toMatchObject({
      outcome: 'updated',
      boards_updated: 1,
      groups_updated: 1,
    });
    expect(await post(`${ADMIN}/master-boards/push`, { board_id: board.id })).toEqual({ projects_updated: 1 });
    expect(await post(`${ADMIN}/master-cards/push`, { card_id: card.id })).toEqual({ projects_updated: '1' });

    const { runs } = await post(`${ADMIN}/template-runs/list`, { board_id: board.id });
    expect(runs.map(({ kind }: { kind: string }) => kind)).toEqual(['push', 'push_board', 'sync']);
    expect(await outcomeIn(`${ADMIN}/template-runs/report`, { id: runs[0].id })).toMatchObject({
      outcome: 'updated',
      cards_updated: 1,
    });

    const account = { name: 'A customer', email: `customer-${project.id}@example.test`, password: PASSWORD };
    const { user } = await post(`${PLATFORMS}/users/create`, account);
    await post(`${PLATFORMS}/members/set`, { project_id: project.id, user_id: user.id, role: 'viewer' });
    const asCustomer = await signIn(account.email);
    // The new project also has the other templates without a tool.
    const { boards } = await asCustomer(`${OPERATIONS}/boards/list`);
    const copy = boards.find((each: { master_board_id: number }) => each.master_board_id === board.id);
    const copied = JSON.parse((await asCustomer(`${OPERATIONS}/boards/get`, { id: copy.id })).board);
    expect(copied).toMatchObject({
      title: 'Welcome aboard',
      groups: [{ title: 'Start', color: '#0b6e99', cards: [{ title: 'Look around first' }] }],
    });

    /** What a preview or report says about the project, on whichever page. */
    async function outcomeIn(path: string, input: object): Promise<any> {
      for (let cursor = null; ; ) {
        const page = await post(path, { ...input, limit: 200, cursor });
        const found = page.projects.find(({ project_id }: { project_id: number }) => project_id === project.id);
        if (found || !page.next_cursor) return found;
        cursor = page.next_cursor;
      }
    }
  });
});
