import { isDeepStrictEqual } from 'node:util';
import type { OpenApiDocument, Operation } from '../api/openapi/document.ts';
import type { Schema } from '../api/openapi/example.ts';
import { BREAKING, NEW, type Words } from './changeWords.ts';
import { narrowings, type Resolve } from './narrowing.ts';

/** A line for each change: the path, the place in it, and what changed. */
type DocumentChanges = { breaking: string[]; additions: string[] };

export function documentChanges(released: OpenApiDocument, current: OpenApiDocument): DocumentChanges {
  const breaking = breakingChanges(released, current);
  const isBreaking = (addition: string) => breaking.includes(addition.replace(/ is new$/, ' is required now'));
  return { breaking, additions: additions(released, current).filter((addition) => !isBreaking(addition)) };
}

/** What in the current document can break a caller of the released one. */
export const breakingChanges = (released: OpenApiDocument, current: OpenApiDocument) =>
  changesBetween(locate(released), locate(current), BREAKING);

/** What a caller of the released document does not know yet: all that would break a caller of the new one if it were undone. */
const additions = (released: OpenApiDocument, current: OpenApiDocument) =>
  changesBetween(locate(current), locate(released), NEW);

/** A document, and how its references are resolved. */
type Located = { document: OpenApiDocument; resolve: Resolve };

const locate = (document: OpenApiDocument): Located => ({
  document,
  resolve: (part) => {
    if (part.$ref === undefined) return part;
    const names = part.$ref.split('/').slice(1);
    const target = names.reduce<unknown>((node, name) => (node as Schema | undefined)?.[unescaped(name)], document);
    if (target === undefined) throw new Error(`${part.$ref} is not in the document.`);
    return target as Schema;
  },
});

/** `~1` is a slash in a JSON pointer. */
const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~');

/** What of the first document is missing or narrower in the second. */
function changesBetween(one: Located, other: Located, words: Words): string[] {
  const known = operationsOf(other);
  const operations = [...operationsOf(one)].flatMap(([name, before]) => {
    const after = known.get(name);
    return after
      ? operationChanges(before, after, one, other, words).map((change) => `${name} ${change}`)
      : say(name, words.gone);
  });
  return [
    ...addressChanges(one, other, words),
    ...schemeChanges(one, other, words),
    ...headerChanges(one, other, words),
    ...operations,
    ...webhookChanges(one, other, words),
  ];
}

const say = (place: string, word: string) => [`${place} ${word}`];

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** By their path, with the method in front unless it is POST, as every operation of ours is. */
function operationsOf({ document, resolve }: Located): Map<string, Operation> {
  const entries = Object.entries(document.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(resolve(item as Schema))
      .filter(([method]) => METHODS.includes(method))
      .map(([method, operation]): [string, Operation] => [
        method === 'post' ? path : `${method.toUpperCase()} ${path}`,
        operation as Operation,
      ]),
  );
  return new Map(entries);
}

function addressChanges(one: Located, other: Located, words: Words): string[] {
  const addresses = ({ document: { servers = [] } }: Located) => (servers as { url: string }[]).map(({ url }) => url);
  const known = addresses(other);
  return addresses(one).flatMap((url) => (known.includes(url) ? [] : say(`the address ${url}`, words.gone)));
}

/** How a credential is sent. One that an operation no longer accepts is reported with the operation. */
function schemeChanges(one: Located, other: Located, words: Words): string[] {
  const schemesOf = ({ document: { components } }: Located) =>
    ((components as { securitySchemes?: object })?.securitySchemes ?? {}) as Record<string, Schema | undefined>;
  return Object.entries(schemesOf(one)).flatMap(([name, before]) => {
    const [old, now] = [before, schemesOf(other)[name]].map((scheme) => scheme && sendingOf(scheme));
    if (!now || old === now) return [];
    return words.schemeChanged(old!, now).map((change) => `security scheme ${name} ${change}`);
  });
}

/** Without what only describes it. */
function sendingOf({ description: _, bearerFormat: __, ...scheme }: Schema): string {
  return Object.values(scheme)
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
    .join(' ');
}

