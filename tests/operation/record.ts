import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { z } from 'zod';
import { inputParser } from '../../server/api/parser.ts';
import type { Procedure } from '../../server/api/procedures.ts';
import { type Given, inputSchemaOf, NO_CURSOR, withGiven } from '../../server/contract/input.ts';
import type { Outcome } from '../../server/contract/outcome.ts';
import type { EventRow } from '../../server/domain/event/feed.ts';
import { changed, validValue, wrongChange } from '../harness/arbitrary.ts';
import type { Answer, TestCaller } from '../harness/caller.ts';
import { type Contents, emptyDatabase, readContents, readVersions, restoreContents } from '../harness/contents.ts';
import { eventsOf } from '../harness/events.ts';
import { runs, seed } from '../harness/sample.ts';
import { testService } from '../harness/service.ts';
import { startStates } from '../harness/startStates.ts';
import { overMcp, overRest, overRpc, type Surface } from '../harness/surfaces.ts';
import { givenWorld, type World } from '../harness/world.ts';
import { documentedErrors, type Reached } from './errors.ts';
import { givenFullCall, mutations } from './fullCalls.ts';
import { makeRefusals, type Refusals } from './refusals.ts';

/**
 * An operation's start state is built once, it is called once in each way, and all that can be seen of the calls is recorded. The
 * rules of `rules.ts` read this record.
 */
export type OperationRecord = {
  procedure: Procedure;
  world: World;
  userId: number;
  /** The same input over each surface, on the same rows; one list for each random input. */
  surfaces: Recorded[][];
  /** Over REST with an idempotency key, the same again, and with another key; none of these for queries. */
  keyed?: { first: Recorded & Answer; again: Answer; isUnchanged: boolean; anew: EventRow[] };
  /** An input with an unknown field. */
  unknown: { surface: SurfaceName; outcome: Outcome }[];
  /** Invalid inputs over all surfaces. */
  invalid: { input: unknown; outcomes: Outcome[] }[];
  refusals: Refusals;
  /** The statuses without a body, over REST and RPC. */
  bodiless: number[];
  /** Each documented error, and how it was reached. */
  errors: Reached[];
  logged: LogLine[];
};

export type SurfaceName = 'rest' | 'rpc' | 'mcp';
export type LogLine = { surface?: string; operation?: string; status?: number };

export type Recorded = {
  surface: SurfaceName;
  outcome: Outcome;
  events: EventRow[];
  before: Contents;
  after: Contents;
};

const SURFACES: Record<SurfaceName, Surface> = { rest: overRest, rpc: overRpc, mcp: overMcp };

/** Assistants are always signed in, and can't call what answers with a secret. */
const surfacesOf = ({ hasSecret }: Procedure) =>
  (Object.keys(SURFACES) as SurfaceName[]).filter((name) => name !== 'mcp' || !hasSecret);

export async function recordOperation(procedure: Procedure): Promise<OperationRecord> {
  const { logged } = await testService();
  await emptyDatabase();
  const call = await givenFullCall(procedure);
  const { world, userId } = call;
  logged.length = 0;
  const surfaces: Recorded[][] = [];
  for (const made of sampleOf(inputsOf(procedure).taken, runs)) {
    const input = withGiven(made, { ...NO_CURSOR, ...call.given }) as Given;
    surfaces.push(await overEachSurface(procedure, call, input));
  }
  return {
    procedure,
    world,
    userId,
    surfaces,
    keyed: mutations.includes(procedure) ? await withKeys(procedure, call) : undefined,
    logged: logged.splice(0) as LogLine[],
    ...(await refusedCalls(procedure)),
  };
}

type FullCall = Awaited<ReturnType<typeof givenFullCall>>;

/** The rows are brought back after each call, so that all surfaces find the same. */
async function overEachSurface(procedure: Procedure, { world, caller }: FullCall, input: Given): Promise<Recorded[]> {
  const before = await readContents();
  const recorded: Recorded[] = [];
  for (const surface of surfacesOf(procedure)) {
    const isNobody = surface === 'mcp' && procedure.access === 'anyone';
    let outcome: Outcome = {};
    const events = await eventsOf(async () => {
      outcome = await SURFACES[surface](isNobody ? world.asViewer : caller.alone(), procedure, input);
    });
    const after = await readContents();
    recorded.push({ surface, outcome, events, before, after });
    await restoreContents(before, after);
  }
  return recorded;
}

