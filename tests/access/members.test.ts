import { describe, expect, it } from 'vitest';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { testService } from '../harness/service.ts';
import { givenCard, givenMember, givenProject, givenToken, givenUser, givenWorld, stored } from '../harness/world.ts';

const LAST_OWNER = {
  status: 400,
  message: 'This is the last owner of the project. Make somebody else an owner first.',
};

describe('members', () => {
  it('are listed for every member, of the default project if none is named', async () => {
    const { asViewer, users, project } = await givenWorld();

    const { members } = await asViewer.rpc.members.list.query({});

    expect(members.map(({ user_id, role }) => ({ user_id, role }))).toEqual([
      { user_id: users.viewer.id, role: 'viewer' },
      { user_id: users.member.id, role: 'member' },
      { user_id: users.owner.id, role: 'owner' },
    ]);
    expect(await asViewer.rpc.members.list.query({ project_id: project.id })).toEqual({ members, next_cursor: null });
  });

  it('are found by a part of name or e-mail address, in pages, with percent signs and underscores as they are', async () => {
    const { asViewer, asOutsider, users, project } = await givenWorld();
    for (const name of ['Ann 100%_a', 'ANN 100%_b', 'Ann 100xya']) await givenUser({ name, project });
    await givenUser({ name: 'Ann 100%_c' });
    const { list } = asViewer.rpc.members;
    const found = async (search: string) => (await list.query({ search })).members.map(({ name }) => name);

    const first = await list.query({ search: 'ann', limit: 2 });
    const second = await list.query({ search: 'ann', limit: 2, cursor: first.next_cursor });

    expect([...first.members, ...second.members].map(({ name }) => name.slice(-1))).toEqual(['a', 'b', 'a']);
    expect(await found('0%_')).toEqual(['Ann 100%_a', 'ANN 100%_b']);
    for (const none of ['%%', '_a_', '\\']) expect(await found(none)).toEqual([]);
    expect((await list.query({ search: users.owner.email.toUpperCase() })).members).toMatchObject([
      { user_id: users.owner.id },
    ]);
    const foreign = asOutsider.rpc.members.list.query({ project_id: project.id, search: 'ann' });
    expect((await refusalOf(foreign)).status).toBe(403);
  });

  it('403 for the members of another project, 404 for those of an unknown one', async () => {
    const { asOwner, otherProject } = await givenWorld();
    const list = (project_id: number) => refusalOf(asOwner.rpc.members.list.query({ project_id }));

    expect((await list(otherProject.id)).status).toBe(403);
    expect((await list(2_147_483_647)).status).toBe(404);
  });

  it('add takes the e-mail address of a registered user, in any case', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const user = await givenUser();
    const email = user.email.toUpperCase();

    const { member } = await asSuperadmin.rpc.members.add.mutate({ email, role: 'member' });

    expect(member).toEqual({
      project_id: project.id,
      user_id: user.id,
      name: 'A user',
      email: user.email,
      role: 'member',
    });
  });

  it('422 when adding an unknown or deactivated user, or one who is a member', async () => {
    const { asOwner, asSuperadmin, users } = await givenWorld();
    const inactive = await givenUser({ is_active: false });
    const add = (email: string) => refusalOf(asSuperadmin.rpc.members.add.mutate({ email, role: 'owner' }));

    for (const email of ['nobody@example.test', inactive.email])
      expect((await add(email)).errors).toEqual({ email: ['email does not belong to a registered user.'] });
    expect((await add(users.viewer.email)).errors).toEqual({
      email: ['email belongs to a member already: set their role.'],
    });
    expect((await asOwner.rpc.members.list.query({})).members).toHaveLength(3);
  });

  it('404 when an owner sets the role of a user who is not a member: ids of strangers reveal nothing', async () => {
    const { asOwner, users } = await givenWorld();
    const set = (user_id: number) => refusalOf(asOwner.rpc.members.set.mutate({ user_id, role: 'viewer' }));

    expect(await set(users.outsider.id)).toEqual(await set(2_147_483_647));
    expect((await set(users.outsider.id)).status).toBe(404);
  });

  it('remove takes away the access at once, and the cards lose their owner', async () => {
    const { asOwner, asMember, users, project } = await givenWorld();
    const card = await givenCard(project, { owner_id: users.member.id });

    await asOwner.rpc.members.remove.mutate({ user_id: users.member.id });

    expect((await refusalOf(asMember.rpc.cards.get.query({ id: card }))).status).toBe(403);
    expect(await stored('cards', card)).toMatchObject({ owner_id: null });
  });

  it('400 for removing or demoting the last active owner, by anybody', async () => {
    const { asOwner, asSuperadmin, users, project } = await givenWorld();
    await givenUser({ project, role: 'owner', is_active: false });
    const choice = { project_id: project.id, user_id: users.owner.id };

    for (const { rpc } of [asOwner, asSuperadmin]) {
      expect(await refusalOf(rpc.members.remove.mutate(choice))).toMatchObject(LAST_OWNER);
      expect(await refusalOf(rpc.members.set.mutate({ ...choice, role: 'member' }))).toMatchObject(LAST_OWNER);
    }
    await asOwner.rpc.members.set.mutate({ ...choice, role: 'owner' });
  });

  it('keeps an owner if two owners leave at the same moment', async () => {
    const { url } = await testService();
    const project = await givenProject();
    const owners = [await givenUser({ project, role: 'owner' }), await givenUser({ project, role: 'owner' })];
    const leave = owners.map(async (user) =>
      makeCaller(url, await givenToken(user)).rpc.members.remove.mutate({ project_id: project.id, user_id: user.id }),
    );

    const outcomes = await Promise.allSettled(leave);

    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('403 for a superadmin who selects another project with X-Project-Id', async () => {
    const { asSuperadmin, project, otherProject, users } = await givenWorld();
    const { rpc } = asSuperadmin.in(project.id);
    const choice = { project_id: otherProject.id, user_id: users.outsider.id };

    for (const call of [
      rpc.members.list.query({ project_id: otherProject.id }),
      rpc.members.set.mutate({ ...choice, role: 'owner' }),
      rpc.members.remove.mutate(choice),
      rpc.members.add.mutate({ project_id: otherProject.id, email: users.viewer.email, role: 'viewer' }),
    ])
      expect((await refusalOf(call)).status).toBe(403);
    expect((await rpc.members.list.query({ project_id: project.id })).members).toHaveLength(3);
  });

  it('403 in a project where the caller is only a member, although they own another one', async () => {
    const { asOwner, users } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.owner, second, 'member');
    const user = await givenUser();

    const invited = asOwner.rpc.members.invite.mutate({ project_id: second.id, email: user.email, role: 'viewer' });

    expect(await refusalOf(invited)).toMatchObject({
      status: 403,
      message: 'This requires the role owner; yours in this project is member.',
    });
  });
});
