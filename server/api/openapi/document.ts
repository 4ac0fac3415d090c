import { generateOpenApiDocument } from 'trpc-to-openapi';
import { EMPTY_IS_NULL, SENT_AS_TEXT } from '../../../shared/fields.ts';
import { requestExamples } from '../../../shared/requestExample.ts';
import { HAS_ONE_FIELD } from '../../../shared/rows.ts';
import { ACCESS } from '../../domain/access/access.ts';
import { VERSION } from '../../runtime/version.ts';
import { type Deprecation, deprecationInWords } from '../deprecation.ts';
import { findProcedure, type RestProcedure, restProcedures } from '../procedures.ts';
import { COMMON_REASONS, specificReasons } from '../reasons.ts';
import type { ErrorStatus, RestOperation } from '../restOperation.ts';
import { appRouter } from '../routers/app.ts';
import { errorExample } from './errorExamples.ts';
import { EMPTY_LIST, ERROR_SCHEMAS, MEANINGS, objectOf } from './errors.ts';
import { exampleOf, type Schema } from './example.ts';
import {
  DEPRECATION_HEADERS,
  HEADERS,
  headerReferences,
  KEY_HEADER,
  PROJECT_HEADER,
  VERSION_HEADER,
} from './headers.ts';
import { SECURITY_SCHEMES, securityOf } from './security.ts';
import type { Content, OpenApiDocument, Operation } from './shape.ts';
import { shareResponses } from './sharedResponses.ts';
import { addStream } from './stream.ts';
import { WEBHOOK_HEADERS, webhooksOf } from './webhooks.ts';

export type { OpenApiDocument, Operation } from './shape.ts';
export { responsesOf } from './sharedResponses.ts';

/** The operations of a document, without the stream of events. */
export const operationsOf = ({ paths }: Pick<OpenApiDocument, 'paths'>) =>
  Object.entries(paths).flatMap(([path, { post, get }]) => (get ? [] : { path, ...post }));

/**
 * The OpenAPI document: generated from the routers, with the additions of the REST facade. Without a public address its paths
 * are relative to its own URL.
 */
export function openApiDocument(publicUrl = ''): OpenApiDocument {
  const document = generateOpenApiDocument(appRouter, {
    title: 'Deckhand',
    version: VERSION,
    description: INTRODUCTION,
    baseUrl: `${publicUrl}/api`,
    securitySchemes: SECURITY_SCHEMES,
  }) as unknown as OpenApiDocument;

  document.info.license = { name: 'Proprietary' };
  const [specified, others] = [true, false].map((isSpecified) => [
    ...new Set(restProcedures.filter(({ rest }) => rest.isSpecified === isSpecified).map(({ rest }) => rest.tag)),
  ]) as [string[], string[]];
  document.tags = [
    ...specified.map((name) => ({ name, description: AREAS[name]! })),
    ...others.map((name) => ({ name, description: `${name}, beyond the specified operations.` })),
  ];
  document['x-tagGroups'] = [
    { name: 'Specified', tags: specified },
    { name: 'Beyond the specification', tags: others },
  ];
  document['x-error-reasons'] = COMMON_REASONS;
  const isAnyDeprecated = restProcedures.some(({ deprecated }) => deprecated);
  document.components.headers = { ...HEADERS, ...(isAnyDeprecated && DEPRECATION_HEADERS) };
  for (const procedure of restProcedures) completeOperation(document, procedure);
  document.components.parameters = WEBHOOK_HEADERS;
  document.webhooks = webhooksOf(document.components.schemas);
  const standard = toStandardKeywords(document) as OpenApiDocument;
  for (const procedure of restProcedures) {
    const request = standard.components.schemas[`${schemaNameOf(procedure)}Request`];
    if (request && !procedure.rest.isSpecified) refuseOtherFields(request);
  }
  addStream(standard);
  shareResponses(standard);
  return standard;
}

const operationIdOf = ({ name }: RestProcedure) => name.replace(/\.(.)/g, (_, letter: string) => letter.toUpperCase());