/** With further rows that the call changes, too. */
async function withKeys({ rest, isKeyed }: Procedure, { caller, input }: FullCall): Promise<OperationRecord['keyed']> {
  const post = (key: string) => caller.post(rest!.path, input, { 'Idempotency-Key': key });
  const key = randomUUID();
  const before = await readContents();
  let answer!: Answer;
  const events = await eventsOf(async () => {
    answer = await post(key);
  });
  const after = await readContents();
  const first = { surface: 'rest', outcome: {}, events, before, after, ...answer } as const;
  if (!isKeyed) return { first, again: answer, isUnchanged: true, anew: [] };
  const versions = JSON.stringify(await readVersions());
  const again = await post(key);
  const isUnchanged = JSON.stringify(await readVersions()) === versions;
  return { first, again, isUnchanged, anew: await eventsOf(() => post(randomUUID())) };
}

/** On rows of their own, since the calls before have changed the others. */
async function refusedCalls(procedure: Procedure) {
  const world = await givenWorld();
  const refusals = await makeRefusals(procedure, world);
  const { input, caller } = await givenFullCall(procedure);
  const invalid = await Promise.all(
    procedure.input
      ? sampleOf(inputsOf(procedure).refused, 2 * runs).map(async (wrong) => ({
          input: wrong,
          outcomes: await outcomesOf(procedure, caller, wrong),
        }))
      : [],
  );
  const unknown: OperationRecord['unknown'] = [];
  // Over REST and RPC, a specified operation ignores the field, and changes the rows.
  for (const surface of surfacesOf(procedure).toReversed())
    unknown.push({
      surface,
      outcome: await SURFACES[surface](caller.alone(), procedure, { ...input, qqqqqqqq: null }),
    });
  return {
    refusals,
    invalid,
    unknown,
    bodiless: await withoutBody(procedure),
    errors: await documentedErrors(procedure, await givenWorld()),
  };
}

const outcomesOf = (procedure: Procedure, caller: TestCaller, input: unknown) =>
  Promise.all(
    surfacesOf(procedure)
      .filter((surface) => surface !== 'mcp' || procedure.access !== 'anyone')
      .map((surface) => SURFACES[surface](caller.alone(), procedure, input)),
  );

/** With callers of their own, since some calls end them. */
async function withoutBody({ name, access, rest }: Procedure): Promise<number[]> {
  const { url } = await testService();
  const statuses: number[] = [];
  for (const path of [`/api${rest!.path}`, `/trpc/${name}`]) {
    const { asKey, asSuperadmin } = await givenWorld();
    const headers = { authorization: `Bearer ${(access === 'key' ? asKey : asSuperadmin).token}` };
    statuses.push((await fetch(url + path, { method: 'POST', headers })).status);
  }
  return statuses;
}

/**
 * Valid inputs, and ones with a change that makes most of them invalid. A specified operation ignores unknown fields on some
 * surfaces: here they make an input neither valid nor invalid.
 */
function inputsOf(procedure: Procedure) {
  const schema = inputSchemaOf(procedure);
  const parse = inputParser(procedure.input ?? z.object({}));
  const isTaken = (input: unknown, isStrict: boolean) => {
    try {
      parse(input, isStrict);
      return true;
    } catch {
      return false;
    }
  };
  const plain = validValue(schema).filter((input) => isTaken(input, true));
  const odd = fc.tuple(plain, wrongChange(schema)).map(([made, change]) => changed(made, change));
  return {
    taken: fc.oneof(
      plain,
      odd.filter((input) => isTaken(input, true)),
    ),
    refused: odd.filter((input) => !isTaken(input, !procedure.rest?.isSpecified)),
  };
}

const sampleOf = <Value>(arbitrary: fc.Arbitrary<Value>, numRuns: number): Value[] =>
  fc.sample(arbitrary, { seed, numRuns });

/** Whether an operation, called on its start state, has a result rather than a documented refusal. */
export const hasResult = ({ name }: Procedure) => startStates.get(name)!.success !== 400;
