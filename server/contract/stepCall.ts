import { randomUUID } from 'node:crypto';
import type { RestProcedure } from '../api/procedures.ts';
import { type Call, type Checked, overRest, overRpc, type Surface } from './exchange.ts';
import type { Given } from './input.ts';
import type { Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
import type { Rows, Step } from './writeSteps.ts';

/** One call of a step, over one surface: its answer, its repeat, its rows and its texts. */
export async function callAs(
  surface: Surface,
  procedure: RestProcedure,
  step: Step,
  rows: Rows,
  send: Send,
  place: Place,
): Promise<Checked> {
  const call: Call = { procedure, input: step.input(rows), headers: { 'idempotency-key': randomUUID() } };
  const over = surface === 'REST' ? overRest : overRpc;
  const first = await over(send, call);
  const foreign = rememberRows(first, surface, procedure, step, rows, place);
  const problems = [...first.problems, ...unexpected(surface, first, step), ...foreign];
  if (place.isForeign || !procedure.isKeyed || first.outcome?.data === undefined) return { ...first, problems };
  const again = await over(send, call);
  rememberRows(again, surface, procedure, step, {}, place);
  const damaged = damagedTexts(surface, call.input!, first.outcome.data);
  return { ...first, problems: [...problems, ...damaged, ...repeatProblems(surface, first, again)] };
}

/** Remembers the row that a call created, even if its answer is not as documented: the row has to be removed at the end. */
function rememberRows(
  { read }: Checked,
  surface: Surface,
  { name }: RestProcedure,
  step: Step,
  rows: Rows,
  place: Place,
): string[] {
  const created = step.creates?.(read?.data as never);
  if (!created) return [];
  const projectId = rowOf(read!.data)?.project_id as number | null | undefined;
  for (const id of Object.values(created)) place.remember(name, id, projectId);
  Object.assign(rows, created);
  if (!place.projectId || !projectId || projectId === place.projectId) return [];
  place.isForeign = true;
  return [
    `${surface}: X-Project-Id does not arrive: the row was created in project ${projectId}, not in ${place.projectId}. Nothing more was written.`,
  ];
}

/** The row in an answer: `{ board: { … } }`. */
const rowOf = (data: unknown) => Object.values((data ?? {}) as object)[0] as Record<string, unknown> | undefined;

function unexpected(surface: Surface, { status, outcome }: Checked, { fails }: Step): string[] {
  if (!outcome || (fails ? status === fails : outcome.data !== undefined)) return [];
  const expected = fails ? `a ${fails}` : 'a success';
  return [`${surface} ${status}: ${expected} was expected (${outcome.message ?? 'no error'}).`];
}

/** A repeat with the same key is not executed: it gets the same answer again, and says so. */
function repeatProblems(surface: Surface, first: Checked, again: Checked): string[] {
  const isSame = JSON.stringify(first.outcome) === JSON.stringify(again.outcome);
  const isMarked = again.answer?.headers.get('idempotent-replayed') === 'true';
  return [
    ...again.problems,
    ...(isSame ? [] : [`${surface}: a repeat with the same Idempotency-Key has another answer.`]),
    ...(isMarked ? [] : [`${surface}: a repeat does not have the header Idempotent-Replayed.`]),
  ];
}

/** Texts beyond ASCII must come back as they were sent. */
function damagedTexts(surface: Surface, input: Given, data: unknown): string[] {
  const row = rowOf(data);
  return Object.entries(input).flatMap(([field, sent]) => {
    const isTold = typeof sent === 'string' && /\P{ASCII}/u.test(sent) && typeof row?.[field] === 'string';
    return isTold && row[field] !== sent ? [`${surface}: "${sent}" came back as "${row[field]}".`] : [];
  });
}

/** A version that no row has. */
const OLD_VERSION = '0-0';

/** A change that requires an old version of the row must be refused. */
export async function callWithOldVersion(surface: Surface, procedure: RestProcedure, input: Given, send: Send) {
  const { status, problems } =
    surface === 'REST'
      ? await overRest(send, { procedure, input, headers: { 'if-match': `"${OLD_VERSION}"` } })
      : await overRpc(send, { procedure, input: { ...input, if_version: OLD_VERSION } });
  const isChanged = status !== undefined && status < 400;
  const isRefused = status === undefined || status === 412;
  const wrong = isChanged
    ? [
        `${surface}: a change is accepted for an old version of the row (${surface === 'REST' ? 'If-Match' : 'if_version'}).`,
      ]
    : [`${surface} ${status}: 412 was expected for an old version of the row.`];
  return { isChanged, problems: [...problems, ...(isRefused ? [] : wrong)] };
}
