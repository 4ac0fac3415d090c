import { generateOpenApiDocument } from 'trpc-to-openapi';
import packageJson from '../../package.json' with { type: 'json' };
import { SENT_AS_TEXT } from '../../shared/fields.ts';
import { ACCESS } from '../access.ts';
import { type Procedure, restProcedures } from '../procedures.ts';
import type { Area, ErrorStatus, RestOperation } from '../restOperation.ts';
import { appRouter } from '../routers/app.ts';
import { EMPTY_LIST, ERROR_SCHEMAS, MEANINGS, objectOf } from './errors.ts';
import { exampleOf, type Schema } from './example.ts';

type Content = { 'application/json': { schema: Schema; example?: unknown } };
export type Operation = {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security?: object[];
  parameters?: { name: string; in: string; description?: string; [key: string]: unknown }[];
  requestBody?: { required?: boolean; content: Content };
  responses: Record<string, { description: string; headers?: object; content?: Content }>;
};
export type OpenApiDocument = {
  openapi: string;
  info: { title: string; version: string; [key: string]: unknown };
  tags: { name: string; description: string }[];
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
  }) as unknown as OpenApiDocument;

  document.info.license = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' };
  const areas = new Set(restProcedures.map(({ rest }) => rest.area));
  document.tags = [...areas].map((name) => ({ name, description: AREAS[name] }));
  document.components.headers = HEADERS;
  for (const procedure of restProcedures) completeOperation(document, procedure);
  return inStandardWords(document) as OpenApiDocument;
}

const INTRODUCTION = `Task boards with master templates for many projects.

Every operation is a POST with a JSON body. Sign in with \`/v1/authenticate\` and send \`data.token\` as
\`Authorization: Bearer …\` with every other call. \`X-Project-Id\` chooses the project to act in.

Fields that are not described here are ignored in requests, and may be added to answers later. A path that is not
described is answered with 404, another method than POST with 405, both in the shape of \`Error\`.`;

const AREAS: Record<Area, string> = {
  Authentication: 'Signing in.',
  Operations: 'Boards, their groups and cards, comments, tags and tours of a project.',
  'Master templates': 'Templates that superadmins keep and bring to projects.',
  Platform: 'The subscription of a platform.',
  Websites: 'Themes and their versions.',
};

function completeOperation(
  { paths, components: { schemas } }: OpenApiDocument,
  procedure: Procedure & { rest: RestOperation },
) {
  const { name, access, rest } = procedure;
  const operation = paths[rest.path]!.post;
  const operationId = name.replace(/\.(.)/g, (_, letter: string) => letter.toUpperCase());
  const schemaName = operationId.charAt(0).toUpperCase() + operationId.slice(1);
  operation.operationId = operationId;
  operation.security ??= [];

  const { requestBody, responses } = operation;
  const sent = requestBody?.content['application/json'].schema;
  if (sent) {
    schemas[`${schemaName}Request`] = sent;
    requestBody.content = jsonContent(`${schemaName}Request`, schemas);
  }

  const parameters = rest.query.map((field) => {
    const { description, ...schema } = sent!.properties![field]!;
    return { name: field, in: 'query', required: false, description, schema };
  });
  operation.parameters = 'role' in ACCESS[access] ? [...parameters, PROJECT_HEADER] : parameters;

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
  return objectOf('A success.', {
    error: { type: 'boolean', const: false, description: 'Whether it failed.' },
    message: { type: 'string', description: 'What happened, for people.', example: rest.message },
    data: returnsNothing ? EMPTY_LIST : { description: 'What the operation answers.', ...data },
    ...Object.fromEntries(Object.keys(rest.envelope).map((field) => [field, EMPTY_LIST])),
  });
}

function errorResponse(status: ErrorStatus, rest: RestOperation, schemas: Record<string, Schema>) {
  const { name, schema } = ERROR_SCHEMAS[rest.bodies[status]];
  schemas[name] = schema;
  return {
    description: MEANINGS[status],
    headers: status === 429 ? headerReferences('Retry-After') : headerReferences(),
    content: jsonContent(name, schemas),
  };
}

/**
 * Puts our own marks into the words of the standard: a part sent as text is a string, an example one of `examples`. That
 * nothing else is answered holds today, but is no promise: a caller who relied on it would break with every new field.
 */
function inStandardWords(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(inStandardWords);
  if (typeof node !== 'object' || node === null) return node;
  if (SENT_AS_TEXT in node) {
    const { [SENT_AS_TEXT]: description, ...typed } = node;
    const contentSchema = inStandardWords(typed);
    return { type: 'string', description, contentMediaType: 'application/json', contentSchema };
  }

  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) => {
      if (key === 'additionalProperties' && value === false) return [];
      if (key !== 'example') return [[key, inStandardWords(value)]];
      // The content of a body keeps its example; only in schemas the word is an old one.
      return 'schema' in node ? [[key, value]] : [['examples', [value]]];
    }),
  );
}