function schemaNameOf(procedure: RestProcedure): string {
  const id = operationIdOf(procedure);
  return id.charAt(0).toUpperCase() + id.slice(1);
}

/** Unknown fields of requests are a 422, in the objects inside of them, too. */
function refuseOtherFields(schema: Schema): void {
  const { properties, items, anyOf = [] } = schema;
  if (properties) schema.additionalProperties = false;
  for (const part of [...Object.values(properties ?? {}), ...(items ? [items] : []), ...anyOf]) refuseOtherFields(part);
}

const INTRODUCTION = `Task boards with master templates for many projects.

Every operation is a POST with a JSON body. Sign in with \`/v1/authenticate\` and send \`data.token\` as
\`Authorization: Bearer …\` with every other call; programs send an API key instead (\`keys/create\`). A call acts in the project of the
row that it names, else in the user's default project; \`X-Project-Id\` selects another. With an \`Idempotency-Key\`, a call that
changes something can be repeated safely.

${restProcedures.filter(({ rest }) => rest.isSpecified).length} operations are fixed by the specification and never change. All others (\`x-beyond-specification\`) follow the same rules.

The specified operations ignore unknown fields in requests. All others refuse them with a 422 that names the nearest known field.
New fields may be added to answers later. An unknown path is a 404, another method than POST a 405, both with the schema \`Refusal\`.`;

/** The areas of the specified operations. */
const AREAS: Record<string, string> = {
  Authentication: 'Signing in.',
  Operations: 'Boards, their groups and cards, comments, tags and tours of a project.',
  'Master templates': 'Templates that superadmins manage and copy to projects.',
  Platform: 'The subscription of a platform.',
  Websites: 'Themes and their versions.',
};

const ON_A_CHANGED_ROW = ' With `If-Match`, it answers 412 if the row has changed since.';

function completeOperation({ paths, components: { schemas } }: OpenApiDocument, procedure: RestProcedure) {
  const { name, type, access, rest, input, isKeyed, isVersioned, isConditional, needsInput } = procedure;
  const operation = paths[rest.path]!.post;
  const schemaName = schemaNameOf(procedure);
  operation.operationId = operationIdOf(procedure);
  operation.security = securityOf(procedure);
  operation['x-client-call'] = `${name}.${type === 'query' ? 'query' : 'mutate'}`;
  operation.description = `${procedure.description}${isConditional ? ON_A_CHANGED_ROW : ''} ${ACCESS[access].callers}`;
  if (!rest.isSpecified) operation['x-beyond-specification'] = true;
  if (procedure.isDestructive) operation['x-destructive'] = true;
  operation['x-error-reasons'] = [...new Set(specificReasons(procedure))];
  if (procedure.deprecated) markDeprecated(operation, procedure.deprecated);

  const { requestBody, responses } = operation;
  const sent = requestBody?.content['application/json'].schema;
  const answered = responses[200]!.content!['application/json'].schema;
  if (isConditional) {
    removeField(sent!, 'if_version');
  }
  if (isVersioned) removeField(answered, 'version');
  if (input && sent) {
    schemas[`${schemaName}Request`] = sent;
    requestBody.required = needsInput;
    requestBody.content = jsonContent(`${schemaName}Request`, schemas, requestExamples.get(input)?.example);
  }

  const parameters = rest.query.map((field) => {
    const { description, [EMPTY_IS_NULL]: isEmptyNull, ...schema } = sent!.properties![field]!;
    const noted = isEmptyNull === true && { [EMPTY_IS_NULL]: true };
    return { name: field, in: 'query', required: false, description, schema, ...noted };
  });
  operation.parameters = [
    ...parameters,
    ...('role' in ACCESS[access] ? [PROJECT_HEADER] : []),
    ...(isKeyed ? [KEY_HEADER] : []),
    ...(isConditional ? [VERSION_HEADER] : []),
  ];

  schemas[`${schemaName}Response`] = envelope(answered, rest);
  operation.responses = {
    [rest.status]: {
      description: rest.message,
      headers: headerReferences(
        ...(isVersioned ? (['ETag'] as const) : []),
        ...(isKeyed ? (['Idempotent-Replayed'] as const) : []),
        ...endHeaders(procedure),
      ),
      content: jsonContent(`${schemaName}Response`, schemas),
    },
    ...Object.fromEntries(rest.errors.map((status) => [status, errorResponse(status, procedure, schemas)])),
  };
}

