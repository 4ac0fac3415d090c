import { randomUUID } from 'node:crypto';
import { findProcedure, type RestProcedure } from '../api/procedures.ts';
import { type Call, type Checked, differences, overRest, overRpc } from './exchange.ts';
import type { Run } from './expectation.ts';
import { isId } from './input.ts';
import { comparable, type Outcome } from './outcome.ts';
import { openPlace, type Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
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
  try {
    await runSteps(run, place, [...BOARD_STEPS, ...(place.isOwn ? PROJECT_STEPS : [])]);
    if (!run.denied.has('masterBoards.create')) await runSteps(run, place, TEMPLATE_STEPS);
  } catch (error) {
    await remove(run, place);
    // There is no report that would name them.
    for (const row of place.left) run.announce(`Not removed: ${row}`);
    throw error;
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
    await run.record(
      step.fails ? 'refused change' : 'change',
      `${step.call}${step.title ? ` ${step.title}` : ''}`,
      async () => {
        const rest = await callAs('REST', procedure, step, twins.REST, send, place);
        const rpc = await callAs('RPC', procedure, step, twins.RPC, send, place);
        const hide = (surface: keyof Twins) => hiderOf(twins[surface], step);
        const isSuccess = rest.outcome?.data !== undefined && rpc.outcome?.data !== undefined;
        if (isSuccess) run.succeeded.add(step.call);
        const expected = step.fails ? `a ${step.fails}` : 'a success';
        return [
          ...rest.problems,
          ...rpc.problems,
          ...unexpected('REST', rest, step, expected),
          ...unexpected('RPC', rpc, step, expected),
          ...differences(hidden(rest, hide('REST')), hidden(rpc, hide('RPC')), (outcome) => outcome),
        ];
      },
    );
  }
}

/** In the project of its own rows. An interruption waits for the answer, or the id of a created row would be lost. */
function senderIn({ target, sendLast }: Run, { projectId }: Place): Send {
  if (projectId === undefined || projectId === target.projectId) return sendLast;
  return (sent) => sendLast({ ...sent, headers: { 'x-project-id': String(projectId), ...sent.headers } });
}

async function callAs(
  surface: keyof Twins,
  procedure: RestProcedure,
  step: Step,
  rows: Rows,
  send: Send,
  place: Place,
): Promise<Checked> {
  const call: Call = { procedure, input: step.input(rows), headers: { 'idempotency-key': randomUUID() } };
  const over = surface === 'REST' ? overRest : overRpc;
  const first = await over(send, call);
  const created = createdBy(first, procedure, step, place);
  if (created) Object.assign(rows, created);
  if (!step.isRepeated || first.problems.length > 0) return first;
  const again = await over(send, call);
  createdBy(again, procedure, step, place);
  return { ...first, problems: [...first.problems, ...repeatProblems(surface, first, again)] };
}

/** Also of an answer that is not as documented: the row has to be removed. */
function createdBy({ read }: Checked, { name }: RestProcedure, step: Step, place: Place): Rows | undefined {
  const created = step.creates?.(read?.data as never);
  for (const id of Object.values(created ?? {})) place.remember(name, id);
  return created;
}

/** A repeat with the same key is not executed: it gets the same answer again, and says so. */
function repeatProblems(surface: string, first: Checked, again: Checked): string[] {
  const isSame = JSON.stringify(first.outcome) === JSON.stringify(again.outcome);
  const isMarked = again.answer?.headers.get('idempotent-replayed') === 'true';
  return [
    ...again.problems,
    ...(isSame ? [] : [`${surface}: a repeat with the same Idempotency-Key has another answer.`]),
    ...(isMarked ? [] : [`${surface}: a repeat does not have the header Idempotent-Replayed.`]),
  ];
}

function unexpected(surface: string, { status, outcome }: Checked, { fails }: Step, expected: string): string[] {
  if (!outcome || (fails ? status === fails : outcome.data !== undefined)) return [];
  return [`${surface} ${status}: ${expected} was expected (${outcome.message ?? 'no error'}).`];
}

const hidden = (checked: Checked, hide: (outcome: Outcome) => Outcome): Checked => ({
  ...checked,
  ...(checked.outcome && { outcome: hide(checked.outcome) }),
});

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
