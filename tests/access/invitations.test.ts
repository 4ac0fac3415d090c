import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { testService } from '../harness/service.ts';
import {
  givenInvitation,
  givenMember,
  givenProject,
  givenServiceAccount,
  givenToken,
  givenUser,
  givenWorld,
  stored,
  type TestProject,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const MEMBERS = '/services/platforms/v1/members';

const callerOf = async (user: TestUser) => makeCaller((await testService()).url, await givenToken(user));
const accept = (caller: TestCaller, id: number) => caller.rpc.account.acceptInvitation.mutate({ id });
const ownInvitations = async (caller: TestCaller) => (await caller.rpc.account.listInvitations.query({})).invitations;

/** Where a call that names no project goes. */
const projectOfCall = async (caller: TestCaller) =>
  (await caller.rpc.boards.create.mutate({ title: 'x' })).board.project_id;

describe('POST …/members/invite', () => {
  it('201 with the same answer for a registered address and for any other, and nobody becomes a member', async () => {
    const { asOwner, project, users } = await givenWorld();
    const invite = (email: string) => asOwner.post(`${MEMBERS}/invite`, { email, role: 'viewer' });
    const unknown = 'nobody-has-this@example.test';

    const answers = [await invite(users.outsider.email), await invite(unknown)];

    const shapeOf = ({ status, body }: (typeof answers)[number]) => {
      const { id, email, created_at, updated_at, ...same } = body.data.invitation;
      return { status, message: body.message, ...same };
    };
    expect(answers.map(shapeOf)).toEqual([shapeOf(answers[0]!), shapeOf(answers[0]!)]);
    expect(shapeOf(answers[0]!)).toEqual({
      status: 201,
      message: 'Invitation created.',
      project_id: project.id,
      role: 'viewer',
      invited_by: users.owner.id,
    });
    const { members } = await asOwner.rpc.members.list.query({});
    expect(members.map(({ user_id }) => user_id)).not.toContain(users.outsider.id);
    const { invitations } = await asOwner.rpc.members.listInvitations.query({});
    expect(invitations.map(({ email }) => email)).toEqual([users.outsider.email, unknown]);
  });

  it('changes the role of an invitation that is open already, in any case of the address', async () => {
    const { asOwner, users } = await givenWorld();
    const invite = (email: string, role: 'viewer' | 'member') => asOwner.rpc.members.invite.mutate({ email, role });
    const first = await invite(users.outsider.email, 'viewer');

    const second = await invite(users.outsider.email.toUpperCase(), 'member');

    expect(second.invitation).toMatchObject({ id: first.invitation.id, role: 'member' });
    expect((await asOwner.rpc.members.listInvitations.query({})).invitations).toHaveLength(1);
  });

  it('422 for a member, and for a service, registered or not', async () => {
    const { asOwner, users } = await givenWorld();
    const { email } = await givenServiceAccount({ email: 'service-of-a-test@service.invalid' });
    const invite = (email: string) => refusalOf(asOwner.rpc.members.invite.mutate({ email, role: 'viewer' }));

    expect((await invite(users.viewer.email)).errors).toEqual({
      email: ['email belongs to a member already: set their role.'],
    });
    expect(await invite(email)).toEqual(await invite('service-unknown@service.invalid'));
    expect(await invite(email)).toMatchObject({
      status: 422,
      errors: { email: ['email is that of a service: a superadmin adds services.'] },
    });
  });

  it('400 beyond 1,000 open invitations; an open one can still be changed', async () => {
    const { asOwner, project } = await givenWorld();
    await query(
      await testDb(),
      sql`insert into invitations (project_id, email, role)
        select ${project.id}, n || '@example.test', 'viewer' from generate_series(1, 1000) n`,
    );
    const invite = (email: string) => asOwner.rpc.members.invite.mutate({ email, role: 'member' });

    expect(await reasonOf(invite('one-more@example.test'))).toBe('400 place_full');
    expect((await invite('7@example.test')).invitation.role).toBe('member');
  });
});

describe('POST …/members/add', () => {
  it('403 for an owner, whether or not the address is registered', async () => {
    const { asOwner, users } = await givenWorld();
    const add = (email: string) => refusalOf(asOwner.rpc.members.add.mutate({ email, role: 'viewer' }));

    expect(await add(users.outsider.email)).toEqual(await add('nobody@example.test'));
    expect(await add(users.outsider.email)).toMatchObject({ status: 403, message: 'Only a superadmin may do this.' });
  });
});

describe('account.listInvitations', () => {
  it('returns what the caller can accept, also what was sent before the account existed', async () => {
    const { asOwner, project, users } = await givenWorld();
    const email = 'Later-User@example.test';
    const { invitation } = await asOwner.rpc.members.invite.mutate({ email, role: 'member' });
    await givenInvitation(project, users.outsider);
    await givenInvitation(await givenProject({ is_active: false }), { email });

    const caller = await callerOf(await givenUser({ email: email.toLowerCase() }));

    expect(await ownInvitations(caller)).toEqual([
      {
        id: invitation.id,
        project_id: project.id,
        role: 'member',
        created_at: invitation.created_at,
        project_name: 'A project',
        platform_name: 'A platform',
        invited_by_name: 'A user',
      },
    ]);
  });
});

describe('account.acceptInvitation', () => {
  it('makes the caller a member once, with the role of the invitation', async () => {
    const { asOwner, asOutsider, project, users } = await givenWorld();
    const { email } = users.outsider;
    const { invitation } = await asOwner.rpc.members.invite.mutate({ email, role: 'viewer' });

    const { member } = await accept(asOutsider, invitation.id);

    expect(member).toEqual({
      project_id: project.id,
      user_id: users.outsider.id,
      name: 'A user',
      email,
      role: 'viewer',
    });
    expect(await ownInvitations(asOutsider)).toEqual([]);
    expect(await reasonOf(accept(asOutsider, invitation.id))).toBe('404 not_found');
  });

  it('404 once its sender may no longer invite, or the project is inactive', async () => {
    const { asOutsider, project, users } = await givenWorld();
    const ends: [string, (sender: TestUser, host: TestProject) => ReturnType<typeof sql>][] = [
      ['demoted', ({ id }) => sql`update members set role = 'member' where user_id = ${id}`],
      ['removed', ({ id }) => sql`delete from members where user_id = ${id}`],
      ['deactivated', ({ id }) => sql`update users set is_active = false where id = ${id}`],
      ['inactive project', (_, host) => sql`update projects set is_active = false where id = ${host.id}`],
    ];

    for (const [name, end] of ends) {
      const host = name === 'inactive project' ? await givenProject() : project;
      const sender = await givenUser({ project: host, role: 'owner' });
      const id = await givenInvitation(host, users.outsider, { invited_by: sender.id });
      await query(await testDb(), end(sender, host));

      expect(await ownInvitations(asOutsider), name).toEqual([]);
      expect(await reasonOf(accept(asOutsider, id)), name).toBe('404 not_found');
      await asOutsider.rpc.account.declineInvitation.mutate({ id });
    }
  });

  it('happens or not, if the invitation is withdrawn at the same moment', async () => {
    const { asOwner, asOutsider, project, users } = await givenWorld();
    const id = await givenInvitation(project, users.outsider);

    const [accepted] = await Promise.allSettled([
      accept(asOutsider, id),
      asOwner.rpc.members.withdrawInvitation.mutate({ id }),
    ]);

    const { members } = await asOwner.rpc.members.list.query({});
    const isMember = members.some(({ user_id }) => user_id === users.outsider.id);
    expect(isMember).toBe(accepted.status === 'fulfilled');
    expect(await ownInvitations(asOutsider)).toEqual([]);
  });

  it('is not needed after a superadmin added the user: the invitation is gone', async () => {
    const { asSuperadmin, asOutsider, project, users } = await givenWorld();
    await givenInvitation(project, { email: users.outsider.email.toUpperCase() });
    const choice = { project_id: project.id, role: 'member' } as const;

    await asSuperadmin.rpc.members.set.mutate({ ...choice, user_id: users.outsider.id });

    expect(await ownInvitations(asOutsider)).toEqual([]);
  });
});

describe('a declined or withdrawn invitation', () => {
  it('404 when it is accepted, and the address can be invited again', async () => {
    const { asOwner, asOutsider, users } = await givenWorld();
    const invite = async () =>
      (await asOwner.rpc.members.invite.mutate({ email: users.outsider.email, role: 'viewer' })).invitation.id;
    const declined = await invite();
    await asOutsider.rpc.account.declineInvitation.mutate({ id: declined });
    const withdrawn = await invite();
    await asOwner.rpc.members.withdrawInvitation.mutate({ id: withdrawn });

    for (const id of [declined, withdrawn]) expect(await reasonOf(accept(asOutsider, id))).toBe('404 not_found');
    await accept(asOutsider, await invite());
  });
});

describe('a new membership', () => {
  it('does not change where calls without a project go, by invitation or by a superadmin', async () => {
    const { asSuperadmin } = await givenWorld();
    const [lower, attacked] = [await givenProject(), await givenProject()];
    const people = { invited: await givenUser({ project: attacked }), added: await givenUser({ project: attacked }) };
    const invited = await callerOf(people.invited);
    const added = await callerOf(people.added);

    await accept(invited, await givenInvitation(lower, people.invited));
    await asSuperadmin.rpc.members.set.mutate({ project_id: lower.id, user_id: people.added.id, role: 'member' });

    for (const caller of [invited, added]) expect(await projectOfCall(caller)).toBe(attacked.id);
    for (const { id } of Object.values(people))
      expect(await stored('users', id)).toMatchObject({ default_project_id: attacked.id });
  });

  it('becomes the default project of a user without any', async () => {
    const [first, second] = [await givenProject(), await givenProject()];
    const user = await givenUser();
    const caller = await callerOf(user);

    for (const project of [second, first]) await accept(caller, await givenInvitation(project, user));

    expect(await projectOfCall(caller)).toBe(second.id);
  });

  it('does not replace the first project while the default one is inactive', async () => {
    const [lower, own] = [await givenProject(), await givenProject()];
    const inactive = await givenProject({ is_active: false });
    const user = await givenUser({ project: own, default_project_id: inactive.id });
    await givenMember(user, inactive, 'member');
    const caller = await callerOf(user);

    await accept(caller, await givenInvitation(lower, user));

    expect(await projectOfCall(caller)).toBe(own.id);
  });

  it('leaves a superadmin without any in the project that their calls went to', async () => {
    const superadmin = await givenUser({ superadmin: true });
    const caller = await callerOf(superadmin);
    const before = await projectOfCall(caller);

    await accept(caller, await givenInvitation(await givenProject(), superadmin));

    expect(await projectOfCall(caller)).toBe(before);
  });
});

describe('account.setDefaultProject', () => {
  it('changes where calls without a project go', async () => {
    const { asOwner, users } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.owner, second, 'owner');

    await asOwner.rpc.account.setDefaultProject.mutate({ project_id: second.id });

    expect(await projectOfCall(asOwner)).toBe(second.id);
  });
});