function markDeprecated(operation: Operation, deprecated: Deprecation): void {
  const successor = deprecated.use === undefined ? undefined : findProcedure(deprecated.use);
  operation.deprecated = true;
  operation.description = `Deprecated ${deprecationInWords(deprecated, successor?.rest?.path ?? successor?.name)} ${operation.description}`;
}

const endHeaders = ({ deprecated }: RestProcedure) =>
  deprecated ? (Object.keys(DEPRECATION_HEADERS) as (keyof typeof DEPRECATION_HEADERS)[]) : [];

/** Removes a field that REST sends as a header. */
function removeField({ properties, required = [] }: Schema, name: string): void {
  delete properties![name];
  const at = required.indexOf(name);
  if (at >= 0) required.splice(at, 1);
}

const jsonContent = (schemaName: string, schemas: Record<string, Schema>, example?: unknown): Content => {
  const schema = { $ref: `#/components/schemas/${schemaName}` };
  return { 'application/json': { schema, example: example ?? exampleOf(schema, schemas) } };
};

/** The envelope of every success; an operation without a result sends an empty list. */
function envelope(data: Schema, rest: RestOperation): Schema {
  const returnsNothing = Object.keys(data).length === 0;
  return objectOf('A success.', {
    error: { type: 'boolean', const: false, description: 'Whether it failed.' },
    message: { type: 'string', description: 'What happened, for people.', example: rest.message },
    data: returnsNothing ? EMPTY_LIST : { description: 'What the operation answers.', ...data },
    ...Object.fromEntries(Object.keys(rest.envelope).map((field) => [field, EMPTY_LIST])),
  });
}

function errorResponse(status: ErrorStatus, procedure: RestProcedure, schemas: Record<string, Schema>) {
  const { name, schema } = ERROR_SCHEMAS[procedure.rest.bodies[status]];
  schemas[name] = schema;
  return {
    description: MEANINGS[status],
    headers: headerReferences(
      'X-Error-Reason',
      ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
      ...(status === 429 ? (['Retry-After'] as const) : []),
      ...endHeaders(procedure),
    ),
    content: jsonContent(name, schemas, errorExample(status, procedure)),
  };
}

/**
 * Converts our own keywords to standard ones: a field sent as text becomes a string, `example` becomes `examples`, and what takes
 * an empty text as null says so. Removes `additionalProperties: false` from responses: callers must accept new fields.
 */
function toStandardKeywords(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(toStandardKeywords);
  if (typeof node !== 'object' || node === null) return node;
  if (SENT_AS_TEXT in node) {
    const { [SENT_AS_TEXT]: description, ...typed } = node;
    const contentSchema = toStandardKeywords(typed);
    return { type: 'string', description, contentMediaType: 'application/json', contentSchema };
  }
  if (EMPTY_IS_NULL in node) {
    const { [EMPTY_IS_NULL]: isSo, description, ...field } = node as Schema;
    return toStandardKeywords({ ...field, description: `${description} Empty text is null.` });
  }

  return Object.fromEntries(
    Object.entries(node).flatMap(([key, value]) => {
      if (key === HAS_ONE_FIELD || (key === 'additionalProperties' && value === false)) return [];
      if (key !== 'example') return [[key, toStandardKeywords(value)]];
      // `example` stays in the content of a body; it is deprecated only in schemas.
      return 'schema' in node ? [[key, value]] : [['examples', [value]]];
    }),
  );
}
