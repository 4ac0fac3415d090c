import { type Followed, followEvents } from './eventWays.ts';
import { type Checked, differences } from './exchange.ts';
import type { Run } from './expectation.ts';
import { checkFreshReads } from './freshReads.ts';
import { isId } from './input.ts';
import { SURFACES, type Surface } from './judge.ts';
import { comparable, type Outcome } from './outcome.ts';
import { openPlace, type Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
import { START_STEPS, startRows } from './startSteps.ts';
import { callStep, callWithOldVersion, inputOf, type StepCall } from './stepCall.ts';
import { BOARD_STEPS, PROJECT_STEPS, type Rows, type Step, TEMPLATE_STEPS } from './writeSteps.ts';

/**
 * Creates, changes, moves and deletes rows of its own, the same over REST and over RPC, each with its own rows, and compares the
 * answers. Removes the rows again, after a failure, too. Returns what could not be removed.
 */
export async function checkWrites(run: Run): Promise<string[]> {
  const place = await openPlace(run);
  if (typeof place === 'string') {
    await run.record('own project', 'projects.create', async () => [place]);
    return [];
  }
  const events = followEvents(run, place, senderIn(run, place));
  try {
    await events.begin();
    const { REST: rows } = await runSteps(run, place, events, BOARD_STEPS);
    await checkFreshReads(run, place, rows, senderIn(run, place));
    if (place.isOwn) await runSteps(run, place, events, PROJECT_STEPS);
    if (!run.denied.has('masterBoards.create')) await runSteps(run, place, events, TEMPLATE_STEPS);
    for (const steps of place.isOwn ? START_STEPS : [])
      if (![...run.refused.values()].includes('proof_required')) await runSteps(run, place, undefined, steps);
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

/** Without `events`, the steps make start states: each surface has its own, so the answers are not compared. */
async function runSteps(
  run: Run,
  place: Place,
  events: Followed | undefined,
  steps: Step[],
): Promise<Record<Surface, Rows>> {
  const [REST, RPC] = SURFACES.map((surface): Rows => ({ ...place.rows, ...(!events && startRows(surface)) }));
  const rows = { REST: REST!, RPC: RPC! };
  const send = senderIn(run, place);
  for (const step of steps) {
    if (place.isForeign) break;
    const isAllowed = (name: string) => !run.denied.has(name) || step.as !== undefined;
    const procedure = run.procedures.find(({ name }) => name === step.call && isAllowed(name));
    const calls: StepCall[] = [];
    for (const surface of procedure ? SURFACES : []) {
      const input = await inputOf(step, rows[surface]);
      if (input) calls.push({ surface, procedure: procedure!, step, input, rows: rows[surface] });
    }
    // The operation is missing, or a row that the step needs was not created.
    if (calls.length < (events ? SURFACES.length : 1)) continue;
    if (!events) {
      await run.record('start state', titleOf(step), () => startProblems(run, place, calls, send));
      continue;
    }
    const isConditional = procedure!.isConditional && !step.fails;
    const isChanged = isConditional && (await isChangedWithOldVersion(run, calls, send));
    // After a change that should have been refused, the step changes nothing, and has no event.
    const note = isChanged ? () => undefined : events.note;
    const problems = () => stepProblems(run, place, note, calls, send);
    // After a wrong deletion, one of the two rows is gone. The other one has to be, too, for the steps that follow.
    if (isChanged && step.call.endsWith('.delete')) await problems();
    else await run.record(step.fails ? 'refused change' : 'change', titleOf(step), problems);
  }
  return rows;
}

const titleOf = ({ call, title }: Step) => [call, title].filter(Boolean).join(' ');

/** What both surfaces refuse for the same reason is up to this service: mails may not be set up, or proof may be missing. */
async function startProblems(run: Run, place: Place, calls: StepCall[], send: Send): Promise<string[]> {
  const checked: Checked[] = [];
  for (const call of calls) {
    checked.push(await callStep(call, send, place, () => undefined));
    if (place.isForeign) break;
  }
  const { name } = calls[0]!.procedure;
  const hasAll = checked.length === SURFACES.length;
  if (hasAll && checked.every(({ outcome }) => outcome?.data !== undefined)) {
    run.succeeded.add(name);
    run.denied.delete(name);
  }
  const [rest, rpc] = checked.map(({ outcome }) => outcome);
  // A proxy may drop the header with the reason.
  const reason = rpc?.reason ?? rest?.reason;
  const isRefused = reason != null && rest?.status === rpc?.status && rest!.status! < 500;
  if (isRefused) run.refused.set(name, reason);
  const isExpected = (problem: string) => isRefused && / a success was expected /.test(problem);
  return checked.flatMap(({ problems }) => problems).filter((problem) => !isExpected(problem));
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
      // That the header is lost is reported once.
      if (call.surface === 'REST' && run.lostHeaders.has('If-Match')) continue;
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
