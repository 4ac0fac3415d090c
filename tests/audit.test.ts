import { describe, expect, it } from 'vitest';
import { givenCard, givenProject, givenUser, givenWorld, PASSWORD } from './harness/world.ts';

const LIST = '/services/platforms/v1/audit/list';
type Entry = { id: string; type: string; user_id: number | null; address: string | null; data: object };

describe('POST …/audit/list', () => {
  it('200 for an owner with what happened to the members of their project, newest first, and for no other project', async () => {
    const { asOwner, asSuperadmin, project, users } = await givenWorld();
    const [user, other] = [await givenUser(), await givenProject()];
    await asSuperadmin.rpc.members.set.mutate({ project_id: project.id, user_id: user.id, role: 'viewer' });
    await asSuperadmin.rpc.members.set.mutate({ project_id: other.id, user_id: user.id, role: 'viewer' });
    await asOwner.rpc.members.set.mutate({ project_id: project.id, user_id: user.id, role: 'member' });

    const { entries } = (await asOwner.post(LIST, { project_id: project.id })).body.data;

    expect(entries.slice(0, 2)).toMatchObject([
      { type: 'member.updated', user_id: users.owner.id, surface: 'rpc', data: { user_id: user.id, role: 'member' } },
      { type: 'member.added', user_id: users.superadmin.id, data: { user_id: user.id, role: 'viewer' } },
    ]);
    expect(new Set(entries.map(({ project_id }: { project_id: number }) => project_id))).toEqual(new Set([project.id]));
  });

  it('has what a superadmin did in a project without being a member, but not what its members did', async () => {
    const { asSuperadmin, asMember, project, users } = await givenWorld();
    const id = await givenCard(project);
    await asMember.rpc.cards.update.mutate({ id, title: 'By a member' });
    await asSuperadmin.rpc.cards.update.mutate({ id, title: 'By a superadmin' });

    const { entries } = await asSuperadmin.rpc.audit.list.query({ project_id: project.id, types: ['card.updated'] });

    expect(entries).toMatchObject([{ user_id: users.superadmin.id, subject_id: id, data: { fields: ['title'] } }]);
  });

  it('has good and bad sign-ins with their address, for superadmins alone, filtered by user and time, page by page', async () => {
    const { asNobody, asOwner, asSuperadmin } = await givenWorld();
    const { id: user_id, email } = await givenUser();
    const signIn = (password: string) => asNobody.post('/v1/authenticate', { email, password });
    await signIn('wrong');
    await signIn(PASSWORD);

    const first = await asSuperadmin.rpc.audit.list.query({ user_id, limit: 1 });
    const second = await asSuperadmin.rpc.audit.list.query({ user_id, limit: 1, cursor: first.next_cursor });
    const later = await asSuperadmin.rpc.audit.list.query({ user_id, since: new Date(Date.now() + 60_000) });

    const [started, refused] = [...first.entries, ...second.entries] as Entry[];
    expect(started).toMatchObject({ type: 'session.started', user_id, address: '127.0.0.1' });
    expect(refused).toMatchObject({ type: 'session.refused', user_id, data: { reason: 'wrong password' } });
    expect(second.next_cursor).toBeNull();
    expect(later.entries).toEqual([]);
    expect((await asOwner.rpc.audit.list.query({ user_id })).entries).toEqual([]);
  });
});
