import type { Reason } from '../../shared/reasons.ts';
import { responsesOf } from '../api/openapi/document.ts';
import type { Schema } from '../api/openapi/example.ts';
import { restProcedures } from '../api/procedures.ts';
import { documentedReasons } from './documentedReasons.ts';
import { pageViolations } from './event.ts';
import { foreignReason } from './rpcAnswer.ts';
import { document, documentedHeaders, violations } from './violations.ts';

type SentAnswer = { method: string; path: string; response: Pick<Response, 'status' | 'headers'>; text: string };

/** What is wrong with the headers, and with the rest, each judged by itself: a lost header must not hide a wrong body. */
export type Judgement = { headers: string[]; body: string[] };

/** How a REST answer differs from the document. */
export function undocumented(sent: SentAnswer): string[] {
  const { headers, body } = judgedByDocument(sent, { isNew: true });
  return [...headers, ...body];
}

/**
 * How a REST answer differs from the document, with its headers apart. Behind a proxy it may have other headers, too, and older
 * events.
 */
export function judgedByDocument(
  { method, path, response, text }: SentAnswer,
  { allowsOtherHeaders = false, isNew = false } = {},
): Judgement {
  // The preflight request of a browser is not documented.
  if (method === 'OPTIONS' && response.status === 204) return { headers: [], body: [] };
  const documented = documentedFor(method, path)[response.status];
  if (!documented) return { headers: [], body: ['The status is not listed.'] };
  const headers = [
    ...headerViolations(response.headers, documented.headers),
    ...(allowsOtherHeaders ? [] : unlistedHeaders(response.headers, documented.headers)),
  ];
  const reason = reasonViolations(method, path, response);
  if (method === 'HEAD')
    return { headers, body: [...reason, ...(text === '' ? [] : ['The answer to HEAD has a body.'])] };
  const content = judgedAsJson(response.headers, text, (value) => [
    ...violations(documented.schema, value),
    ...(path === LISTED ? pageViolations((value as { data?: unknown } | null)?.data, { isNew }) : []),
  ]);
  return { headers: [...headers, ...content.headers], body: [...reason, ...content.body] };
}

/** A page of a proxy is one problem; JSON with a wrong content type is still checked. */
export function judgedAsJson(headers: Headers, text: string, check: (value: unknown) => string[]): Judgement {
  const isJson = headers.get('content-type') === 'application/json; charset=utf-8';
  const wrongType = isJson ? [] : ['The content type is not JSON.'];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { headers: [], body: isJson ? ['The body is not JSON.'] : wrongType };
  }
  return { headers: wrongType, body: check(value) };
}

type Documented = { headers: Record<string, Schema>; schema: Schema };

/** The documented responses of an operation; for other paths and methods, those that the introduction describes. */
function documentedFor(method: string, path: string): Record<number, Documented> {
  if (path === STREAM && method === 'GET') return documentedIn(LISTED);
  const operation = document.paths[path === STREAM ? LISTED : path]?.post;
  if (operation && path !== STREAM && method === 'POST') return documentedIn(path);

  const { 400: refused, 429: limited, 500: fault } = documentedIn(DEFAULT) as Record<400 | 429 | 500, Documented>;
  const others = { 429: limited, 500: fault };
  if (!operation) return { 404: refused, ...others };
  return {
    405: { ...refused, headers: { ...refused.headers, Allow: { const: path === STREAM ? 'GET' : 'POST' } } },
    ...others,
  };
}

/** The stream of events is described with their list, and refused in the same ways. */
const STREAM = '/services/platforms/v1/events/stream';
const LISTED = '/services/platforms/v1/events/list';

/** The headers of every answer with this status, whatever the operation, over RPC, too. */
export function commonHeaders(status: number): Record<string, Schema> {
  const responses = documentedIn(DEFAULT);
  return (responses[status] ?? responses[400])!.headers;
}

/** An operation with the default body for each error. */
const DEFAULT = '/services/operations/v1/operations/boards/get';

function documentedIn(path: string): Record<string, Documented> {
  const responses = responsesOf(document, document.paths[path]!.post);
  return Object.fromEntries(
    Object.entries(responses).map(([status, { headers = {}, content }]) => {
      const schemas = Object.keys(headers).map((name) => [name, documentedHeaders[name]!.schema]);
      return [status, { headers: Object.fromEntries(schemas), schema: content!['application/json'].schema }];
    }),
  );
}

export function headerViolations(headers: Headers, documented: Record<string, Schema>): string[] {
  return Object.entries(documented).flatMap(([name, schema]) => {
    const value = headers.get(name);
    if (value === null) return documentedHeaders[name]?.required === false ? [] : [`The header ${name} is missing.`];
    const read = schema.type === 'integer' ? Number(value) : value;
    return violations(schema, read).map((violation) => `${name}: ${violation}`);
  });
}

function unlistedHeaders(headers: Headers, documented: Record<string, Schema>): string[] {
  const known = new Set(Object.keys(documented).map((name) => name.toLowerCase()));
  const others = [...headers.keys()].filter((name) => !known.has(name) && !HTTP_HEADERS.test(name));
  return others.map((name) => `The header ${name} is not listed.`);
}

/** The reason of an error must be listed in docs/errors.md with the status of the answer, and be one of the procedure. */
function reasonViolations(method: string, path: string, { status, headers }: SentAnswer['response']): string[] {
  const reason = headers.get('x-error-reason');
  if (reason === null) return [];
  if (!documentedReasons.get(reason)?.statuses.includes(status))
    return [`The reason ${reason} is not listed for ${status}.`];
  const procedure = method === 'POST' && restProcedures.find(({ rest }) => rest.path === path);
  return procedure ? foreignReason(procedure, reason as Reason) : [];
}

/** Headers of HTTP itself, and for browsers. */
const HTTP_HEADERS =
  /^(access-control-[a-z]+-[a-z]+|cache-control|connection|content-(encoding|length|security-policy|type)|cross-origin-[a-z]+-policy|date|keep-alive|origin-agent-cluster|referrer-policy|transfer-encoding|vary|x-(content-type-options|dns-prefetch-control|download-options|frame-options|permitted-cross-domain-policies|xss-protection))$/;