type Header = { $ref?: string; required?: boolean; schema?: Schema };

/** Changes of headers that answers share; a missing header is reported with the response. */
function headerChanges(one: Located, other: Located, words: Words): string[] {
  const headersOf = ({ document: { components } }: Located) =>
    (components?.headers ?? {}) as Record<string, Header | undefined>;
  return Object.entries(headersOf(one)).flatMap(([name, before]) => {
    const after = headersOf(other)[name];
    return before && after ? oneHeaderChanges(before, after, `header ${name}`, one, other, words) : [];
  });
}

function oneHeaderChanges(before: Header, after: Header, place: string, one: Located, other: Located, words: Words) {
  return [
    ...(certainty(after) < certainty(before) ? say(place, words.answered.uncertain) : []),
    ...answeredChanges(before.schema ?? {}, after.schema ?? {}, place, one, other, words),
  ];
}

/** Only `false` says that a header may be absent: our documents say nothing of headers that are always there. */
const certainty = ({ required }: Header) => (required === undefined ? 1 : required ? 2 : 0);

/** What webhooks send: a receiver depends on it as a caller does on an answer. */
function webhookChanges(one: Located, other: Located, words: Words): string[] {
  const sentBy = ({ document: { webhooks = {} } }: Located) => webhooks as Record<string, { post?: Operation }>;
  const schemaOf = (webhook: { post?: Operation }) => schemaIn(webhook.post?.requestBody?.content);
  const known = sentBy(other);
  const changes = Object.entries(sentBy(one)).map(([type, before]) => {
    const after = known[type];
    if (!after) return { type, lines: [` ${words.gone}`] };
    return { type, lines: answeredChanges(schemaOf(before), schemaOf(after), '', one, other, words) };
  });
  // Events share a model: a change of it is one line.
  const counts = Map.groupBy(
    changes.flatMap(({ lines }) => lines),
    (line) => line,
  );
  const isShared = (line: string) => changes.length > 2 && counts.get(line)!.length > changes.length / 2;
  return [
    ...[...counts.keys()].filter(isShared).map((line) => `webhooks of events${line}`),
    ...changes.flatMap(({ type, lines }) =>
      lines.filter((line) => !isShared(line)).map((line) => `webhook ${type}${line}`),
    ),
  ];
}

function operationChanges(before: Operation, after: Operation, one: Located, other: Located, words: Words): string[] {
  return [
    ...nameChanges(before, after, words),
    ...deprecationChanges(before, after, words),
    ...securityChanges(before, after, one, other, words),
    ...parameterChanges(before, after, one, other, words),
    ...requestChanges(before, after, one, other, words),
    ...Object.keys(before.responses).flatMap((status) => responseChanges(status, before, after, one, other, words)),
  ];
}

function nameChanges({ operationId: before }: Operation, { operationId: after }: Operation, words: Words): string[] {
  return before === after ? [] : words.renamed(before, after);
}

function deprecationChanges(before: object, after: object, words: Words): string[] {
  const [old, now] = [before, after].map((part) => Boolean((part as { deprecated?: boolean }).deprecated));
  return old === now ? [] : words.deprecated(old!, now!);
}

type Requirement = Record<string, string[]>;

/** Whether a token is needed, and which scopes. Each alternative of the first operation must still be enough. */
function securityChanges(before: Operation, after: Operation, one: Located, other: Located, words: Words): string[] {
  const alternativesOf = ({ security }: Operation, { document }: Located) => {
    const listed = (security ?? document.security ?? []) as Requirement[];
    return listed.length === 0 ? [{}] : listed;
  };
  const now = alternativesOf(after, other);
  const changes = alternativesOf(before, one).flatMap((sent) => {
    const missing = now.flatMap((needed) => missingScopes(sent, needed));
    const [fewest] = missing.toSorted((some, others) => some.length - others.length);
    if (fewest) return fewest.map((scope) => words.needsScope(scope));
    const schemes = Object.keys(sent);
    return schemes.length === 0 ? [words.needsToken] : say(schemes.join(' and '), words.schemeGone);
  });
  return [...new Set(changes)];
}

