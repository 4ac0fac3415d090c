import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { RestProcedure } from '../api/procedures.ts';
import { type Call, type Checked, callOn } from './exchange.ts';
import type { Given } from './input.ts';
import { NOT_A_REPEAT, type Surface } from './judge.ts';
import type { OwnCall } from './ownEvents.ts';
import type { Place } from './ownPlace.ts';
import type { Send } from './sender.ts';
import type { Rows, Step } from './writeSteps.ts';

/** A step over one surface, which has its own rows. */
export type StepCall = { surface: Surface; procedure: RestProcedure; step: Step; input: Given; rows: Rows };

/** The input of a step with the ids of these rows; undefined if one of them was not created, or an answer had no secret. */
export async function inputOf({ input, as, needs }: Step, rows: Rows): Promise<Given | undefined> {
  let isComplete = [as, needs].every((name) => name == null || rows[name] !== undefined);
  const made = typeof input === 'function' ? await input(rows).catch(() => undefined) : input;
  if (made === undefined) return undefined;
  const text = JSON.stringify(made, (_, value) => {
    if (typeof value !== 'string' || !value.startsWith('$')) return value;
    const id = rows[value.slice(1)];
    if (id === undefined) isComplete = false;
    return id;
  });
  return isComplete ? JSON.parse(text) : undefined;
}

/** Sends a step, and its repeat: its answer, its row and its texts must be right. */
export async function callStep(
  stepCall: StepCall,
  send: Send,
  place: Place,
  note: (call: OwnCall) => void,
): Promise<Checked> {
  const { surface, procedure, step, input, rows } = stepCall;
  const { as, keeps } = step;
  const isAnonymous = as === null;
  const headers = {
    'idempotency-key': randomUUID(),
    ...(as && { authorization: `Bearer ${rows[as]}` }),
  };
  const call: Call = { procedure, input, isAnonymous, headers };
  const requestId = randomUUID();
  const first = await callOn(surface, send, { ...call, headers: { ...headers, 'x-request-id': requestId } });
  if (keeps) await keep(stepCall, first, () => callOn(surface, send, call));
  if (first.read?.data !== undefined) note(asOwnCall(step.call, requestId, first));
  const foreign = rememberRow(first, stepCall, rows, place);
  const isReplayed = first.answer?.headers.has('idempotent-replayed');
  const problems = [
    ...first.problems,
    ...unexpected(surface, first, step),
    ...foreign,
    ...(isReplayed ? [`${surface} ${first.status}: ${NOT_A_REPEAT}`] : []),
    ...damagedTexts(surface, input, first.outcome?.data),
  ];
  const isRepeated =
    !place.isForeign && !place.losesKeys && isRepeatable(stepCall) && first.outcome?.data !== undefined;
  if (!isRepeated) return { ...first, problems };
  const again = await callOn(surface, send, call);
  rememberRow(again, stepCall, {}, place);
  return { ...first, problems: [...problems, ...repeatProblems(surface, first, again)] };
}

/** A secret is answered once, and a token that the call has ended can't repeat it. */
const isRepeatable = ({ procedure, step }: StepCall) =>
  procedure.isKeyed && !procedure.hasSecret && step.as === undefined;

/** Keeps what later steps need; asks for it until the answer has it. */
async function keep({ procedure, step, rows }: StepCall, first: Checked, ask: () => Promise<Checked>): Promise<void> {
  const end = Date.now() + LONGEST_WAIT_MILLISECONDS;
  for (let { read } = first; ; { read } = await ask()) {
    for (const [name, path] of Object.entries(step.keeps!)) rows[name] = valueAt(read?.data, path);
    const isKept = Object.keys(step.keeps!).every((name) => rows[name] !== undefined);
    if (isKept || procedure.type !== 'query' || Date.now() > end) return;
    await pause(PAUSE_MILLISECONDS);
  }
}
const LONGEST_WAIT_MILLISECONDS = 10_000;
const PAUSE_MILLISECONDS = 200;

/** Null and false are no value yet. */
const valueAt = (data: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((part, name) => (Array.isArray(part) ? part.at(Number(name)) : (part as Given)?.[name]), data) ||
  undefined;

/** What its event has to say. A gateway may give the request another id, which the answer then has. */
function asOwnCall(name: string, requestId: string, { answer, read }: Checked): OwnCall {
  const tag = answer?.headers.get('etag') ?? /"version":("\d+-)/.exec(answer?.text ?? '')?.[1];
  const version = /^(?:W\/)?"(\d+)-/.exec(tag ?? '')?.[1];
  return {
    name,
    requestId: answer?.headers.get('x-request-id') ?? requestId,
    isIdUncertain: !answer?.headers.has('x-request-id'),
    answeredAt: Date.now(),
    id: rowOf(read?.data)?.id as number | undefined,
    version: version === undefined ? undefined : Number(version),
  };
}

/** Remembers the created row, even if the answer is not as documented: the row has to be removed at the end. */
function rememberRow({ read }: Checked, { surface, step }: StepCall, rows: Rows, place: Place): string[] {
  const row = step.creates === undefined ? undefined : rowOf(read?.data);
  if (typeof row?.id !== 'number') return [];
  rows[step.creates!] = row.id;
  const foreign = place.remember(step.call, row.id, row.project_id as number | null | undefined);
  return foreign.map((problem) => `${surface}: ${problem}`);
}

/** The row in an answer: `{ board: { … } }`, or the first of `{ results: [{ card: { … } }] }`. */
function rowOf(data: unknown): Record<string, unknown> | undefined {
  const [part] = Object.values((data ?? {}) as object);
  return Array.isArray(part) ? rowOf(part[0]) : part;
}

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

/** Names, titles, and texts beyond ASCII must come back as they were sent. */
function damagedTexts(surface: Surface, input: Given, data: unknown): string[] {
  const row = rowOf(data);
  return Object.entries(input).flatMap(([field, sent]) => {
    const isPlain = field === 'name' || field === 'title' || /\P{ASCII}/u.test(String(sent));
    const isTold = typeof sent === 'string' && isPlain && typeof row?.[field] === 'string';
    return isTold && row[field] !== sent ? [`${surface}: "${sent}" came back as "${row[field]}".`] : [];
  });
}

/** A version that no row has. */
const OLD_VERSION = '0-0';

/** A change that requires an old version of the row must be refused. */
export async function callWithOldVersion({ surface, procedure, input }: StepCall, send: Send) {
  const isRest = surface === 'REST';
  const version = isRest
    ? { input, headers: { 'if-match': `"${OLD_VERSION}"` } }
    : { input: { ...input, if_version: OLD_VERSION } };
  const { status, problems } = await callOn(surface, send, { procedure, ...version });
  const isChanged = status !== undefined && status < 400;
  if (isChanged) {
    const field = isRest ? 'If-Match' : 'if_version';
    problems.push(`${surface}: a change is accepted for an old version of the row (${field}).`);
  } else if (status !== undefined && status !== 412)
    problems.push(`${surface} ${status}: 412 was expected for an old version of the row.`);
  return { isChanged, problems };
}
