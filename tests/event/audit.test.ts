import { describe, expect, it } from 'vitest';
import { insertRows } from '../../server/database/query.ts';
import type { TestCaller } from '../harness/caller.ts';
import { feedComplete } from '../harness/events.ts';
import { withOwnDatabase } from '../harness/service.ts';
import { givenCard, givenInvitation, givenProject, givenUser, givenWorld, PASSWORD, testDb } from '../harness/world.ts';

withOwnDatabase();

type AuditPage = Awaited<ReturnType<TestCaller['rpc']['audit']['list']['query']>>;

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

describe('a page of the audit trail', () => {
  const EARLIER = { type: 'member.added', surface: 'rest' } as const;
  const givenEntries = async (project_id: number, entries: number, state: object = {}) =>
    insertRows(
      await testDb(),
      'audit_entries',
      Array.from({ length: entries }, () => ({ ...EARLIER, project_id, ...state })),
    );
  const read = async ({ rpc }: TestCaller, input: object) => {
    const pages: AuditPage[] = [];
    for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)!.next_cursor)
      pages.push(await rpc.audit.list.query({ ...input, cursor }));
    return pages;
  };

  it('reads 1,000 entries at most: with a filter it may be empty, and the next one goes on', async () => {
    const { asOwner, project } = await givenWorld();
    const project_id = project.id;
    await givenEntries(project_id, 2, { type: 'member.removed' });
    await givenEntries(project_id, 2100);

    const pages = await read(asOwner, { project_id, types: ['member.removed'] });

    expect(pages.map(({ entries }) => entries.length)).toEqual([0, 0, 2]);
    expect((await read(asOwner, { project_id, limit: 200 })).flatMap(({ entries }) => entries)).toHaveLength(2102);
  });

  it('ends where the entries are older than the wanted ones', async () => {
    const { asOwner, project } = await givenWorld();
    const project_id = project.id;
    await givenEntries(project_id, 1000, { created_at: new Date('2020-01-01') });
    await givenEntries(project_id, 1);

    const pages = await read(asOwner, { project_id, since: new Date(Date.now() - 60_000) });

    expect(pages.map(({ entries }) => entries.length)).toEqual([1]);
  });

  it('goes on behind ids that are too large for an integer', async () => {
    const { asOwner, project } = await givenWorld();
    const project_id = project.id;
    const ids = ['4294967297', '4294967296'];
    await givenEntries(project_id, 1);
    for (const id of ids) await givenEntries(project_id, 1, { id: `${id}${project_id}` });

    const pages = await read(asOwner, { project_id, limit: 1 });

    expect(pages.slice(0, 2).map(({ entries: [entry] }) => entry!.id)).toEqual(ids.map((id) => `${id}${project_id}`));
    expect(pages).toHaveLength(3);
  });
});

describe('who is not a member of the project', () => {
  it('is known to superadmins with their address, to owners without it', async () => {
    const { asOwner, asSuperadmin, project, users } = await givenWorld();
    const id = await givenCard(project);
    await asSuperadmin.rpc.cards.update.mutate({ id, title: 'By a superadmin' });
    await asOwner.rpc.members.set.mutate({ project_id: project.id, user_id: users.viewer.id, role: 'member' });

    const addresses = async ({ rpc }: TestCaller) =>
      (await rpc.audit.list.query({ project_id: project.id })).entries.map(({ user_id, address }) => [
        user_id,
        address,
      ]);

    expect(await addresses(asSuperadmin)).toEqual([
      [users.owner.id, '127.0.0.1'],
      [users.superadmin.id, '127.0.0.1'],
    ]);
    expect(await addresses(asOwner)).toEqual([
      [users.owner.id, '127.0.0.1'],
      [users.superadmin.id, null],
    ]);
  });

  it('stays unknown after declining an invitation: in the trail, its filter, and the events', async () => {
    const { asOwner, asOutsider, asSuperadmin, project, users } = await givenWorld();
    const id = await givenInvitation(project, users.outsider);
    await asOutsider.rpc.account.declineInvitation.mutate({ id });
    const declined = { type: 'invitation.declined', subject_id: id };
    const types = ['invitation.declined' as const];
    const list = async ({ rpc }: TestCaller, more: object = {}) =>
      (await rpc.audit.list.query({ project_id: project.id, types, ...more })).entries;

    expect(await list(asOwner)).toMatchObject([{ ...declined, user_id: null, request_id: null, address: null }]);
    expect(await list(asOwner, { user_id: users.outsider.id })).toEqual([]);
    expect(await list(asSuperadmin)).toMatchObject([{ ...declined, user_id: users.outsider.id, address: '127.0.0.1' }]);
    await feedComplete();
    const { events } = await asOwner.rpc.events.list.query({ project_id: project.id, types });
    expect(events).toMatchObject([{ ...declined, user_id: null, request_id: null }]);
  });
});
