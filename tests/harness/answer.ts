import type { Schema } from '../../server/api/openapi/example.ts';
import { document, violations } from './document.ts';
import { documentedReasons } from './errorsPage.ts';

type SentAnswer = { method: string; path: string; response: Pick<Response, 'status' | 'headers'>; text: string };

/** How a REST answer differs from the document. */
export function undocumented({ method, path, response, text }: SentAnswer): string[] {
  // The preflight request of a browser is not documented.
  if (method === 'OPTIONS' && response.status === 204) return [];
  const documented = responsesOf(method, path)[response.status];
  if (!documented) return ['The status is not listed.'];
  const headers = [...headerViolations(response.headers, documented.headers), ...reasonViolations(response)];
  if (method === 'HEAD') return text === '' ? headers : [...headers, 'The answer to HEAD has a body.'];
  const isJson = response.headers.get('content-type') === 'application/json; charset=utf-8';
  return [
    ...headers,
    ...(isJson ? violations(documented.schema, JSON.parse(text)) : ['The content type is not JSON.']),
  ];
}

type Documented = { headers: Record<string, Schema>; schema: Schema };

const documentedHeaders = document.components.headers as Record<string, { schema: Schema; required?: false }>;

/** The documented responses of an operation; for other paths and methods, those that the introduction describes. */
function responsesOf(method: string, path: string): Record<number, Documented> {
  const operation = document.paths[path]?.post;
  if (operation && method === 'POST') return documentedIn(path);

  const { 400: refused, 429: limited, 500: fault } = documentedIn(DEFAULT) as Record<400 | 429 | 500, Documented>;
  const others = { 429: limited, 500: fault };
  if (!operation) return { 404: refused, ...others };
  return { 405: { ...refused, headers: { ...refused.headers, Allow: { const: 'POST' } } }, ...others };
}

/** An operation with the default body for each error. */
const DEFAULT = '/services/operations/v1/operations/boards/get';

function documentedIn(path: string): Record<string, Documented> {
  const { responses } = document.paths[path]!.post;
  return Object.fromEntries(
    Object.entries(responses).map(([status, { headers = {}, content }]) => {
      const schemas = Object.keys(headers).map((name) => [name, documentedHeaders[name]!.schema]);
      return [status, { headers: Object.fromEntries(schemas), schema: content!['application/json'].schema }];
    }),
  );
}

function headerViolations(headers: Headers, documented: Record<string, Schema>): string[] {
  const wrong = Object.entries(documented).flatMap(([name, schema]) => {
    const value = headers.get(name);
    if (value === null) return documentedHeaders[name]?.required === false ? [] : [`The header ${name} is missing.`];
    const read = schema.type === 'integer' ? Number(value) : value;
    return violations(schema, read).map((violation) => `${name}: ${violation}`);
  });
  const known = new Set(Object.keys(documented).map((name) => name.toLowerCase()));
  const others = [...headers.keys()].filter((name) => !known.has(name) && !HTTP_HEADERS.test(name));
  return [...wrong, ...others.map((name) => `The header ${name} is not listed.`)];
}

/** The reason of an error must be listed in docs/errors.md with the status of the answer. */
function reasonViolations({ status, headers }: Pick<Response, 'status' | 'headers'>): string[] {
  const reason = headers.get('x-error-reason');
  if (reason === null || documentedReasons.get(reason)?.statuses.includes(status)) return [];
  return [`The reason ${reason} is not listed for ${status}.`];
}

/** Headers of HTTP itself, and for browsers. */
const HTTP_HEADERS =
  /^(access-control-[a-z]+-[a-z]+|cache-control|connection|content-(encoding|length|security-policy|type)|cross-origin-[a-z]+-policy|date|keep-alive|origin-agent-cluster|referrer-policy|transfer-encoding|vary|x-(content-type-options|dns-prefetch-control|download-options|frame-options|permitted-cross-domain-policies|xss-protection))$/;
