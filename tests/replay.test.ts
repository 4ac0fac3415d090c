import { randomUUID } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../server/api/procedures.ts';
import { query } from '../server/database/query.ts';
import { ACCESS } from '../server/domain/access/access.ts';
import type { Role } from '../shared/user.ts';
import { makeCaller } from './harness/caller.ts';
import { errorOf } from './harness/client.ts';
import { testService } from './harness/service.ts';
import { givenStartState, inputFor, startStates } from './harness/startStates.ts';
import {
  givenCard,
  givenKey,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  testDb,
} from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';

const keyed = (key: string = randomUUID()) => ({ 'Idempotency-Key': key });

const replayed = ({ headers }: { headers: Headers }) => headers.get('idempotent-replayed');

describe('a repeat after the access was lost', () => {
  const inProjects = procedures.filter(
    ({ name, isKeyed, access }) => isKeyed && 'role' in ACCESS[access] && startStates.get(name)!.success !== 400,
  );
  const change = async (statement: RawBuilder<unknown>) => query(await testDb(), statement);

  /** A user who owns another project, too, so that only the access to this one decides. */
  async function givenCall(procedure: Procedure, role: Role | 'superadmin') {
    const own = await givenWorld();
    const { url } = await testService();
    const elsewhere = await givenProject();
    const state = { superadmin: role === 'superadmin', default_project_id: own.project.id };
    const user = await givenUser({ project: elsewhere, role: 'owner', ...state });
    if (role !== 'superadmin') await givenMember(user, own.project, role);
    const caller = makeCaller(url, await givenToken(user));
    const member = role === 'superadmin' ? own.users.member : user;
    const given = await givenStartState(procedure, { ...own, users: { ...own.users, member } });
    const input = inputFor(procedure, given);
    const key = randomUUID();
    const repeat = () => caller.post(procedure.rest!.path, input, keyed(key));
    const first = await repeat();
    expect(first.status, JSON.stringify(first.body)).toBeLessThan(300);
    return { ...own, user, caller, input, key, first, repeat };
  }
  type Given = Awaited<ReturnType<typeof givenCall>>;

  /** Neither surface returns the answer; if a new call is refused, too, then in the same words. */
  async function expectRefusal(procedure: Procedure, { caller, input, key, repeat }: Given, reasons: string[]) {
    const refused = await repeat();
    const [noun, verb] = procedure.name.split('.') as [string, string];
    const overRpc = await errorOf((caller.rpc as any)[noun][verb].mutate(input, { idempotencyKey: key }));
    const fresh = await caller.post(procedure.rest!.path, input);

    expect(refused).toMatchObject({ status: 403, body: { error: true, message: expect.any(String) } });
    expect(refused.body.data ?? []).toEqual([]);
    expect(replayed(refused)).toBeNull();
    expect(reasons).toContain(refused.headers.get('x-error-reason'));
    const { message } = refused.body;
    expect(overRpc).toMatchObject({ status: 403, message, reason: refused.headers.get('x-error-reason') });
    if (fresh.status === 403) expect(refused.body).toEqual(fresh.body);
    return refused;
  }
  const LOST = ['other_project', 'no_project_access', 'other_platform'];

  it.each(inProjects.map((procedure) => [procedure.name, procedure] as const))(
    '403 for %s: removed, a lower role, an inactive project, no longer a superadmin',
    async (_, procedure) => {
      const { role: needed } = ACCESS[procedure.access] as { role: Role };

      const removed = await givenCall(procedure, needed);
      await change(sql`delete from members where project_id = ${removed.project.id} and user_id = ${removed.user.id}`);
      await expectRefusal(procedure, removed, LOST);
      await givenMember(removed.user, removed.project, needed);
      const again = await removed.repeat();
      expect(again).toMatchObject({ status: removed.first.status, body: removed.first.body });
      expect(replayed(again)).toBe('true');

      if (needed !== 'viewer') {
        const lowered = await givenCall(procedure, needed);
        await change(
          sql`update members set role = 'viewer' where project_id = ${lowered.project.id} and user_id = ${lowered.user.id}`,
        );
        await expectRefusal(procedure, lowered, ['role_missing', 'other_platform']);
      }

      const inactive = await givenCall(procedure, needed);
      await change(sql`update projects set is_active = false where id = ${inactive.project.id}`);
      await expectRefusal(procedure, inactive, LOST);

      const demoted = await givenCall(procedure, 'superadmin');
      await change(sql`update users set superadmin = false where id = ${demoted.user.id}`);
      await expectRefusal(procedure, demoted, LOST);
    },
  );

  it('422 with a key of another project: the answer stays where it is', async () => {
    const { url } = await testService();
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const { secret } = await givenKey(own.users.member, { project_id: own.otherProject.id });
    const [id, headers] = [await givenCard(own.project), keyed()];
    const update = '/services/operations/v1/operations/cards/update';

    await own.asMember.post(update, { id, title: 'Secret' }, headers);
    const answer = await makeCaller(url, secret).post(update, { id, title: 'Secret' }, headers);

    expect(answer.status).toBe(422);
    expect(answer.headers.get('x-error-reason')).toBe('idempotency_key_reused');
  });

  it('403 with X-Project-Id once the project is not one of theirs', async () => {
    const own = await givenWorld();
    await givenMember(own.users.member, own.otherProject, 'member');
    const caller = own.asMember.in(own.project.id);
    const headers = keyed();
    const title = randomUUID();

    expect((await caller.post(CREATE, { title }, headers)).status).toBe(201);
    await change(sql`delete from members where project_id = ${own.project.id} and user_id = ${own.users.member.id}`);

    expect((await caller.post(CREATE, { title }, headers)).status).toBe(403);
  });
});
