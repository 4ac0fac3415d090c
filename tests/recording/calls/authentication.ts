import { AUTHENTICATE, type Call, callsOf, inProject, type Row, times } from '../call.ts';

const password = 'demo-password';
const otp = { email: 'otp@demo.test', password };
const recovery = (number: number) => ({ ...otp, code: `demo-recovery-${number}`, is_recovery: true });
const member = { email: 'member@demo.test', password };

/** The first calls: the others use the tokens of these answers. */
export const signIns: Call[] = callsOf(AUTHENTICATE, [
  ['admin signs in', 'nobody', { email: 'admin@demo.test', password }],
  ['owner signs in', 'nobody', { email: 'owner@demo.test', password, token: null, code: null, is_recovery: null }],
  ['member signs in', 'nobody', { email: ' MEMBER@demo.test ', password, remember: true }],
  ['viewer signs in', 'nobody', { email: 'viewer@demo.test', password, token: '', code: '', is_recovery: false }],
  ['outsider signs in', 'nobody', { email: 'outsider@demo.test', password, code: '123456', token: 'not a token' }],
  ['otp signs in with a recovery code', 'nobody', recovery(1)],
]);

export const authentication: Call[] = callsOf(AUTHENTICATE, [
  ['a wrong token in the header does not matter', 'nobody', member, { headers: { authorization: 'Bearer nonsense' } }],
  ['a signed-in caller signs in again', 'member', member],
  ['X-Project-Id of another project', 'member', member, inProject(3)],
  ['content type with a charset', 'nobody', member, { type: 'application/json; charset=utf-8' }],

  ['wrong password', 'nobody', { ...member, password: 'wrong' }],
  ['password with a space at its end', 'nobody', { ...member, password: 'demo-password ' }],
  ['unknown e-mail address', 'nobody', { email: 'nobody@demo.test', password }],

  ['second factor without a code', 'nobody', otp],
  ['second factor with null for everything optional', 'nobody', { ...otp, token: null, code: null, is_recovery: null }],
  ['second factor with an empty code', 'nobody', { ...otp, code: '' }],
  ['second factor with a wrong code', 'nobody', { ...otp, code: 'wrong' }],
  ['second factor with a recovery code not named as one', 'nobody', { ...otp, code: 'demo-recovery-2' }],
  ['second factor with a wrong recovery code', 'nobody', { ...recovery(9) }],
  ['second factor with a used recovery code', 'nobody', recovery(1)],
  ['second factor with a wrong password', 'nobody', { ...recovery(2), password: 'wrong' }],
  ['second factor with a token that is none', 'nobody', { ...otp, token: 'not a token' }],
  ['second factor with the token of a remembered device', 'nobody', { ...otp, token: '{token of otp}' }],
  ['second factor with the token of another user', 'nobody', { ...otp, token: '{token of member}' }],
  ...times(5, (at) => [`second factor with recovery code ${at + 2}`, 'nobody', recovery(at + 2)] as Row),
  ['second factor with the last but one recovery code', 'nobody', recovery(7)],
  ['second factor with the last recovery code', 'nobody', recovery(8)],

  ['no fields', 'nobody', {}],
  ['email null', 'nobody', { email: null, password }],
  ['email empty', 'nobody', { email: ' ', password }],
  ['email a number', 'nobody', { email: 1, password }],
  ['email without an at sign', 'nobody', { email: 'member', password }],
  ['email without a domain', 'nobody', { email: 'member@', password }],
  ['email on localhost', 'nobody', { email: 'user@localhost', password }],
  ['email with a name', 'nobody', { email: 'Member <member@demo.test>', password }],
  ['email too long', 'nobody', { email: `${'m'.repeat(311)}@demo.test`, password }],
  ['password null', 'nobody', { ...member, password: null }],
  ['password empty', 'nobody', { ...member, password: '' }],
  ['password a number', 'nobody', { ...member, password: 12345678 }],
  ['password too long', 'nobody', { ...member, password: 'p'.repeat(1001) }],
  ['token a number', 'nobody', { ...member, token: 1 }],
  ['token too long', 'nobody', { ...member, token: 't'.repeat(4097) }],
  ['code a number', 'nobody', { ...member, code: 123456 }],
  ['code too long', 'nobody', { ...member, code: '1'.repeat(101) }],
  ['is_recovery a text', 'nobody', { ...member, is_recovery: 'true' }],
  ['every field wrong', 'nobody', { email: [], password: {}, token: true, code: 1, is_recovery: 1 }],

  ...times(10, (at) => [`guess ${at + 1}`, 'nobody', { email: 'guessed@demo.test', password: 'wrong' }] as Row),
  ['too many guesses', 'nobody', { email: 'guessed@demo.test', password: 'wrong' }],
]);
