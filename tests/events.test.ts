import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../server/api/procedures.ts';
import { appRouter } from '../server/api/routers/app.ts';
import type { Meta } from '../server/api/trpc.ts';
import { type Given, inputFor } from '../server/contract/input.ts';
import { EVENT_TYPES, EventData, type EventType } from '../shared/event.ts';
import { makeCaller, type TestCaller } from './harness/caller.ts';
import { eventsOf } from './harness/events.ts';
import { type Called, givenCall, mutations, overRest, overRpc } from './harness/mutations.ts';
import { testService } from './harness/service.ts';
import { allowedCaller, givenStartState, startStates, type Whose } from './harness/startStates.ts';
import { hideEarlierProjects } from './harness/template.ts';
import { givenKey, givenWorld, type World } from './harness/world.ts';

/** What holds for every mutation: it declares its events, and writes them with each change, and only then. */

hideEarlierProjects();

function declaredBy({ name }: Procedure): readonly EventType[] {
  const definitions = appRouter._def.procedures as unknown as Record<string, { _def: { meta: Meta } }>;
  return definitions[name]!._def.meta.events ?? [];
}

describe('the router', () => {
  it('has the events of each mutation, all of known types, and none of a query', () => {
    const isKnown = (type: EventType) => type in EVENT_TYPES;

    expect(mutations.filter((procedure) => declaredBy(procedure).length === 0).map(({ name }) => name)).toEqual([]);
    expect(mutations.flatMap(declaredBy).filter((type) => !isKnown(type))).toEqual([]);
    expect(procedures.filter(({ type }) => type === 'query').flatMap(declaredBy)).toEqual([]);
  });

  it('has a mutation for each type, apart from what payments cause', () => {
    const declared = new Set(mutations.flatMap(declaredBy));
    const others = (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => !declared.has(type));

    expect(others).toEqual(['subscription.changed']);
  });
});

describe.each(mutations.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  it.each([
    ['rest', overRest, procedure.rest!.status],
    ['rpc', overRpc, 200],
  ] as const)('writes the declared events over %s, without contents', async (surface, call, status) => {
    const { caller, input, userId } = await givenCall(procedure);
    let answer: Called | undefined;

    const events = await eventsOf(async () => {
      answer = await call(caller, procedure, input);
    });

    expect(answer!.status).toBe(status);
    expect(events).not.toEqual([]);
    const request_id = answer!.headers.get('x-request-id');
    for (const { type, data, ...event } of events) {
      expect(declaredBy(procedure)).toContain(type);
      const key_id = procedure.access === 'key' ? expect.any(Number) : null;
      expect(event).toMatchObject({ user_id: userId, key_id, surface, request_id });
      expect(EventData.strict().parse(data)).toEqual(data);
      for (const field of data.fields ?? []) expect(field).toMatch(/^[a-z_]+$/);
    }
  });

  it('writes none if it is refused', async () => {
    const world = await givenWorld();

    for (const refused of refusalsOf(procedure)) {
      const { caller, input } = await refused(procedure, world);
      for (const call of [overRest, overRpc]) {
        let answer: Called | undefined;
        const events = await eventsOf(async () => {
          answer = await call(caller, procedure, input);
        });

        expect(answer!.status).toBeGreaterThanOrEqual(400);
        expect(answer!.status).toBeLessThan(500);
        expect(events).toEqual([]);
      }
    }
  });

  it.runIf(procedure.isKeyed)('writes none for a repeat with the same idempotency key', async () => {
    const { caller, input } = await givenCall(procedure);
    const key = randomUUID();

    const first = await overRest(caller, procedure, input, key);
    const again = await eventsOf(() => overRest(caller, procedure, input, key));

    expect(first.status).toBe(procedure.rest!.status);
    expect(again).toEqual([]);
  });
});

type Refusal = (procedure: Procedure, world: World) => Promise<{ caller: TestCaller; input: Given }>;

/** The ways to be refused: by the access, by the input, and by the row that it names. */
function refusalsOf(procedure: Procedure): Refusal[] {
  const { on } = startStates.get(procedure.name)!;
  if (procedure.access === 'anyone') return [INVALID, WRONG_PASSWORD];
  if (procedure.access === 'key') return [WITHOUT_KEY, INVALID];
  const isOfProject = on?.owner === 'project' || on?.owner === 'platform';
  return [
    WITHOUT_SCOPE,
    ...(procedure.access === 'signedIn' ? [] : [ELSEWHERE]),
    ...(procedure.input && procedure.needsInput ? [INVALID] : []),
    ...(on ? [naming('unknown')] : []),
    ...(on?.isDeletable ? [naming('deleted')] : []),
    ...(isOfProject ? [FOREIGN] : []),
  ];
}

const INVALID: Refusal = async (procedure, world) => {
  const input = inputFor(procedure, {});
  // An object is invalid in every field.
  return {
    caller: allowedCaller(world, procedure),
    input: Object.fromEntries(Object.keys(input).map((field) => [field, {}])),
  };
};

const WRONG_PASSWORD: Refusal = async (procedure, world) => {
  const input = inputFor(procedure, await givenStartState(procedure, world));
  return { caller: world.asNobody, input: { ...input, password: 'wrong' } };
};

const WITHOUT_KEY: Refusal = async (procedure, world) => ({
  caller: world.asSuperadmin,
  input: inputFor(procedure, {}),
});

const WITHOUT_SCOPE: Refusal = async (procedure, world) => {
  const { secret } = await givenKey(world.users.superadmin, { scopes: [] });
  const caller = makeCaller((await testService()).url, secret);
  return { caller, input: inputFor(procedure, await givenStartState(procedure, world)) };
};

/** A user of another project, without rights in that of the row. */
const ELSEWHERE: Refusal = async (procedure, world) => {
  const { secret } = await givenKey(world.users.outsider, { project_id: world.project.id });
  const caller = makeCaller((await testService()).url, secret);
  return { caller, input: inputFor(procedure, await givenStartState(procedure, world)) };
};

const naming =
  (whose: Whose): Refusal =>
  async (procedure, world) => ({
    caller: allowedCaller(world, procedure),
    input: inputFor(procedure, await givenStartState(procedure, world, whose)),
  });

const FOREIGN: Refusal = async (procedure, world) => ({
  caller: world.asOwner,
  input: inputFor(procedure, await givenStartState(procedure, world, 'foreign')),
});
