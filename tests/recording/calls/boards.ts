import { type Call, callsOf, inProject, OPERATIONS, UNKNOWN } from '../call.ts';

const LIST = `${OPERATIONS}/boards/list`;
const GET = `${OPERATIONS}/boards/get`;
const DISMISS = `${OPERATIONS}/tour/cards/dismiss-all`;

/** While the demo data is as it was made. */
export const firstBoards: Call[] = [
  ...callsOf(LIST, [
    ['no body, no content type', 'viewer'],
    ['no body, with a content type', 'viewer', undefined, { type: 'application/json' }],
    ['empty body', 'viewer', ''],
    ['no body, content type text/plain', 'viewer', undefined, { type: 'text/plain' }],
    ['no fields', 'viewer', {}],
    ['a body without a content type', 'viewer', { tool_key: 'seo' }, { type: null }],
    ['tool_key', 'member', { tool_key: 'seo' }],
    ['tool_key with spaces around it', 'member', { tool_key: ' seo ' }],
    ['tool_key unknown', 'member', { tool_key: 'nothing' }],
    ['tool_key null', 'member', { tool_key: null }],
    ['tool_key empty', 'member', { tool_key: '' }],
    ['tool_key in the query', 'member', undefined, { tail: '?tool_key=onboarding' }],
    ['tool_key in body and query', 'member', { tool_key: 'seo' }, { tail: '?tool_key=onboarding' }],
    ['tool_key null in the body, another in the query', 'member', { tool_key: null }, { tail: '?tool_key=seo' }],
    ['tool_key empty in the query', 'member', undefined, { tail: '?tool_key=' }],
    ['tool_key twice in the query', 'member', undefined, { tail: '?tool_key=seo&tool_key=onboarding' }],
    ['unknown fields', 'member', { id: 2, tool: 'seo' }, { tail: '?limit=1' }],
    ['by an owner in the other project', 'owner', undefined, inProject(2)],
    ['by an owner without boards', 'outsider'],
    ['by a superadmin in another project', 'admin', {}, inProject(3)],
    ['by a superadmin in no project', 'admin', {}, inProject(UNKNOWN)],
    ['tool_key a number', 'member', { tool_key: 1 }],
    ['tool_key a list', 'member', { tool_key: ['seo'] }],
    ['tool_key with U+0000', 'member', { tool_key: '\0' }],
  ]),
  ...callsOf(GET, [
    ['a board', 'viewer', { id: 2 }],
    ['a copied board', 'member', { id: 3, more: 'unknown field' }],
    ['by a superadmin in another project', 'admin', { id: 4 }, inProject(2)],
    ['unknown', 'viewer', { id: UNKNOWN }],
    ['a master board', 'admin', { id: 1 }],
    ['a board of another project', 'viewer', { id: 4 }],
    ['a board of another platform', 'outsider', { id: 2 }],
    ['no body', 'viewer'],
    ['no fields', 'viewer', {}],
    ['id null', 'viewer', { id: null }],
    ['id a text', 'viewer', { id: '2' }],
    ['id 0', 'viewer', { id: 0 }],
    ['id too large', 'viewer', { id: 2_147_483_648 }],
    ['id only in the query', 'viewer', {}, { tail: '?id=2' }],
  ]),
];

export const tours: Call[] = [
  ...callsOf(LIST, [['before the tours are dismissed', 'viewer']]),
  ...callsOf(DISMISS, [
    ['no body', 'viewer'],
    ['again', 'viewer', { any: 'field' }],
    ['another user', 'owner', {}],
    ['in another project', 'owner', '', inProject(2)],
    ['in a project without tours', 'outsider', {}],
    ['no body, content type text/plain', 'member', undefined, { type: 'text/plain' }],
  ]),
  ...callsOf(LIST, [
    ['after the tours are dismissed', 'viewer'],
    ['for a user who dismissed no tours', 'otp'],
  ]),
  ...callsOf(GET, [['after the tours are dismissed', 'viewer', { id: 3 }]]),
];

/** With everything that the other calls changed. */
export const lastBoards: Call[] = [
  ...callsOf(GET, [
    ['at the end', 'member', { id: 2 }],
    ['a copied board at the end', 'otp', { id: 3 }],
    ['of the second project at the end', 'owner', { id: 4 }, inProject(2)],
  ]),
  ...callsOf(LIST, [
    ['at the end', 'member'],
    ['of the second project at the end', 'owner', {}, inProject(2)],
    ['of the third project at the end', 'outsider'],
  ]),
];
