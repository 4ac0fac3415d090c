import { type Call, callsOf, inProject, OPERATIONS, UNKNOWN } from '../call.ts';

const card_id = 16;
const comment = 'Looks good.';
const name = 'A tag';

/** Comments and tags. */
export const details: Call[] = [
  ...callsOf(`${OPERATIONS}/comments/create`, [
    ['a comment', 'member', { card_id, comment }],
    ['a reply', 'owner', { card_id, comment: ' Thank you & <b>bye</b> 👋\n', parent_comment_id: 1 }],
    ['a reply to a reply', 'member', { card_id, comment, parent_comment_id: 2 }],
    ['parent_comment_id null', 'member', { card_id, comment, parent_comment_id: null, is_read: true }],
    ['by a superadmin in another project', 'admin', { card_id: 11, comment }, inProject(2)],
    ['on a copied card', 'member', { card_id: 6, comment }],
    ['card_id unknown', 'member', { card_id: UNKNOWN, comment }],
    ['card_id of a deleted card', 'member', { card_id: 23, comment }],
    ['card_id of a master card', 'admin', { card_id: 1, comment }],
    ['card_id of another project', 'member', { card_id: 11, comment }],
    ['card_id of another platform', 'outsider', { card_id, comment }],
    ['parent_comment_id unknown', 'member', { card_id, comment, parent_comment_id: UNKNOWN }],
    ['parent_comment_id of another card', 'member', { card_id, comment, parent_comment_id: 3 }],
    ['no body', 'member'],
    ['no fields', 'member', {}],
    ['card_id a text', 'member', { card_id: '16', comment }],
    ['comment null', 'member', { card_id, comment: null }],
    ['comment of spaces', 'member', { card_id, comment: ' \n ' }],
    ['comment a number', 'member', { card_id, comment: 1 }],
    ['comment too long', 'member', { card_id, comment: 'x'.repeat(65_537) }],
    ['comment with U+0000', 'member', { card_id, comment: '\0' }],
    ['parent_comment_id a text', 'member', { card_id, comment, parent_comment_id: '1' }],
    ['parent_comment_id 0', 'member', { card_id, comment, parent_comment_id: 0 }],
    ['every field wrong', 'member', { card_id: null, comment: [], parent_comment_id: {} }],
  ]),

  ...callsOf(`${OPERATIONS}/tags/create`, [
    ['only a name', 'member', { name }],
    ['every field', 'member', { name: ' Presse & <mehr> 📰 ', color: ' #8a4baf ', icon: 'pen', position: 7 }],
    ['after a position of its own', 'member', { name, id: 1, is_active: false }],
    ['null for everything optional', 'owner', { name, color: null, icon: null, position: null }],
    ['empty texts', 'member', { name, color: '', icon: ' ' }],
    ['a negative position', 'member', { name, position: -2_147_483_648 }],
    ['by the owner of another project', 'outsider', { name }],
    ['by a superadmin in another project', 'admin', { name }, inProject(2)],
    ['no body', 'member'],
    ['no fields', 'member', {}],
    ['name null', 'member', { name: null }],
    ['name of spaces', 'member', { name: '  ' }],
    ['name a number', 'member', { name: 1 }],
    ['name of 256 characters', 'member', { name: 'x'.repeat(256) }],
    ['name with a lone surrogate', 'member', '{"name": "\\udfff"}'],
    ['color of 51 characters', 'member', { name, color: 'x'.repeat(51) }],
    ['icon of 101 characters', 'member', { name, icon: 'x'.repeat(101) }],
    ['position a text', 'member', { name, position: '1' }],
    ['position a fraction', 'member', { name, position: 1.5 }],
    ['position too small', 'member', { name, position: -2_147_483_649 }],
    ['every field wrong', 'member', { name: {}, color: 1, icon: true, position: null, more: 1 }],
    ['a position at the maximum', 'outsider', { name, position: UNKNOWN }],
    ['after a position at the maximum', 'outsider', { name }],
  ]),
];
