import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { type Given, inputFor, invalidInput } from '../../server/contract/input.ts';
import { ACCESS } from '../../server/domain/access/access.ts';
import { ADMIN_SCOPE, GRANTS_SCOPE, scopesFor } from '../../server/domain/access/scopes.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { readVersions } from '../harness/contents.ts';
import { testService } from '../harness/service.ts';
import {
  allowedCaller,
  CALLERS,
  type CallerName,
  givenStartState,
  hasAccess,
  startStates,
  WHOSE,
  type Whose,
} from '../harness/startStates.ts';
import { overMcp, overRest, overRestWithoutKey, overRpc, type Surface } from '../harness/surfaces.ts';
import {
  ALL_SCOPES,
  givenKey,
  givenMember,
  givenToken,
  givenUser,
  type KeyState,
  type TestUser,
  type World,
} from '../harness/world.ts';

/** Which caller gets which status on whose rows. */

export type Refusals = {
  /** Calls with another outcome than expected. */
  unexpected: string[];
  /** Statuses of the calls that were refused. */
  statuses: number[];
  /** Whether the refused calls have written nothing. */
  isUnchanged: boolean;
};

/** A call, and its status and reason; `done` if it succeeds. */
type Call = { by: string; caller: () => Promise<TestCaller>; on: Whose | 'both'; more?: Given; expected: string };

/** Over REST, without a key, which would roll back all that a refused call writes, and over RPC or by a tool. */
export async function makeRefusals(procedure: Procedure, world: World): Promise<Refusals> {
  const both = await givenUser({ project: world.project, role: 'owner' });
  await givenMember(both, world.otherProject, 'owner');
  const inputOn = async (on: Call['on']) => {
    const start = on === 'both' ? { ...world, users: { ...world.users, member: both } } : world;
    return inputFor(procedure, await givenStartState(procedure, start, on === 'both' ? 'own' : on));
  };
  const calls = [
    ...callsBySession(procedure, world),
    ...callsByKey(procedure, world, both),
    ...callsWithOtherInput(procedure, world),
  ];
  // Refused calls and queries change nothing, so they can share their inputs.
  const shared = new Map<Call['on'], Given>();
  for (const on of new Set(calls.map((call) => call.on))) shared.set(on, await inputOn(on));
  const unexpected: string[] = [];
  const statuses: number[] = [];
  const make = async ({ by, caller, on, more, expected }: Call, surface: Surface, input = shared.get(on)!) => {
    const { status, reason } = await surface(await caller(), procedure, { ...input, ...more });
    const outcome = status ? `${status} ${reason}` : 'done';
    if (!outcome.startsWith(expected)) unexpected.push(`${by}, ${on}: ${outcome} instead of ${expected}`);
    if (status) statuses.push(status);
  };
  const isRefused = ({ expected }: Call) => expected !== 'done';
  // New tokens and keys are no change by the call.
  for (const call of calls.filter(isRefused)) {
    const caller = await call.caller();
    call.caller = async () => caller;
  }

  const before = JSON.stringify(await readVersions());
  for (const [at, call] of calls.filter(isRefused).entries()) {
    await make(call, overRestWithoutKey);
    await make(call, isForTools(procedure) && at % 2 === 0 ? overMcp : overRpc);
  }
  const isUnchanged = JSON.stringify(await readVersions()) === before;
  for (const [at, call] of calls.filter((each) => !isRefused(each)).entries())
    await make(
      call,
      at % 2 === 0 ? overRest : overRpc,
      procedure.type === 'query' ? undefined : await inputOn(call.on),
    );
  return { unexpected, statuses, isUnchanged };
}

const isForTools = ({ access, hasSecret }: Procedure) => access !== 'anyone' && !hasSecret;

function expectedStatus(name: string, caller: CallerName, whose: Whose): number | undefined {
  const { access, on, missing = 404, success } = startStates.get(name)!;
  const allowed = success === 400 ? 400 : undefined;
  if (access !== 'anyone' && caller === 'Nobody') return 401;
  if (!hasAccess(caller, access)) return 403;
  if (!on) return allowed;
  if (whose === 'unknown' || whose === 'deleted') return missing;
  if (on.owner === 'author')
    return caller === (whose === 'foreign' ? 'Outsider' : 'Member') ? allowed : (on.foreign ?? 403);
  if (on.owner === 'superadmins') return caller === 'Superadmin' ? allowed : 403;
  if (on.owner === 'nobody' || (caller === 'Superadmin' && !on.foreign)) return allowed;
  return (whose === 'foreign') === (caller === 'Outsider') ? allowed : (on.foreign ?? 403);
}

