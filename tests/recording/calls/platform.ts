import { type Call, callsOf, DEPRECATE, inProject, UNKNOWN, UPGRADE_TRIAL } from '../call.ts';

const pro = { product: 'websites', plan: 'pro', period: 'year' };
const starter = { ...pro, plan: 'starter' };

/** The upgrade of a trial and the deprecation of a theme version. */
export const platform: Call[] = [
  ...callsOf(UPGRADE_TRIAL, [
    ['an active trial', 'owner', pro],
    ['the same choice again', 'owner', { product: ' websites ', plan: ' pro ', period: 'year', price: 0 }],
    ['another choice', 'owner', { ...pro, plan: 'business', period: 'month' }],
    ['in another project of the platform', 'owner', pro, inProject(2)],
    ['by a superadmin for billing', 'admin', pro],
    ['an expired trial', 'outsider', pro],
    ['by a superadmin for billing in another project', 'admin', pro, inProject(3)],
    ['role of viewer', 'viewer', pro],
    ['product unknown', 'owner', { ...pro, product: 'nothing' }],
    ['plan unknown', 'owner', { ...pro, plan: 'huge' }],
    ['plan in capitals', 'owner', { ...pro, plan: 'PRO' }],
    ['no body', 'owner'],
    ['no fields', 'owner', {}],
    ['plan null', 'owner', { ...pro, plan: null }],
    ['plan of spaces', 'owner', { ...pro, plan: ' ' }],
    ['plan of 101 characters', 'owner', { ...pro, plan: 'x'.repeat(101) }],
    ['product a number', 'owner', { ...pro, product: 1 }],
    ['period unknown', 'owner', { ...pro, period: 'week' }],
    ['period empty', 'owner', { ...pro, period: '' }],
    ['period a number', 'owner', { ...pro, period: 12 }],
    ['every field wrong', 'owner', { product: [], plan: {}, period: null }],
    ['to a free plan', 'owner', starter],
    ['to the same free plan again', 'owner', starter],
    ['from a free plan to one with a price', 'owner', pro],
    ['an expired trial, to a free plan', 'outsider', { ...starter, period: 'month' }],
  ]),

  ...callsOf(DEPRECATE, [
    ['an approved version', 'owner', { version_id: 1, reason: 'unknown field' }],
    ['a version that is deprecated', 'owner', { version_id: 1 }],
    ['in another project of the platform', 'owner', { version_id: 1 }, inProject(2)],
    ['a pending version', 'owner', { version_id: 2 }],
    ['a rejected version', 'owner', { version_id: 3 }],
    ['unknown', 'owner', { version_id: UNKNOWN }],
    ['a version of another platform', 'owner', { version_id: 4 }],
    ['a pending version of another platform', 'outsider', { version_id: 2 }],
    ['role of viewer', 'viewer', { version_id: 1 }],
    ['by a superadmin', 'admin', { version_id: 4 }],
    ['no body', 'owner'],
    ['no fields', 'owner', {}],
    ['version_id null', 'owner', { version_id: null }],
    ['version_id a text', 'owner', { version_id: '1' }],
    ['version_id 0', 'owner', { version_id: 0 }],
    ['version_id a fraction', 'owner', { version_id: 1.5 }],
  ]),
];
