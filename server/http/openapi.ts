import { generateOpenApiDocument } from 'trpc-to-openapi';
import packageJson from '../../package.json' with { type: 'json' };
import { SENT_AS_TEXT } from '../../shared/fields.ts';
import type { ErrorBody, ErrorStatus, RestOperation } from '../restOperation.ts';
import { appRouter } from '../routers/app.ts';
import { exampleOf, type Schema } from './example.ts';
import { type Procedure, restProcedures } from './procedures.ts';

type Content = { 'application/json': { schema: Schema; example?: unknown } };
type Operation = {
  operationId: string;
  parameters?: object[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { description: string; headers?: object; content?: Content }>;
  [key: string]: unknown;
};
export type OpenApiDocument = {
  openapi: string;
  paths: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Schema>; [kind: string]: unknown };
  [key: string]: unknown;
};

/**
 * The document of the REST surface: made from the routers, and completed here with what the facade adds to them. Without a
 * public address its paths are relative to where it was fetched from.
 */
export function openApiDocument(publicUrl = ''): OpenApiDocument {
  const document = generateOpenApiDocument(appRouter, {
    title: 'Deckhand',
    version: packageJson.version,
    description: INTRODUCTION,
    baseUrl: `${publicUrl}/api`,
    tags: [...new Set(restProcedures.map(({ rest }) => rest.area))],
  }) as unknown as OpenApiDocument;

  document.components.headers = HEADERS;
  Object.assign(document.components.schemas, ERROR_SCHEMAS);
  for (const procedure of restProcedures) completeOperation(document, procedure);
  return inStandardWords(document) as OpenApiDocument;
}

const INTRODUCTION = `Task boards with master templates for many projects.

Every operation is a POST with a JSON body. Sign in with \`/v1/authenticate\` and send \`data.token\` as
\`Authorization: Bearer …\` with every other call. \`X-Project-Id\` chooses the project to act in.`;

function completeOperation(
  { paths, components: { schemas } }: OpenApiDocument,
  procedure: Procedure & { rest: RestOperation },
) {
  const { name, access, rest } = procedure;
  const operation = paths[rest.path]!.post;
  const operationId = name.replace(/\.(.)/g, (_, letter: string) => letter.toUpperCase());
  const schemaName = operationId.charAt(0).toUpperCase() + operationId.slice(1);
  operation.operationId = operationId;

  const { requestBody, responses } = operation;
  const sent = requestBody?.content['application/json'].schema;
  if (sent) {
    schemas[`${schemaName}Request`] = sent;
    requestBody.content = jsonContent(`${schemaName}Request`, schemas);
  }

  const parameters = rest.query.map((field) => ({
    name: field,
    in: 'query',
    schema: sent?.properties?.[field],
    required: false,
  }));
  operation.parameters = IN_PROJECT.has(access) ? [...parameters, PROJECT_HEADER] : parameters;

  schemas[`${schemaName}Response`] = envelope(responses[200]!.content!['application/json'].schema, rest);
  operation.responses = {
    [rest.status]: {
      description: rest.message,
      headers: headerReferences(),
      content: jsonContent(`${schemaName}Response`, schemas),
    },
    ...Object.fromEntries(rest.errors.map((status) => [status, errorResponse(status, rest, schemas)])),
  };
}

const IN_PROJECT: ReadonlySet<string> = new Set(['viewer', 'member', 'owner', 'ownerOrSuperadmin', 'billing']);

const PROJECT_HEADER = {
  name: 'X-Project-Id',
  in: 'header',
  required: false,
  description:
    'The project to act in, one of those that the user belongs to; without it, the default project of the user.',
  schema: { type: 'integer', minimum: 1 },
};

const HEADERS = {
  'X-RateLimit-Limit': { description: 'How many requests a minute are allowed.', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'How many of them are left.', schema: { type: 'integer' } },
  'X-Request-Id': { description: 'Names the request in our logs.', schema: { type: 'string' } },
  'Retry-After': { description: 'In how many seconds to try again.', schema: { type: 'integer' } },
};

function headerReferences(...further: 'Retry-After'[]) {
  const names = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-Request-Id', ...further];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const jsonContent = (schemaName: string, schemas: Record<string, Schema>): Content => {
  const schema = { $ref: `#/components/schemas/${schemaName}` };
  return { 'application/json': { schema, example: exampleOf(schema, schemas) } };
};

/** What every success is wrapped in; an operation that returns nothing sends an empty list. */
function envelope(data: Schema, rest: RestOperation): Schema {
  const returnsNothing = Object.keys(data).length === 0;
  return objectOf({
    error: { type: 'boolean', const: false, description: 'Whether it failed.' },
    message: { type: 'string', description: 'What happened, for people.', example: rest.message },
    data: returnsNothing ? EMPTY_LIST : data,
    ...Object.fromEntries(Object.keys(rest.envelope).map((field) => [field, EMPTY_LIST])),
  });
}

const EMPTY_LIST = { type: 'array', items: { type: 'string' }, maxItems: 0, example: [], description: 'Always empty.' };

const ERROR = { type: 'boolean', const: true, description: 'Whether it failed.' };
const MESSAGE = {
  type: 'string',
  description: 'What went wrong, for people.',
  example: 'What went wrong, in a sentence.',
};
const FIELD_ERRORS = {
  type: 'object',
  description: 'For each field that was refused, why.',
  additionalProperties: { type: 'array', items: { type: 'string' } },
  example: { title: ['title is required.'] },
};

const objectOf = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
});

const ERROR_SCHEMA_NAMES: Record<ErrorBody, string> = {
  full: 'Error',
  bare: 'ErrorWithoutData',
  message: 'ErrorMessage',
  fields: 'ValidationError',
};
const ERROR_SCHEMAS: Record<string, Schema> = {
  Error: objectOf({ error: ERROR, message: MESSAGE, data: EMPTY_LIST }),
  ErrorWithoutData: objectOf({ error: ERROR, message: MESSAGE }),
  ErrorMessage: objectOf({ message: MESSAGE }),
  ValidationError: objectOf({ message: { ...MESSAGE, example: 'title is required.' }, errors: FIELD_ERRORS }),
};

const MEANINGS: Record<ErrorStatus, string> = {
  400: 'The body cannot be read, or a rule forbids the step.',
  401: 'The token, or what was sent to sign in with, is missing or wrong.',
  403: 'The caller may not do this, or not here.',
  404: 'What the operation acts on does not exist, or no longer.',
  422: 'A field was refused.',
  429: 'Too many requests: wait for as long as `Retry-After` says.',
  500: 'A fault on our side.',
};

function errorResponse(status: ErrorStatus, rest: RestOperation, schemas: Record<string, Schema>) {
  return {
    description: MEANINGS[status],
    headers: status === 429 ? headerReferences('Retry-After') : headerReferences(),
    content: jsonContent(ERROR_SCHEMA_NAMES[rest.bodies[status]], schemas),
  };
}

/** Puts our own marks into the words of the standard: a part sent as text is a string, an example one of `examples`. */
function inStandardWords(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(inStandardWords);
  if (typeof node !== 'object' || node === null) return node;
  if (SENT_AS_TEXT in node) {
    const { [SENT_AS_TEXT]: description, ...typed } = node;
    const contentSchema = inStandardWords(typed);
    return { type: 'string', description, contentMediaType: 'application/json', contentSchema };
  }

  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => {
      if (key !== 'example') return [key, inStandardWords(value)];
      // The content of a body keeps its example; only in schemas the word is an old one.
      return 'schema' in node ? [key, value] : ['examples', [value]];
    }),
  );
}
