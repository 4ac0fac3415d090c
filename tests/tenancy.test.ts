import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../server/procedures.ts';
import { makeCaller, type TestCaller } from './harness/caller.ts';
import { databaseUrl, testService } from './harness/service.ts';
import {
  CALLERS,
  type CallerName,
  type Given,
  givenStartState,
  hasAccess,
  inputFor,
  startStates,
  WHOSE,
  type Whose,
} from './harness/startStates.ts';
import { givenCard, givenMember, givenProject, givenToken, givenWorld, type World } from './harness/world.ts';

/** Which caller gets which status on whose rows. Every procedure needs a row in the table of start states. */

function expectedStatus(name: string, caller: CallerName, whose: Whose): number {
  const { access, on, missing = 404, success = 200 } = startStates.get(name)!;
  if (access !== 'anyone' && caller === 'Nobody') return 401;
  if (!hasAccess(caller, access)) return 403;
  if (!on) return success;
  if (whose === 'unknown' || whose === 'deleted') return missing;
  if (on.owner === 'nobody' || (on.owner === 'platform' && caller === 'Superadmin')) return success;
  return (whose === 'foreign') === (caller === 'Outsider') ? success : (on.foreign ?? 403);
}

const overRest = async (caller: TestCaller, { rest }: Procedure, input: Given) =>
  (await caller.post(rest!.path, input)).status;

async function overRpc(caller: TestCaller, { name, type }: Procedure, input: Given): Promise<number> {
  const [noun, verb] = name.split('.') as [string, string];
  return (caller.rpc as any)[noun][verb][type === 'query' ? 'query' : 'mutate'](input).then(
    () => 200,
    (error: any) => error.data.httpStatus,
  );
}

describe('every procedure', () => {
  it('has a start state with its access', () => {
    const accessOf = (all: [string, { access: string }][]) => all.map(([name, { access }]) => `${name}: ${access}`);

    const expected = accessOf(procedures.map((procedure) => [procedure.name, procedure]));
    expect(accessOf([...startStates]).sort()).toEqual(expected.sort());
  });
});

describe.each(procedures.map((procedure) => [procedure.name, procedure] as const))('%s', (name, procedure) => {
  it('answers every caller with the expected status, on own, foreign, deleted and unknown rows', async () => {
    const { on, access, endsSession } = startStates.get(name)!;
    const world = await givenWorld();
    const { url } = await testService();
    const callerFor = async (caller: CallerName) => {
      if (!endsSession || caller === 'Nobody') return world[`as${caller}`];
      return makeCaller(url, await givenToken(world.users[caller.toLowerCase() as keyof World['users']]));
    };
    const makeInput = async (whose: Whose) => inputFor(procedure, await givenStartState(procedure, world, whose));

    // Refused calls change nothing, so they can share their input.
    const shared = new Map<Whose, Promise<Given>>();
    const sharedInput = (whose: Whose) => {
      if (!shared.has(whose)) shared.set(whose, makeInput(whose));
      return shared.get(whose)!;
    };

    const unexpected: string[] = [];
    for (const caller of CALLERS) {
      // Callers without access are refused whatever they name.
      const named = on && hasAccess(caller, access) ? WHOSE : (['own'] as const);
      for (const whose of named.filter((whose) => whose !== 'deleted' || on?.isDeletable)) {
        const expected = expectedStatus(name, caller, whose);
        const input = () => (expected < 400 ? makeInput(whose) : sharedInput(whose));
        const check = (surface: string, status: number, wanted: number) => {
          if (status !== wanted) unexpected.push(`${surface}, ${caller}, ${whose}: ${status} instead of ${wanted}`);
        };
        // REST and RPC are compared on the embedded database; RPC alone is enough on PostgreSQL.
        if (procedure.rest && !databaseUrl)
          check('REST', await overRest(await callerFor(caller), procedure, await input()), expected);
        const overRpcExpected = expected === 201 ? 200 : expected;
        check('RPC', await overRpc(await callerFor(caller), procedure, await input()), overRpcExpected);
      }
    }

    expect(unexpected).toEqual([]);
  });
});

describe('a project', () => {
  it('403 for a row of another project of the user, until X-Project-Id selects that project', async () => {
    const { asMember, users } = await givenWorld();
    const second = await givenProject();
    await givenMember(users.member, second, 'member');
    const id = await givenCard(second);

    expect((await asMember.post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(403);
    expect((await asMember.in(second.id).post('/services/operations/v1/operations/cards/delete', { id })).status).toBe(
      200,
    );
  });
});
