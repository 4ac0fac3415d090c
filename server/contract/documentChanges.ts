import { isDeepStrictEqual } from 'node:util';
import type { OpenApiDocument, Operation } from '../api/openapi/document.ts';
import type { Schema } from '../api/openapi/example.ts';
import { BREAKING, NEW, type Words } from './changeWords.ts';
import { dereferenced } from './dereferenced.ts';
import { narrowings } from './narrowing.ts';

/** A line for each change: the path, the place in it, and what changed. */
type DocumentChanges = { breaking: string[]; additions: string[] };

export function documentChanges(released: OpenApiDocument, current: OpenApiDocument): DocumentChanges {
  const [old, now] = [dereferenced(released), dereferenced(current)];
  const breaking = changesBetween(old, now, BREAKING);
  // What a caller of the released document does not know yet: all that would break a caller of the new one if it were undone.
  const additions = changesBetween(now, old, NEW);
  const isBreaking = (addition: string) => breaking.includes(addition.replace(/ is new$/, ' is required now'));
  return { breaking, additions: additions.filter((addition) => !isBreaking(addition)) };
}

/** What in the current document can break a caller of the released one. */
export const breakingChanges = (released: OpenApiDocument, current: OpenApiDocument) =>
  changesBetween(dereferenced(released), dereferenced(current), BREAKING);

/** What of the first document is missing or narrower in the second. */
function changesBetween(one: OpenApiDocument, other: OpenApiDocument, words: Words): string[] {
  const known = operationsOf(other);
  const operations = [...operationsOf(one)].flatMap(([name, before]) => {
    const after = known.get(name);
    return after ? within(name, operationChanges(before, after, words)) : say(name, words.gone);
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
const within = (place: string, changes: string[]) => changes.map((change) => `${place} ${change}`);

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** An operation, with the names of the headers that answers share. */
type Located = Operation & { sharedHeaders: Map<Header, string> };

/** By their path, with the method in front unless it is POST, as every operation of ours is. */
function operationsOf(document: OpenApiDocument): Map<string, Located> {
  const { paths = {}, security = [] } = document;
  const sharedHeaders = new Map(Object.entries(headersOf(document)).map(([name, header]) => [header, name]));
  return new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => METHODS.includes(method))
        .map(([method, operation]): [string, Located] => [
          method === 'post' ? path : `${method.toUpperCase()} ${path}`,
          { security, ...operation, sharedHeaders } as Located,
        ]),
    ),
  );
}

function addressChanges(one: OpenApiDocument, other: OpenApiDocument, words: Words): string[] {
  const addresses = ({ servers = [] }: OpenApiDocument) => (servers as { url: string }[]).map(({ url }) => url);
  const known = addresses(other);
  return addresses(one).flatMap((url) => (known.includes(url) ? [] : say(`the address ${url}`, words.gone)));
}

/** How a credential is sent. One that an operation no longer accepts is reported with the operation. */
function schemeChanges(one: OpenApiDocument, other: OpenApiDocument, words: Words): string[] {
  const schemesOf = ({ components }: OpenApiDocument) =>
    (components?.securitySchemes ?? {}) as Record<string, Schema | undefined>;
  return Object.entries(schemesOf(one)).flatMap(([name, before]) => {
    const [old, now] = [before, schemesOf(other)[name]].map((scheme) => scheme && sendingOf(scheme));
    if (!now || old === now) return [];
    return within(`security scheme ${name}`, words.schemeChanged(old!, now));
  });
}

/** Without what only describes it. */
function sendingOf({ description: _, bearerFormat: __, ...scheme }: Schema): string {
  return Object.values(scheme)
    .map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))
    .join(' ');
}

type Header = { required?: boolean; schema?: Schema };

const headersOf = ({ components }: OpenApiDocument) => (components?.headers ?? {}) as Record<string, Header>;

/** Changes of headers that answers share; a missing header is reported with the response. */
function headerChanges(one: OpenApiDocument, other: OpenApiDocument, words: Words): string[] {
  return Object.entries(headersOf(one)).flatMap(([name, before]) => {
    const after = headersOf(other)[name];
    return after ? oneHeaderChanges(before, after, `header ${name}`, words) : [];
  });
}

function oneHeaderChanges(before: Header, after: Header, place: string, words: Words): string[] {
  return [
    ...(certainty(after) < certainty(before) ? say(place, words.answered.uncertain) : []),
    ...answeredChanges(before.schema ?? {}, after.schema ?? {}, place, words),
  ];
}

