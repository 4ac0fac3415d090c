import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { type Given, inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import { ACCESS } from '../../server/domain/access/access.ts';
import type { Role } from '../../shared/user.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { sampled } from '../harness/sample.ts';
import { testService } from '../harness/service.ts';
import { givenStartState, startStates } from '../harness/startStates.ts';
import { overRest, overRpc, refusedByAll } from '../harness/surfaces.ts';
import {
  givenCard,
  givenKey,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  type TestUser,
  testDb,
} from '../harness/world.ts';
import { onRowsOfProjects } from './refusals.ts';

const titled = (some: Procedure[]) => some.map((procedure) => [procedure.name, procedure] as const);
const change = async (statement: RawBuilder<unknown>) => query(await testDb(), statement);

describe('a call on rows of a project', () => {
  /** Their answers have secrets, which are not kept for a repeat. */
  const WITHOUT_REPEAT = ['webhooks.create', 'webhooks.rotateSecret'];
  const inProjects = procedures.filter(
    ({ name, access }) => 'role' in ACCESS[access] && startStates.get(name)!.success !== 400,
  );

  it.each(titled(sampled(inProjects)))('%s needs the role there, also to repeat it', async (_, procedure) => {
    const world = await givenWorld();
    const { url } = await testService();
    const { project } = world;
    const { role: needed } = ACCESS[procedure.access] as { role: Role };
    const isOnRow = onRowsOfProjects.includes(procedure);
    const elsewhere = await givenProject();
    // Owns another project, too, so that only the access to this one decides.
    const user = await givenUser({
      project: elsewhere,
      role: 'owner',
      default_project_id: isOnRow ? elsewhere.id : project.id,
    });
    const caller = makeCaller(url, await givenToken(user));
    const inputOf = async (member: TestUser) =>
      inputFor(procedure, await givenStartState(procedure, { ...world, users: { ...world.users, member } }));
    const [input, key] = [await inputOf(user), randomUUID()];
    const membership = sql`project_id = ${project.id} and user_id = ${user.id}`;
    const leave = () => change(sql`delete from members where ${membership}`);
    const setRole = (role: Role) => change(sql`update members set role = ${role} where ${membership}`);

    await givenMember(user, project, 'viewer');
    if (isOnRow && needed !== 'viewer') expect(await overRpc(caller, procedure, input)).toMatchObject({ status: 403 });
    await setRole(needed);
    if (isOnRow) {
      expect(await overRpc(caller.in(elsewhere.id), procedure, input)).toMatchObject({ status: 403 });
      expect(await overRpc(caller.in(project.id), procedure, await inputOf(user))).toHaveProperty('data');
    }
    const first = await overRest(caller, procedure, input, key);
    expect(first).toHaveProperty('data');
    if (!procedure.isKeyed || WITHOUT_REPEAT.includes(procedure.name)) return;

    /** The answer is not returned; if a new call is refused, too, then in the same words. */
    const expectRefused = async (who: TestCaller, sent: Given, reasons: string[], over = overRest) => {
      const refused = await over(who, procedure, sent, key);
      expect(refused).toMatchObject({ status: 403, message: expect.any(String) });
      expect(reasons).toContain(refused.reason);
      const fresh = await overRest(who, procedure, sent);
      if (fresh.status === 403) expect(refused).toEqual(fresh);
    };
    await leave();
    await expectRefused(caller, input, LOST, refusedByAll);
    await givenMember(user, project, 'viewer');
    if (needed !== 'viewer') await expectRefused(caller, input, ['role_missing', 'other_platform']);
    await setRole(needed);
    await change(sql`update projects set is_active = false where id = ${project.id}`);
    await expectRefused(caller, input, LOST);
    await change(sql`update projects set is_active = true where id = ${project.id}`);
    const again = await caller.post(procedure.rest!.path, input, { 'Idempotency-Key': key });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(await overRest(caller, procedure, input, key)).toEqual(first);

    const superadmin = await givenUser({
      superadmin: true,
      project: elsewhere,
      role: 'owner',
      default_project_id: project.id,
    });
    const asSuperadmin = makeCaller(url, await givenToken(superadmin));
    const other = await inputOf(world.users.member);
    expect(await overRest(asSuperadmin, procedure, other, key)).toHaveProperty('data');
    await change(sql`update users set superadmin = false where id = ${superadmin.id}`);
    await expectRefused(asSuperadmin, other, LOST);
  });
  const LOST = ['other_project', 'no_project_access', 'other_platform'];

  it('422 to repeat it with a key of another project: the answer stays where it is', async () => {
    const { url } = await testService();
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const { secret } = await givenKey(own.users.member, { project_id: own.otherProject.id });
    const [id, headers] = [await givenCard(own.project), { 'Idempotency-Key': randomUUID() }];
    const update = '/services/operations/v1/operations/cards/update';

    await own.asMember.post(update, { id, title: 'Secret' }, headers);
    const answer = await makeCaller(url, secret).post(update, { id, title: 'Secret' }, headers);

    expect(answer.status).toBe(422);
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_reused');
  });

  it('403 to repeat it with X-Project-Id once the project is not one of theirs', async () => {
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const create = () =>
      own.asMember
        .in(own.project.id)
        .post('/services/operations/v1/operations/cards/create', { title: 'x' }, { 'Idempotency-Key': 'the-same-key' });

    expect((await create()).status).toBe(201);
    await change(sql`delete from members where project_id = ${own.project.id} and user_id = ${own.users.member.id}`);

    expect((await create()).status).toBe(403);
  });
});

describe('a call that names no row', () => {
  const create = '/services/operations/v1/operations/tags/create';

  it('acts in the default project, else in the first one, else, for a superadmin, in the first of all', async () => {
    const { asOwner, users, project } = await givenWorld();
    const { url } = await testService();
    const later = await givenProject();
    const superadmin = await givenUser({ superadmin: true });
    const projectOfTag = async (caller: TestCaller) =>
      (await caller.post(create, { name: 'x' })).body.data.tag.project_id;
    await givenMember(users.owner, later, 'owner');

    expect(await projectOfTag(asOwner)).toBe(project.id);
    await changeDefault(users.owner, later.id);
    expect(await projectOfTag(asOwner)).toBe(later.id);
    expect(await projectOfTag(makeCaller(url, await givenToken(superadmin)))).toBe(await firstProject());
  });

  it('acts in the first project while the default one is inactive, or no longer theirs', async () => {
    const { asOwner, users, project, otherProject } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.owner, inactive, 'owner');
    const defaults = async () => (await asOwner.rpc.projects.listOwn.query({})).projects.map((own) => own.is_default);

    for (const unusable of [inactive, otherProject]) {
      await changeDefault(users.owner, unusable.id);
      expect((await asOwner.post(create, { name: 'x' })).body.data?.tag.project_id).toBe(project.id);
      expect(await defaults()).toEqual([true]);
    }
  });

  it('403 if the role there is too low, although it is high enough in another project', async () => {
    const { asViewer, users } = await givenWorld();
    const later = await givenProject();
    await givenMember(users.viewer, later, 'owner');

    expect(await asViewer.post(create, { name: 'x' })).toMatchObject({
      status: 403,
      body: { message: 'This requires the role member; yours in this project is viewer.' },
    });
    expect((await asViewer.post(create, { name: '' })).status).toBe(422);
    expect((await asViewer.in(later.id).post(create, { name: 'x' })).status).toBe(201);
  });

  it('403 for rows of an inactive project, also for its owner and a superadmin', async () => {
    const { asOwner, asSuperadmin, users } = await givenWorld();
    const inactive = await givenProject({ is_active: false });
    await givenMember(users.owner, inactive, 'owner');
    const id = await givenCard(inactive);

    for (const caller of [asOwner, asSuperadmin])
      expect((await caller.post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(403);
  });
});

async function changeDefault({ id }: TestUser, project: number) {
  await query(await testDb(), sql`update users set default_project_id = ${project} where id = ${id}`);
}

async function firstProject() {
  const [first] = await query(await testDb(), sql<{ id: number }>`select min(id) as id from projects where is_active`);
  return first!.id;
}
