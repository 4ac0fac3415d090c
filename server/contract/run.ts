import { type RestProcedure, restProcedures } from '../api/procedures.ts';
import { counted } from '../runtime/count.ts';
import type { Receiver, Run } from './expectation.ts';
import { checkGateway, makeRequestIds } from './gateway.ts';
import { allOf, judge } from './judge.ts';
import { checkLimits } from './limits.ts';
import { checkQueries } from './queries.ts';
import { checkRefusals } from './refusals.ts';
import type { Case, Report } from './report.ts';
import { type Answer, failureOf, type Send, type Sent, senderTo, type Target } from './sender.ts';
import { OUTSIDE, START_STEPS } from './startSteps.ts';
import { checkStreams } from './streams.ts';
import { checkWrites } from './writes.ts';

export type Options = {
  /** Whether rows may be created, changed and deleted. */
  isWriting?: boolean;
  /** The operations to check; all of them by default. */
  known?: RestProcedure[];
  signal?: AbortSignal;
  /** How long the first bytes of a stream may take, and an event. */
  streamSeconds?: number;
  receiver?: Receiver;
  onProgress?: (line: string) => void;
  /** For lines that stay: where rows are created. */
  announce?: (line: string) => void;
};

/** A service that can't be checked at all. */
export class NotCheckable extends Error {}

/** Checks a service against the document of this version. Without `isWriting`, it only reads, and sends calls that are refused. */
export async function checkContract(target: Target, options: Options = {}): Promise<Report> {
  const {
    isWriting = false,
    known = restProcedures,
    signal,
    streamSeconds = 10,
    receiver,
    onProgress = () => undefined,
    announce = () => undefined,
  } = options;
  const cases: Case[] = [];
  let requests = 0;
  let limitedUntil = 0;
  const onLimited = (sent: Sent, answer: Answer, seconds: number) => {
    // Several requests wait at once: one line is enough.
    if (Date.now() >= limitedUntil) announce(`Waits ${counted(seconds, 'second')}, as the service asked (429).`);
    limitedUntil = Math.max(limitedUntil, Date.now() + seconds * 1000);
    const problems = allOf(judge(sent, answer));
    cases.push({ check: 'too many calls', call: sent.path, problems: problems.map((problem) => `429: ${problem}`) });
  };
  const requestIds = makeRequestIds();
  const counting =
    (send: Send): Send =>
    async (sent) => {
      requests++;
      const answer = await send(sent);
      requestIds.note(sent, answer);
      return answer;
    };
  const run: Run = {
    target,
    send: counting(senderTo(target, { signal, onLimited })),
    sendLast: counting(senderTo(target, { onLimited })),
    record: async (check, call, work) => {
      signal?.throwIfAborted();
      onProgress(`Checked ${cases.length}: ${check} (${call})`);
      const problems = await work().catch((error: Error) => {
        if (error.name === 'AbortError') throw error;
        return [`no answer (${failureOf(error)})`];
      });
      cases.push({ check, call, problems });
    },
    streamSeconds,
    known,
    procedures: [],
    denied: new Map(),
    succeeded: new Set(),
    refused: new Map(),
    lostHeaders: new Set(),
    signal,
    announce,
    limitedUntil: () => limitedUntil,
    receiver,
  };

  const version = await mustBeCheckable(run);
  await checkRefusals(run);
  // At the same time: a stream that does not begin is waited for.
  await Promise.all([checkLimits(run), checkStreams(run), checkQueries(run)]);
  await checkGateway(run);
  const left = isWriting ? await checkWrites(run) : [];
  await run.record('request ids', 'all answers', async () => requestIds.problems());

  const reasons = Map.groupBy(run.denied.keys(), (name) => run.denied.get(name)!);
  return {
    url: target.url,
    version,
    cases,
    requests,
    operations: { known: known.length, found: run.procedures.length },
    denied: Object.fromEntries(reasons),
    unseen: unseenIn(run, isWriting),
    left,
  };
}

/** The operations of which no success was seen, by reason. */
function unseenIn({ procedures, succeeded, denied, refused }: Run, isWriting: boolean): Report['unseen'] {
  const names = procedures.map(({ name }) => name).filter((name) => !succeeded.has(name) && !denied.has(name));
  const isMade = (name: string) => START_STEPS.flat().some(({ call }) => call === name) || name in EARLIER;
  const reasonOf = (name: string) =>
    OUTSIDE[name] ??
    (refused.has(name) ? `refused: ${refused.get(name)}` : undefined) ??
    (isWriting
      ? (EARLIER[name] ?? 'no row to call it with')
      : isMade(name)
        ? 'only with --write'
        : 'no row to call it with');
  return Object.fromEntries(Map.groupBy(names, reasonOf));
}

/** Made once: later runs find theirs. */
const EARLIER: Record<string, string> = Object.fromEntries(
  ['platforms.create', 'projects.create'].map((name) => [name, 'an earlier run made its own']),
);

/** Throws if there is no service of ours, or if it does not know the key. Returns the version of the service. */
async function mustBeCheckable({ target: { url }, send }: Run): Promise<string | undefined> {
  const isJson = ({ headers }: Answer) => headers.get('content-type')?.startsWith('application/json') ?? false;
  const whoever = restProcedures.find(({ name }) => name === 'projects.listOwn')!;
  const answers = await Promise.all(
    [`/api${whoever.rest.path}`, `/trpc/${whoever.name}`].map((path) => send({ path })),
  ).catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new NotCheckable(`${url} can't be reached: ${failureOf(error)}.`);
  });
  if (!answers.some(isJson) || answers.every(({ status }) => status === 404))
    throw new NotCheckable(`${url} is not the address of a Deckhand service.`);
  if (answers.every(({ status }) => status === 401)) {
    throw new NotCheckable(`${url} did not accept the key or login: it is mistyped, revoked or expired.`);
  }
  const document = await send({ method: 'GET', path: '/openapi.json', isAnonymous: true }).catch(() => undefined);
  const [, version] = /"version":\s*"([^"]+)"/.exec(document?.text ?? '') ?? [];
  return version;
}