export const onRowsOfProjects = procedures.filter(({ name }) => {
  const { on } = startStates.get(name)!;
  return on?.owner === 'project' && !on.foreign;
});

/** By every caller, on every kind of row. Callers without access are refused whatever they name. */
function callsBySession({ name }: Procedure, world: World): Call[] {
  const { on, access, endsSession } = startStates.get(name)!;
  const callerFor = async (caller: CallerName) => {
    if (!endsSession || caller === 'Nobody') return world[`as${caller}`];
    const token = await givenToken(world.users[caller.toLowerCase() as keyof World['users']]);
    return makeCaller((await testService()).url, token);
  };
  return CALLERS.flatMap((by) =>
    (on && hasAccess(by, access) ? WHOSE : (['own'] as const))
      .filter((whose) => whose !== 'deleted' || on?.isDeletable)
      .map((whose) => ({
        by,
        on: whose,
        caller: () => callerFor(by),
        expected: String(expectedStatus(name, by, whose) ?? 'done'),
      })),
  );
}

/** With keys: each needs the scopes of the operation, and the project of the row. */
function callsByKey(procedure: Procedure, { project, otherProject, users }: World, both: TestUser): Call[] {
  if (procedure.access === 'anyone') return [];
  const scopes = scopesFor(procedure);
  const isForSuperadmins = procedure.access === 'superadmin';
  const isOfAuthor = startStates.get(procedure.name)!.on?.owner === 'author';
  const withKey = (by: string, user: TestUser, state: KeyState, expected: string, chosen?: number): Call => ({
    by: `a key ${by}`,
    on: user === both || isOfAuthor ? 'both' : 'own',
    expected: scopes ? expected : '403 key_not_allowed',
    caller: async () => {
      const key = await givenKey(user, { last_used_at: new Date('2099-01-01'), ...state });
      return makeCaller((await testService()).url, key.secret, chosen);
    },
  });
  const without = (scope?: string) => ({ scopes: ALL_SCOPES.filter((each) => each !== scope) });
  const ofOtherProject = { project_id: otherProject.id };
  const needed = scopes ? [...scopes, ...(procedure.proof ? [GRANTS_SCOPE] : [])] : ALL_SCOPES;
  const reachedWithoutAdmin = 'role' in ACCESS[procedure.access] ? '403 no_project_access' : 'done';
  const { superadmin } = users;
  const isReached = isOfAuthor ? both : superadmin;
  return [
    withKey('without its scope', isReached, without(scopes?.[0]), scopes?.length === 0 ? 'done' : '403 scope_missing'),
    withKey('of another project', isReached, ofOtherProject, '403 no_project_access', project.id),
    ...(onRowsOfProjects.includes(procedure)
      ? [withKey('of another project, on a row', both, ofOtherProject, '403 other_project')]
      : []),
    ...(isForSuperadmins
      ? [withKey('of a project, for all projects', superadmin, ofOtherProject, '403 not_a_superadmin')]
      : []),
    withKey('with its scopes alone', isForSuperadmins ? superadmin : both, { scopes: needed }, 'done'),
    withKey(
      'without the scope admin',
      isReached,
      without(ADMIN_SCOPE),
      isForSuperadmins ? '403 scope_missing' : reachedWithoutAdmin,
    ),
  ];
}

/** A caller with access sends an invalid input, and an outdated version. */
function callsWithOtherInput(procedure: Procedure, world: World): Call[] {
  const call = { on: 'own', caller: async () => allowedCaller(world, procedure) } as const;
  return [
    ...(procedure.needsInput
      ? [{ ...call, by: 'invalid input', more: invalidInput(procedure), expected: '422 invalid_input' }]
      : []),
    ...(procedure.isConditional
      ? [{ ...call, by: 'an outdated version', more: { if_version: '1' }, expected: '412 row_changed' }]
      : []),
  ];
}
