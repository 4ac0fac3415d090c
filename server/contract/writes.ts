import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import { differences } from './exchange.ts';
import type { Run } from './expectation.ts';
import { isId } from './input.ts';
import { comparable, type Outcome } from './outcome.ts';
import { openPlace, type Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
import { callAs, callWithOldVersion } from './stepCall.ts';
import { followEvents } from './streams.ts';
import { BOARD_STEPS, OWN, PROJECT_STEPS, type Rows, type Step, TEMPLATE_STEPS } from './writeSteps.ts';

/**
 * Creates, changes, moves and deletes rows of its own, the same over REST and over RPC, each with its own rows, and compares the
 * answers. Removes the rows again, after a failure, too. Returns what could not be removed.
 */
export async function checkWrites(run: Run): Promise<string[]> {
  const place = await openPlace(run);
  if (!place) {
    await run.record('own project', 'projects.create', async () => [
      `"${OWN}" could not be opened: no rows were written.`,
    ]);
    return [];
  }
  const events = followEvents(run, place);
  try {
    await runSteps(run, place, [...BOARD_STEPS, ...(place.isOwn ? PROJECT_STEPS : [])]);
    if (!place.isForeign && !run.denied.has('masterBoards.create')) await runSteps(run, place, TEMPLATE_STEPS);
    await events.check();
  } catch (error) {
    await remove(run, place);
    // There is no report that would name them.
    for (const row of place.left) run.announce(`Not removed: ${row}`);
    throw error;
  } finally {
    events.close();
  }
  await remove(run, place);
  return place.left;
}

async function remove(run: Run, place: Place): Promise<void> {
  run.announce('Removes what it created.');
  await place.close();
}

/** The rows of each surface, by the fields that name them. */
type Twins = { REST: Rows; RPC: Rows };

async function runSteps(run: Run, place: Place, steps: Step[]): Promise<void> {
  const twins: Twins = { REST: { ...place.rows }, RPC: { ...place.rows } };
  const send = senderIn(run, place);
  for (const step of steps) {
    const procedure = findProcedure(step.call) as RestProcedure;
    if (!run.procedures.some(({ name }) => name === step.call) || run.denied.has(step.call)) continue;
    const isComplete = step.needs.every((field) => twins.REST[field] !== undefined && twins.RPC[field] !== undefined);
    if (!isComplete) continue;
    const isChanged =
      procedure.isConditional && !step.fails && (await isChangedWithOldVersion(run, procedure, step, twins, send));
    if (isChanged && step.call.endsWith('.delete')) {
      // One of the two rows is gone already. The other one has to be, too, for the steps that follow.
      await stepProblems(run, place, procedure, step, twins, send);
      continue;
    }
    await run.record(
      step.fails ? 'refused change' : 'change',
      `${step.call}${step.title ? ` ${step.title}` : ''}`,
      () => stepProblems(run, place, procedure, step, twins, send),
    );
    if (place.isForeign) return;
  }
}

async function stepProblems(
  run: Run,
  place: Place,
  procedure: RestProcedure,
  step: Step,
  twins: Twins,
  send: Send,
): Promise<string[]> {
  const rest = await callAs('REST', procedure, step, twins.REST, send, place);
  if (place.isForeign) return rest.problems;
  const rpc = await callAs('RPC', procedure, step, twins.RPC, send, place);
  if (rest.outcome?.data !== undefined && rpc.outcome?.data !== undefined) run.succeeded.add(step.call);
  const hide = { REST: hiderOf(twins.REST, step), RPC: hiderOf(twins.RPC, step) };
  return [...rest.problems, ...rpc.problems, ...differences(rest, rpc, hide)];
}

/** `If-Match` must arrive, or callers overwrite each other's changes without knowing. */
async function isChangedWithOldVersion(run: Run, procedure: RestProcedure, step: Step, twins: Twins, send: Send) {
  let isChanged = false;
  await run.record('old version', step.call, async () => {
    const rest = await callWithOldVersion('REST', procedure, step.input(twins.REST), send);
    const rpc = await callWithOldVersion('RPC', procedure, step.input(twins.RPC), send);
    isChanged = rest.isChanged || rpc.isChanged;
    return [...rest.problems, ...rpc.problems];
  });
  return isChanged;
}

/** In the project of its own rows. An interruption waits for the answer, or the id of a created row would be lost. */
function senderIn({ target, sendLast }: Run, { projectId }: Place): Send {
  if (projectId === undefined || projectId === target.projectId) return sendLast;
  return (sent) => sendLast({ ...sent, headers: { 'x-project-id': String(projectId), ...sent.headers } });
}

/** Hides ids of the own rows, positions beside other rows, new times and random texts. */
function hiderOf(rows: Rows, { ignores = [] }: Step) {
  const isOwn = (key: string, value: unknown) =>
    Object.entries(rows).some(([field, id]) => id === value && nounOf(field) === nounOf(key));
  const hide = (key: string, value: unknown) => {
    // `sort_order` counts all cards of the project.
    if (key === 'sort_order' || ignores.includes(key)) return 'ignored';
    if (key === 'id') return 'an id';
    return isId(key) && isOwn(key, value) ? 'an own row' : value;
  };
  return (outcome: Outcome): Outcome => JSON.parse(JSON.stringify(comparable(outcome, ''), hide));
}

/** `parent_comment_id` is the id of a comment. */
const nounOf = (field: string) => field.split('_').at(-2);
