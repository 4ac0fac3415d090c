import { type Followed, followEvents } from './eventWays.ts';
import { type Checked, differences } from './exchange.ts';
import type { Run } from './expectation.ts';
import { isId } from './input.ts';
import { SURFACES, type Surface } from './judge.ts';
import { comparable, type Outcome } from './outcome.ts';
import { openPlace, type Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
import { callStep, callWithOldVersion, inputOf, type StepCall } from './stepCall.ts';
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
  const events = followEvents(run, place, senderIn(run, place));
  try {
    await events.begin();
    await runSteps(run, place, events, [...BOARD_STEPS, ...(place.isOwn ? PROJECT_STEPS : [])]);
    if (!run.denied.has('masterBoards.create')) await runSteps(run, place, events, TEMPLATE_STEPS);
    await events.check();
  } catch (error) {
    events.close();
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

async function runSteps(run: Run, place: Place, events: Followed, steps: Step[]): Promise<void> {
  const rows: Record<Surface, Rows> = { REST: { ...place.rows }, RPC: { ...place.rows } };
  const send = senderIn(run, place);
  for (const step of steps) {
    if (place.isForeign) return;
    const procedure = run.procedures.find(({ name }) => name === step.call && !run.denied.has(name));
    const calls = SURFACES.flatMap((surface): StepCall[] => {
      const input = inputOf(step, rows[surface]);
      return procedure && input ? [{ surface, procedure, step, input, rows: rows[surface] }] : [];
    });
    // The operation is missing, or a row that the step needs was not created.
    if (calls.length < SURFACES.length) continue;
    const isConditional = procedure!.isConditional && !step.fails;
    const isChanged = isConditional && (await isChangedWithOldVersion(run, calls, send));
    // After a change that should have been refused, the step changes nothing, and has no event.
    const note = isChanged ? () => undefined : events.note;
    const problems = () => stepProblems(run, place, note, calls, send);
    // After a wrong deletion, one of the two rows is gone. The other one has to be, too, for the steps that follow.
    if (isChanged && step.call.endsWith('.delete')) await problems();
    else
      await run.record(
        step.fails ? 'refused change' : 'change',
        [step.call, step.title].filter(Boolean).join(' '),
        problems,
      );
  }
}

async function stepProblems(
  run: Run,
  place: Place,
  note: Followed['note'],
  calls: StepCall[],
  send: Send,
): Promise<string[]> {
  const checked: Checked[] = [];
  for (const call of calls) {
    checked.push(await callStep(call, send, place, note));
    if (place.isForeign) break;
  }
  const problems = checked.flatMap((answer) => answer.problems);
  const [rest, rpc] = checked;
  if (!rest || !rpc) return problems;
  if (checked.every(({ outcome }) => outcome?.data !== undefined)) run.succeeded.add(calls[0]!.step.call);
  const [hideRest, hideRpc] = calls.map(hiderOf);
  return [...problems, ...differences(rest, rpc, { REST: hideRest!, RPC: hideRpc! })];
}

/** `If-Match` must arrive, or callers overwrite each other's changes without knowing. */
async function isChangedWithOldVersion(run: Run, calls: StepCall[], send: Send): Promise<boolean> {
  let isChanged = false;
  await run.record('old version', calls[0]!.step.call, async () => {
    const problems: string[] = [];
    for (const call of calls) {
      const answer = await callWithOldVersion(call, send);
      isChanged ||= answer.isChanged;
      problems.push(...answer.problems);
    }
    return problems;
  });
  return isChanged;
}

/** In the project of its own rows. An interruption waits for the answer, or the id of a created row would be lost. */
function senderIn({ target, sendLast }: Run, { projectId }: Place): Send {
  if (projectId === undefined || projectId === target.projectId) return sendLast;
  return (sent) => sendLast({ ...sent, headers: { 'x-project-id': String(projectId), ...sent.headers } });
}

/** Hides ids of the own rows, positions beside other rows, new times and random texts. */
function hiderOf({ rows, procedure, step: { ignores = [] } }: StepCall) {
  const isOwn = (key: string, value: unknown) =>
    Object.entries(rows).some(([field, id]) => id === value && nounOfField(field) === nounOfField(key));
  const hide = (key: string, value: unknown) => {
    // `sort_order` counts all cards of the project; each of the two rows has its own version.
    if (key === 'sort_order' || (key === 'version' && procedure.type === 'query') || ignores.includes(key))
      return 'ignored';
    if (key === 'id') return 'an id';
    return isId(key) && isOwn(key, value) ? 'an own row' : value;
  };
  return (outcome: Outcome): Outcome => JSON.parse(JSON.stringify(comparable(outcome, ''), hide));
}

/** `parent_comment_id` is the id of a comment. */
const nounOfField = (field: string) => field.split('_').at(-2);