/** Only `false` says that a header may be absent: our documents say nothing of headers that are always there. */
const certainty = ({ required }: Header) => (required === undefined ? 1 : required ? 2 : 0);

/** What webhooks send: a receiver depends on it as a caller does on an answer. */
function webhookChanges(one: OpenApiDocument, other: OpenApiDocument, words: Words): string[] {
  const sentBy = ({ webhooks = {} }: OpenApiDocument) => webhooks as Record<string, { post?: Operation }>;
  const headersSent = ({ post }: { post?: Operation }) => (post?.parameters ?? []) as (Header & { name: string })[];
  const bodySchema = (webhook: { post?: Operation }) => schemaIn(webhook.post?.requestBody?.content);
  const known = sentBy(other);
  const changes = Object.entries(sentBy(one)).map(([type, before]) => {
    const after = known[type];
    if (!after) return { type, lines: [` ${words.gone}`] };
    const headers = headersSent(before).flatMap((header) => {
      const kept = headersSent(after).find(({ name }) => name === header.name);
      const place = ` header ${header.name}`;
      return kept ? oneHeaderChanges(header, kept, place, words) : say(place, words.gone);
    });
    return { type, lines: [...headers, ...answeredChanges(bodySchema(before), bodySchema(after), '', words)] };
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

function operationChanges(before: Located, after: Located, words: Words): string[] {
  return [
    ...(before.operationId === after.operationId ? [] : words.renamed(before.operationId, after.operationId)),
    ...deprecationChanges(before, after, words),
    ...securityChanges(before, after, words),
    ...parameterChanges(before, after, words),
    ...requestChanges(before, after, words),
    ...Object.keys(before.responses).flatMap((status) => responseChanges(status, before, after, words)),
  ];
}

function deprecationChanges(before: object, after: object, words: Words): string[] {
  const [old, now] = [before, after].map((part) => Boolean((part as { deprecated?: boolean }).deprecated));
  return old === now ? [] : words.deprecated(old!, now!);
}

type Requirement = Record<string, string[]>;

/** Whether a token is needed, and which scopes. Each alternative of the first operation must still be enough. */
function securityChanges(before: Operation, after: Operation, words: Words): string[] {
  const alternativesOf = ({ security = [] }: Operation) => (security.length === 0 ? [{}] : security) as Requirement[];
  const now = alternativesOf(after);
  const changes = alternativesOf(before).flatMap((sent) => {
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

function parameterChanges({ parameters: old = [] }: Operation, { parameters: now = [] }: Operation, words: Words) {
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
        ...within(place, deprecationChanges(parameter, kept, words)),
        ...takenChanges(asSent(parameter), asSent(kept), place, words),
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

function requestChanges({ requestBody: old }: Operation, { requestBody: now }: Operation, words: Words): string[] {
  if (old && !now) return say('request', words.gone);
  return [
    ...(now?.required && !old?.required ? say('request', words.required) : []),
    ...takenChanges(schemaIn(old?.content), schemaIn(now?.content), 'request', words),
  ];
}

function responseChanges(status: string, before: Located, after: Located, words: Words): string[] {
  const old = before.responses[status]!;
  const now = after.responses[status];
  if (!now) return say(status, words.gone);
  const headers = Object.entries((old.headers ?? {}) as Record<string, Header>).flatMap(([name, header]) => {
    const kept = (now.headers as Record<string, Header> | undefined)?.[name];
    const place = `${status} header ${name}`;
    if (!kept) return say(place, words.gone);
    // Shared headers are compared once.
    const sharedName = before.sharedHeaders.get(header);
    const isShared = sharedName !== undefined && sharedName === after.sharedHeaders.get(kept);
    return isShared ? [] : oneHeaderChanges(header, kept, place, words);
  });
  return [...headers, ...answeredChanges(schemaIn(old.content), schemaIn(now.content), status, words)];
}

type CompareSchemas = (old: Schema, now: Schema, place: string, words: Words) => string[];

/** What was valid must stay valid, so the old schema must fit into the new one. */
const takenChanges: CompareSchemas = (old, now, place, words) => narrowings(old, now, place, words.taken);

/** Answers must stay as documented, so the new schema must fit into the old one. */
const answeredChanges: CompareSchemas = (old, now, place, words) => narrowings(now, old, place, words.answered);
