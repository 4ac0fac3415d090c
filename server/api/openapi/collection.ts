import { DEMO_USER } from '../../database/seed/demoUsers.ts';
import type { Access } from '../../domain/access/access.ts';
import { restProcedures } from '../procedures.ts';
import { type OpenApiDocument, type Operation, operationsOf, responsesOf } from './document.ts';

/**
 * The document as a Postman collection (format 2.1), which Bruno, Insomnia and Hoppscotch can import too: a folder per area, an
 * example body per request. Each folder begins with the sign-in of a demo user who may call its requests.
 */
export function collectionOf({ info, tags, paths, components }: OpenApiDocument) {
  const operations = operationsOf({ paths }).map((operation) => ({
    ...operation,
    responses: responsesOf({ components }, operation),
  }));
  const signIn = operations.find(({ operationId }) => operationId === 'authAuthenticate')!;
  const folderOf = (requests: Described[]) => [
    ...(requests.includes(signIn) ? [] : [signInItem(signIn, callerOf(requests))]),
    ...requests.map(toItem),
  ];
  return {
    info: {
      name: `${info.title} ${info.version}`,
      description: info.description,
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    variable: [
      { key: 'baseUrl', value: 'http://127.0.0.1:3000/api' },
      { key: 'token', value: '' },
      { key: 'key', value: '' },
    ],
    auth: bearer('{{token}}'),
    item: tags.map(({ name, description }) => ({
      name,
      description,
      item: folderOf(operations.filter((operation) => operation.tags.includes(name))),
    })),
  };
}

const bearer = (value: string) => ({ type: 'bearer', bearer: [{ key: 'token', value, type: 'string' }] });

export type Collection = ReturnType<typeof collectionOf>;

type Item = ReturnType<typeof toItem>;

type Described = Operation & { path: string };

type Field = { key: string; value: string; description?: string; disabled?: boolean };
const ACCEPT: Field = { key: 'Accept', value: 'application/json' };

/** The demo user with the lowest rights that are enough for all of these. */
function callerOf(requests: Described[]): string {
  const paths = new Set(requests.map(({ path }) => path));
  const levels = new Set(restProcedures.filter(({ rest }) => paths.has(rest.path)).map(({ access }) => access));
  return CALLERS.find(({ level }) => levels.has(level))?.email ?? DEMO_USER.email;
}

/** From the highest to the lowest rights; members may do the rest. */
const CALLERS: { level: Access; email: string }[] = [
  { level: 'superadmin', email: 'admin@demo.test' },
  { level: 'billing', email: 'owner@demo.test' },
  { level: 'ownerOrSuperadmin', email: 'owner@demo.test' },
];

function signInItem(signIn: Described, email: string): Item {
  const item = toItem(signIn);
  const raw = JSON.stringify({ email, password: DEMO_USER.password }, null, 2);
  return { ...item, name: `Sign in as ${email}`, request: { ...item.request, body: { ...item.request.body!, raw } } };
}

function toItem({ path, ...operation }: Described) {
  const example = operation.requestBody?.content['application/json'].example;
  const { security = [] } = operation;
  const isPublic = security.length === 0;
  const isForKeys = !isPublic && !security.some((scheme) => 'Authorization' in scheme);
  return {
    name: operation.summary,
    request: {
      method: 'POST',
      ...(isPublic && { auth: { type: 'noauth' } }),
      ...(isForKeys && { auth: bearer('{{key}}') }),
      description: operation.description,
      header: [ACCEPT, ...unusedFields(operation, 'header')],
      url: {
        raw: `{{baseUrl}}${path}`,
        host: ['{{baseUrl}}'],
        path: path.slice(1).split('/'),
        query: unusedFields(operation, 'query'),
      },
      ...(example !== undefined && {
        body: { mode: 'raw', raw: JSON.stringify(example, null, 2), options: { raw: { language: 'json' } } },
      }),
    },
    response: Object.entries(operation.responses).map(([status, { description, content }]) => ({
      name: `${status} ${description}`,
      code: Number(status),
      header: [{ key: 'Content-Type', value: 'application/json' }],
      body: JSON.stringify(content!['application/json'].example, null, 2),
    })),
    ...(isPublic && { event: [keep('token', 200, 'token')] }),
    ...(operation.operationId === 'keysCreate' && { event: [keep('key', 201, 'secret')] }),
  };
}

/** Optional headers and query parameters, disabled by default. */
const unusedFields = ({ parameters = [] }: Operation, place: 'header' | 'query'): Field[] =>
  parameters
    .filter((parameter) => parameter.in === place)
    .map(({ name, description }) => ({ key: name, value: '', description, disabled: true }));

/** Keeps a field of the answer for later requests. */
const keep = (variable: string, status: number, field: string) => ({
  listen: 'test',
  script: {
    type: 'text/javascript',
    exec: [
      `if (pm.response.code === ${status}) pm.collectionVariables.set('${variable}', pm.response.json().data.${field});`,
    ],
  },
});
