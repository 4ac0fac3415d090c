import { securityHeaders } from '../http/headers.ts';
import { commonHeaders, headerViolations, type Judgement, judgedAsJson, judgedByDocument } from './answer.ts';
import { rpcViolations } from './rpcAnswer.ts';
import type { Answer, Sent } from './sender.ts';

export const SURFACES = ['REST', 'RPC'] as const;
export type Surface = (typeof SURFACES)[number];

export type Expected = { status: number; reason?: string | undefined; allow?: string };

/** How an answer differs from what this request must get, and from what every answer must be. */
export function answerProblems(sent: Sent, answer: Answer, { status, reason, allow }: Expected): string[] {
  const surface = sent.path.startsWith('/api') ? 'REST' : 'RPC';
  const sentReason = surface === 'REST' ? answer.headers.get('x-error-reason') : reasonIn(answer.text);
  // A missing header is reported as that.
  const isWrongReason = ![undefined, sentReason].includes(reason) && sentReason !== null;
  const problems = [
    ...(answer.status === status ? [] : [`${status} was expected.`]),
    ...([undefined, answer.headers.get('allow')].includes(allow) ? [] : [`The header Allow is not ${allow}.`]),
    ...(isWrongReason ? [`The reason is ${sentReason}, not ${reason}.`] : []),
    ...allOf(judge(sent, answer)),
  ];
  return problems.map((problem) => `${surface} ${answer.status}: ${problem}`);
}

function reasonIn(text: string): string | undefined {
  try {
    return JSON.parse(text).error?.json?.data?.reason;
  } catch {
    return undefined;
  }
}

export const allOf = ({ headers, body }: Judgement): string[] => [...headers, ...body];

/** How an answer over REST differs from the document, and one over RPC from the models, each with what every answer has. */
export function judge({ method = 'POST', path, headers: sent }: Sent, answer: Answer): Judgement {
  const [, surface, place = ''] = /^\/(api|trpc\/)([^?]*)/.exec(path) ?? [];
  if (surface === undefined) return { headers: [], body: [] };
  const { headers, body } =
    surface === 'api'
      ? judgedByDocument({ method, path: place, response: answer, text: answer.text }, { allowsOtherHeaders: true })
      : judgedByModels(place, answer);
  const isReplayed = answer.headers.has('idempotent-replayed') && !sent?.['idempotency-key'];
  return {
    headers: isOfProxy(answer)
      ? []
      : [...headers, ...sharedProblems(answer.headers), ...(isReplayed ? [NOT_A_REPEAT] : [])],
    body: answer.isUtf8 === false ? [...body, 'The body is not UTF-8.'] : body,
  };
}

export const NOT_A_REPEAT = 'The header Idempotent-Replayed is on the answer to a first call.';

function judgedByModels(path: string, { status, headers, text }: Answer): Judgement {
  // The reason and the version of a row are in the body.
  const { 'X-Error-Reason': _, ETag: __, ...documented } = commonHeaders(status);
  const content = judgedAsJson(headers, text, () => rpcViolations(path, text, { status }));
  return { headers: [...headerViolations(headers, documented), ...content.headers], body: content.body };
}

/** A page or an error of a proxy: of all that it lacks, its content type says enough. */
function isOfProxy({ status, headers, text }: Answer): boolean {
  const isPage = headers.get('content-type')?.startsWith('text/html');
  const isGatewayError = status >= 502 && status <= 504 && !headers.has('x-request-id');
  return (isPage || isGatewayError) && !text.startsWith('{');
}

/** Headers for browsers and caches, which a proxy must not take away. */
const SHARED_HEADERS = { ...securityHeaders(), 'cache-control': 'no-store' };

function sharedProblems(headers: Headers): string[] {
  const wrong = Object.entries(SHARED_HEADERS).flatMap(([name, value]) => {
    const sent = headers.get(name);
    if (sent === value) return [];
    return [sent === null ? `The header ${name} is missing.` : `The header ${name} is ${sent}, not ${value}.`];
  });
  // Proxies that compress make it so.
  const isWeak = headers.get('etag')?.startsWith('W/');
  return isWeak ? [...wrong, 'The header ETag is weak: in If-Match, it never matches.'] : wrong;
}
