import type { OpenApiDocument, Operation } from '../../server/api/openapi/document.ts';
import type { Schema } from '../../server/api/openapi/example.ts';
import { narrowings, type Resolve } from './narrowing.ts';

/** What in the current document can break a caller of the released one: a line for each change. */
export function breakingChanges(released: OpenApiDocument, current: OpenApiDocument): string[] {
  const resolvers = { before: resolverOf(released), after: resolverOf(current) };
  const operations = Object.entries(released.paths).flatMap(([path, { post: before }]) => {
    const after = current.paths[path]?.post;
    if (!after) return [`${path} is gone`];
    return operationChanges(before, after, resolvers).map((change) => `${path} ${change}`);
  });
  return [...addressChanges(released, current), ...headerChanges(released, current, resolvers), ...operations];
}

function addressChanges(released: OpenApiDocument, current: OpenApiDocument): string[] {
  const addresses = ({ servers = [] }: OpenApiDocument) => (servers as { url: string }[]).map(({ url }) => url);
  const lost = addresses(released).filter((url) => !addresses(current).includes(url));
  return lost.map((url) => `the address ${url} is gone`);
}

/** Changes of header values; a missing header is reported with the response. */
function headerChanges(released: OpenApiDocument, current: OpenApiDocument, resolvers: Resolvers): string[] {
  const schemasOf = ({ components: { headers = {} } }: OpenApiDocument) =>
    headers as Record<string, { schema: Schema } | undefined>;
  return Object.entries(schemasOf(released)).flatMap(([name, before]) => {
    const after = schemasOf(current)[name];
    return before && after ? answered(before.schema, after.schema, `header ${name}`, resolvers) : [];
  });
}

type Resolvers = { before: Resolve; after: Resolve };

const resolverOf =
  ({ components }: OpenApiDocument): Resolve =>
  (schema) =>
    schema.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)!]!;

function operationChanges(before: Operation, after: Operation, resolvers: Resolvers): string[] {
  const isOpen = ({ security }: Operation) => security?.length === 0;
  return [
    ...(before.operationId === after.operationId ? [] : [`is called ${after.operationId}, not ${before.operationId}`]),
    ...(isOpen(before) && !isOpen(after) ? ['needs a token now'] : []),
    ...parameterChanges(before, after, resolvers),
    ...requestChanges(before, after, resolvers),
    ...Object.keys(before.responses).flatMap((status) => responseChanges(status, before, after, resolvers)),
  ];
}

function parameterChanges(before: Operation, after: Operation, resolvers: Resolvers): string[] {
  const { parameters: old = [] } = before;
  const { parameters: now = [] } = after;
  const isSame = (one: (typeof old)[0]) => (other: (typeof old)[0]) => one.name === other.name && one.in === other.in;
  const added = now.filter((parameter) => parameter.required && !old.some(isSame(parameter)));
  return [
    ...added.map(({ name }) => `parameter ${name} is required now`),
    ...old.flatMap((parameter) => {
      const kept = now.find(isSame(parameter));
      if (!kept) return [`parameter ${parameter.name} is gone`];
      const becameRequired = kept.required && !parameter.required;
      return [
        ...(becameRequired ? [`parameter ${parameter.name} is required now`] : []),
        ...taken(parameter.schema as Schema, kept.schema as Schema, `parameter ${parameter.name}`, resolvers),
      ];
    }),
  ];
}

const NOTHING: Schema = { type: 'object' };

function requestChanges({ requestBody: before }: Operation, { requestBody: after }: Operation, resolvers: Resolvers) {
  if (before && !after) return ['request is gone'];
  const schemaOf = (body: typeof before) => body?.content['application/json'].schema ?? NOTHING;
  return [
    ...(after?.required && !before?.required ? ['request is required now'] : []),
    ...taken(schemaOf(before), schemaOf(after), 'request', resolvers),
  ];
}

function responseChanges(status: string, before: Operation, after: Operation, resolvers: Resolvers): string[] {
  const old = before.responses[status]!;
  const now = after.responses[status];
  if (!now) return [`${status} is gone`];
  const lostHeaders = Object.keys(old.headers ?? {}).filter((name) => !(name in (now.headers ?? {})));
  const schemas = [old, now].map(({ content }) => content?.['application/json'].schema ?? NOTHING) as [Schema, Schema];
  return [...lostHeaders.map((name) => `${status} header ${name} is gone`), ...answered(...schemas, status, resolvers)];
}

/** Requests: what was valid must stay valid, so the old schema must fit into the new one. */
const taken = (before: Schema, after: Schema, place: string, resolvers: Resolvers) =>
  narrowings({ schema: before, resolve: resolvers.before }, { schema: after, resolve: resolvers.after }, place, {
    absent: undefined,
    uncertain: 'is required now',
    unknown: 'is gone',
    outside: (value) => `no longer takes ${value}`,
  });

/** Answers: they must stay as documented, so the new schema must fit into the old one. */
const answered = (before: Schema, after: Schema, place: string, resolvers: Resolvers) =>
  narrowings({ schema: after, resolve: resolvers.after }, { schema: before, resolve: resolvers.before }, place, {
    absent: 'is gone',
    uncertain: 'is not always there any more',
    unknown: undefined,
    outside: (value) => `may be ${value} now`,
  });