describe('POST …/members/leave', () => {
  const leave = (caller: TestCaller, project_id: number) => caller.rpc.members.leave.mutate({ project_id });

  it('ends the access at once, in an inactive project, too', async () => {
    const { asViewer, project, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.viewer, inactive, 'viewer');

    expect((await asViewer.post(`${MEMBERS}/leave`, { project_id: inactive.id })).status).toBe(200);
    await leave(asViewer, project.id);

    expect(await reasonOf(asViewer.rpc.boards.list.query())).toBe('403 no_project_access');
  });

  it('400 for the last active owner, also if two leave at the same moment', async () => {
    const project = await givenProject();
    const owners = [await givenUser({ project, role: 'owner' }), await givenUser({ project, role: 'owner' })];
    const callers = await Promise.all(owners.map(callerOf));

    const outcomes = await Promise.allSettled(callers.map((caller) => leave(caller, project.id)));

    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const last = callers[outcomes.findIndex(({ status }) => status === 'rejected')]!;
    expect(await reasonOf(leave(last, project.id))).toBe('400 last_owner');
  });

  it('403 while X-Project-Id selects another project', async () => {
    const { asViewer, project, users } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.viewer, second, 'viewer');

    expect(await reasonOf(leave(asViewer.in(second.id), project.id))).toBe('403 other_project');
  });
});