/** The scopes that a caller with these schemes lacks for an alternative; none of it if the alternative needs another scheme. */
function missingScopes(sent: Requirement, needed: Requirement): string[][] {
  if (Object.keys(needed).some((scheme) => !(scheme in sent))) return [];
  return [
    Object.entries(needed).flatMap(([scheme, scopes]) => scopes.filter((scope) => !sent[scheme]!.includes(scope))),
  ];
}

type Parameter = NonNullable<Operation['parameters']>[0];

function parameterChanges(before: Operation, after: Operation, one: Located, other: Located, words: Words): string[] {
  const parametersOf = ({ parameters = [] }: Operation, { resolve }: Located) =>
    parameters.map((parameter) => resolve(parameter as Schema) as Parameter);
  const [old, now] = [parametersOf(before, one), parametersOf(after, other)];
  const isSame = (parameter: Parameter) => (known: Parameter) =>
    parameter.name === known.name && parameter.in === known.in;
  const added = now.filter((parameter) => parameter.required && !old.some(isSame(parameter)));
  return [
    ...added.flatMap(({ name }) => say(`parameter ${name}`, words.required)),
    ...old.flatMap((parameter) => {
      const place = `parameter ${parameter.name}`;
      const kept = now.find(isSame(parameter));
      if (!kept) return say(place, words.gone);
      return [
        ...(kept.required && !parameter.required ? say(place, words.required) : []),
        ...deprecationChanges(parameter, kept, words).flatMap((change) => say(place, change)),
        ...takenChanges(asSent(parameter), asSent(kept), place, one, other, words),
      ];
    }),
  ];
}

/** A header is text: an id as a number and as its digits are the same header. */
function asSent({ in: place, schema }: Parameter): Schema {
  const isId = place === 'header' && isDeepStrictEqual(schema, { type: 'integer', minimum: 1 });
  return isId ? { type: 'string', pattern: '^[1-9][0-9]*$' } : (schema as Schema);
}

const NOTHING: Schema = { type: 'object' };
const schemaIn = (content: NonNullable<Operation['requestBody']>['content'] | undefined) =>
  content?.['application/json']?.schema ?? NOTHING;

function requestChanges(before: Operation, after: Operation, one: Located, other: Located, words: Words): string[] {
  const { requestBody: old } = before;
  const { requestBody: now } = after;
  if (old && !now) return say('request', words.gone);
  return [
    ...(now?.required && !old?.required ? say('request', words.required) : []),
    ...takenChanges(schemaIn(old?.content), schemaIn(now?.content), 'request', one, other, words),
  ];
}

function responseChanges(
  status: string,
  before: Operation,
  after: Operation,
  one: Located,
  other: Located,
  words: Words,
) {
  const old = before.responses[status]!;
  const now = after.responses[status];
  if (!now) return say(status, words.gone);
  return [
    ...Object.entries((old.headers ?? {}) as Record<string, Header>).flatMap(([name, header]) => {
      const kept = (now.headers as Record<string, Header> | undefined)?.[name];
      const place = `${status} header ${name}`;
      if (!kept) return say(place, words.gone);
      // Shared headers are compared once.
      if (header.$ref !== undefined && header.$ref === kept.$ref) return [];
      const [before, after] = [one.resolve(header as Schema), other.resolve(kept as Schema)];
      return oneHeaderChanges(before as Header, after as Header, place, one, other, words);
    }),
    ...answeredChanges(schemaIn(old.content), schemaIn(now.content), status, one, other, words),
  ];
}

type CompareSchemas = (old: Schema, now: Schema, place: string, one: Located, other: Located, words: Words) => string[];

/** What was valid must stay valid, so the old schema must fit into the new one. */
const takenChanges: CompareSchemas = (old, now, place, one, other, words) =>
  narrowings({ schema: old, resolve: one.resolve }, { schema: now, resolve: other.resolve }, place, words.taken);

/** Answers must stay as documented, so the new schema must fit into the old one. */
const answeredChanges: CompareSchemas = (old, now, place, one, other, words) =>
  narrowings({ schema: now, resolve: other.resolve }, { schema: old, resolve: one.resolve }, place, words.answered);
