import {
  ADMIN,
  AUTHENTICATE,
  type Call,
  callsOf,
  DEPRECATE,
  inProject,
  OPERATIONS,
  type Row,
  UPGRADE_TRIAL,
  type Who,
} from '../call.ts';

/** The specified operations, each with a caller whose role is not sufficient. */
const SPECIFIED: [path: string, lacksTheRole?: Who][] = [
  [AUTHENTICATE],
  [`${OPERATIONS}/cards/create`, 'viewer'],
  [`${OPERATIONS}/cards/delete`, 'viewer'],
  [`${OPERATIONS}/groups/update`, 'viewer'],
  [`${OPERATIONS}/groups/reorder`, 'viewer'],
  [`${OPERATIONS}/comments/create`, 'viewer'],
  [`${OPERATIONS}/tags/create`, 'viewer'],
  [`${OPERATIONS}/boards/get`],
  [`${OPERATIONS}/boards/list`],
  [`${OPERATIONS}/tour/cards/dismiss-all`],
  [`${ADMIN}/master-boards/list`, 'owner'],
  [`${ADMIN}/master-boards/sync`, 'owner'],
  [`${ADMIN}/master-boards/delete`, 'owner'],
  [`${ADMIN}/master-groups/create`, 'owner'],
  [`${ADMIN}/master-groups/update`, 'owner'],
  [`${ADMIN}/master-groups/reorder`, 'owner'],
  [`${ADMIN}/master-groups/delete`, 'owner'],
  [`${ADMIN}/master-cards/create`, 'owner'],
  [`${ADMIN}/master-cards/push`, 'owner'],
  [`${ADMIN}/master-cards/delete`, 'owner'],
  [UPGRADE_TRIAL, 'member'],
  [DEPRECATE, 'member'],
];

/** Signed with another key. */
const FORGED =
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIiwiaXNzIjoiZGVja2hhbmQiLCJleHAiOjQxMDI0NDQ4MDB9.c2lnbmVkIHdpdGggYW5vdGhlciBrZXkgb2Ygbm9ib2R5';
const asText = { type: 'text/plain' };
const authorizedBy = (authorization: string) => ({ headers: { authorization } });

const unauthenticated: Row[] = [
  ['no token', 'nobody'],
  ['no token, and a broken body', 'nobody', '{'],
  ['a token that is none', 'nobody', {}, authorizedBy('Bearer nonsense')],
  ['a forged token', 'nobody', {}, authorizedBy(`Bearer ${FORGED}`)],
  ['a password instead of a token', 'nobody', {}, authorizedBy('Basic bWVtYmVyOmRlbW8=')],
];

const unreadable = (by: Who): Row[] => [
  ['broken JSON', by, '{"id": 1'],
  ['a list', by, []],
  ['null', by, 'null'],
  ['a text', by, '"id"'],
  ['content type text/plain', by, '{}', asText],
];

/** What every operation answers in the same way, apart from its bodies for errors. */
export const usual: Call[] = SPECIFIED.flatMap(([path, lacksTheRole]) => {
  if (path === AUTHENTICATE) return callsOf(path, [...unreadable('nobody'), ...elsewhere('nobody')]);
  return callsOf(path, [
    ...unauthenticated,
    ...(lacksTheRole ? [[`role of ${lacksTheRole}`, lacksTheRole, '{'] as Row] : []),
    ['X-Project-Id of another project', 'outsider', {}, inProject(1)],
    ['X-Project-Id that is no number', 'member', {}, inProject('one')],
    ...unreadable('admin'),
    ...elsewhere('admin'),
  ]);
});

function elsewhere(by: Who): Row[] {
  return [
    ['GET', by, undefined, { method: 'GET' }],
    ['PUT with a body', by, {}, { method: 'PUT' }],
    ['a path below it', by, {}, { tail: '/more' }],
  ];
}

/** Bodies at the limits of what is read at all, and paths that don't exist. */
export const bodies: Call[] = [
  ...callsOf(`${OPERATIONS}/cards/create`, [
    ['no body', 'member'],
    ['empty body', 'member', ''],
    ['a body without a content type', 'member', { title: 'x' }, { type: null }],
    ['a form', 'member', 'title=x', { type: 'application/x-www-form-urlencoded' }],
    ['not UTF-8', 'member', Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['64 levels', 'member', `{"more": ${'['.repeat(63)}${']'.repeat(63)}}`],
    ['65 levels', 'member', `{"more": ${'['.repeat(64)}${']'.repeat(64)}}`],
    ['more than 1 MiB', 'member', JSON.stringify({ title: 'x'.repeat(1024 * 1024) })],
    ['the same field twice', 'member', '{"title": "first", "title": "second"}'],
    ['a field named __proto__', 'member', '{"title": "x", "__proto__": {"title": "y"}}'],
  ]),
  ...callsOf('/api/v1/nothing', [
    ['POST', 'nobody', {}],
    ['GET', 'nobody', undefined, { method: 'GET' }],
  ]),
  ...callsOf('/api', [['POST', 'member', {}]]),
  ...callsOf(`${OPERATIONS}/boards/list/`, [['POST', 'member', {}]]),
];

const limited = { isLimited: true };

/** To a service that allows one call per minute. */
export const limits: Call[] = [
  ...callsOf(`${OPERATIONS}/tags/create`, [['the only call within the limit', 'nobody', {}, limited]]),
  ...SPECIFIED.flatMap(([path]) => callsOf(path, [['above the limit', 'nobody', {}, limited]])),
  ...callsOf('/api/v1/nothing', [['above the limit', 'nobody', {}, limited]]),
  ...callsOf('/trpc/boards.list', [['above the limit', 'nobody', {}, limited]]),
];
