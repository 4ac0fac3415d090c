import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findProcedure, type Procedure, procedures } from '../../server/api/procedures.ts';
import { keepLogin } from '../../server/cli/logins.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { type Given, inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import { GRANTS_SCOPE } from '../../server/domain/access/scopes.ts';
import { makeCaller, refusalOf, type TestCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser } from '../harness/codes.ts';
import { eventsOf } from '../harness/events.ts';
import { givenDirectory } from '../harness/process.ts';
import { sampled } from '../harness/sample.ts';
import { givenService, testService } from '../harness/service.ts';
import { givenStartState, startStates } from '../harness/startStates.ts';
import { overRest, overRpc, refusedByAll } from '../harness/surfaces.ts';
import { type FakeTerminal, givenTerminal } from '../harness/terminal.ts';
import {
  ALL_SCOPES,
  givenKey,
  givenMember,
  givenServiceAccount,
  givenToken,
  givenUser,
  givenWebhook,
  givenWorld,
  PASSWORD,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const OLD = { proven_at: new Date('2020-01-01') };
const callerWith = async (token: string) => makeCaller((await testService()).url, token);
/** With a token that is older than ten minutes, or stolen. */
const callerWithOldToken = async (user: TestUser) => callerWith(await givenToken(user, OLD));
const callerWithKey = async (user: TestUser, scopes: string[], names_grants = true) =>
  callerWith((await givenKey(user, { scopes, names_grants })).secret);

/** Nobody can undo it. */
const ERASING = ['account.erase', 'users.erase'];

/**
 * What each mutation creates, for somebody who stole a token: a new one has to be listed. `proven` ones need fresh proof, `asking`
 * ones take the password with the call.
 */
const CREATES: Record<'secret' | 'right' | 'way out', { proven: string[]; asking?: string[]; free?: string[] }> = {
  secret: {
    proven: ['keys.create', 'keys.rotate', 'webhooks.create', 'webhooks.rotateSecret'],
    asking: ['account.changePassword', 'account.startSecondFactor', 'account.renewRecoveryCodes'],
    free: [
      // Takes the password and the code itself.
      'auth.authenticate',
      // A sign-in at the identity provider; to link an identity, it asks for proof itself.
      'auth.startSso',
      'auth.finishSso',
      // Takes a token that an issuer has signed, by a rule that a superadmin made with proof.
      'auth.exchange',
      // With a code of the secret that `startSecondFactor` gave for the password.
      'account.confirmSecondFactor',
      // Goes to the owner of the address; the link in it, for one use.
      'account.requestPasswordReset',
      'account.resetPassword',
      // With the link of an invitation, which an owner gave with proof.
      'account.signUp',
      // With the current secret, for the same rights.
      'keys.rotateSelf',
    ],
  },
  right: {
    proven: [
      'identityIssuers.create',
      'identityRules.create',
      'identityRules.update',
      'users.create',
      'users.update',
      'users.deactivate',
      'users.activate',
      'users.dropSecondFactor',
      'members.invite',
      'members.add',
      'members.set',
      'account.changeAddress',
      'account.unlinkIdentity',
    ],
    asking: ['account.prove', 'account.dropSecondFactor'],
    // An owner gave the first with proof. The second takes the link that `changeAddress` sent, with proof.
    free: ['account.acceptInvitation', 'account.confirmAddress'],
  },
  'way out': {
    // A plan sets where and how much others pay.
    proven: ['webhooks.update', 'plans.set', 'account.startExport', 'account.getExport', ...ERASING],
    // To the same receiver as before.
    free: ['webhooks.redeliver', 'webhooks.resend', 'webhooks.sendTest'],
  },
};

/** The routers whose mutations create no secret and no right, and send no data elsewhere. */
const CONTENTS = [
  ...[
    'boards',
    'groups',
    'cards',
    'comments',
    'tags',
    'tour',
    'masterBoards',
    'masterGroups',
    'releases',
    'rollouts',
    'templates',
    'masterCards',
    'templateFiles',
  ],
  ...['themes', 'platforms', 'projects', 'subscriptions'],
];
/** They take rights and secrets away, or choose among those that the caller has. */
const HARMLESS = [
  'account.requestConfirmation',
  ...['account.signOut', 'account.signOutEverywhere', 'account.setDefaultProject', 'account.declineInvitation'],
  ...['users.signOut', 'members.withdrawInvitation', 'members.remove', 'members.leave'],
  ...['webhooks.delete', 'webhooks.skip', 'keys.revoke', 'mails.retry'],
  ...['identityIssuers.delete', 'identityRules.delete'],
];

describe('the list of what needs proof', () => {
  const mutations = procedures.filter(({ type }) => type === 'mutation');
  const kinds = Object.values(CREATES);
  const proven = kinds.flatMap(({ proven }) => proven);
  const asking = kinds.flatMap(({ asking = [] }) => asking);

  it('names each mutation that creates a secret or a right, or sends data elsewhere', () => {
    const free = kinds.flatMap(({ free = [] }) => free);
    const others = mutations.filter(({ name }) => !CONTENTS.includes(name.split('.')[0]!)).map(({ name }) => name);

    const listed = [...proven, ...asking, ...free, ...HARMLESS].filter((name) => name !== 'account.getExport');
    expect(others.sort()).toEqual(listed.sort());
  });

  it('is that of the routers', () => {
    const withProof = procedures.filter(({ proof }) => proof).map(({ name }) => name);

    expect(withProof.sort()).toEqual(proven.sort());
    for (const name of asking) expect(inputFor(findProcedure(name)!, {}), name).toHaveProperty('password');
  });

  it('has every answer with a secret', () => {
    const withSecret = mutations.filter(({ hasSecret }) => hasSecret).map(({ name }) => name);
    const listed = ['account.prove', ...Object.values(CREATES.secret).flat()];

    expect(withSecret.filter((name) => !listed.includes(name))).toEqual([]);
  });
});

/** Fields that need proof, where some inputs do, and those that don't. */
const FIELDS: Record<string, { granting: Given; harmless: Given }> = {
  'users.create': {
    granting: {},
    harmless: { kind: 'service', email: undefined, password: undefined, superadmin: false, superadmin_billing: false },
  },
  'users.update': {
    granting: {},
    harmless: { email: null, password: null, superadmin: null, superadmin_billing: null, is_active: null },
  },
  'members.set': { granting: { role: 'owner' }, harmless: { role: 'member' } },
  'webhooks.update': { granting: { is_active: true }, harmless: { url: null, is_active: false } },
};

const withProof = procedures.filter(({ proof }) => proof);
const inputOf = async (procedure: Procedure, world: Awaited<ReturnType<typeof givenWorld>>, more: Given = {}) => ({
  ...inputFor(procedure, await givenStartState(procedure, world)),
  ...more,
});

describe.each(sampled(withProof).map((procedure) => [procedure.name, procedure] as const))('%s', (name, procedure) => {
  const { granting = {}, harmless } = FIELDS[name] ?? {};

  it('422 for an old session, on all surfaces, until it gives its proof', async () => {
    const world = await givenWorld();
    const isOfAuthor = startStates.get(name)?.on?.owner === 'author';
    const caller = await callerWithOldToken(isOfAuthor ? world.users.member : world.users.superadmin);
    const input = await inputOf(procedure, world, granting);

    expect(await refusedByAll(caller, procedure, input)).toMatchObject({ status: 422, reason: 'proof_required' });
    await caller.rpc.account.prove.mutate({ password: PASSWORD });
    expect(await overRest(caller, procedure, input)).toHaveProperty('data');
  });

  it.runIf(harmless)('needs none for other inputs', async () => {
    const world = await givenWorld();
    const caller = await callerWithOldToken(world.users.superadmin);
    const key = await callerWithKey(
      world.users.superadmin,
      ALL_SCOPES.filter((scope) => scope !== GRANTS_SCOPE),
    );

    for (const each of [caller, key])
      expect(await overRpc(each, procedure, await inputOf(procedure, world, harmless))).toHaveProperty('data');
  });

  it.runIf(!/^(keys|account|identity\w+)\./.test(name))('with a key: needs the scope grants:write', async () => {
    const world = await givenWorld();
    const others = ALL_SCOPES.filter((scope) => scope !== GRANTS_SCOPE);
    const call = async (scopes: string[], namesGrants = true) =>
      overRpc(
        await callerWithKey(world.users.superadmin, scopes, namesGrants),
        procedure,
        await inputOf(procedure, world, granting),
      );

    expect(await call(others)).toMatchObject({ status: 403, reason: 'scope_missing' });
    expect(await call(ALL_SCOPES)).toHaveProperty('data');
    // A key of before the scope existed.
    expect(await call(others, false)).toHaveProperty('data');
  });
});

describe('a role for somebody', () => {
  it('422 for an old session that raises it, and not for one that lowers it or takes it away', async () => {
    const { users, project } = await givenWorld();
    const { rpc } = await callerWithOldToken(users.owner);
    const set = (user_id: number, role: 'viewer' | 'member') =>
      rpc.members.set.mutate({ user_id, role, project_id: project.id });

    expect(await refusalOf(set(users.viewer.id, 'member'))).toMatchObject({ errors: { proof: expect.anything() } });
    expect((await set(users.viewer.id, 'viewer')).member.role).toBe('viewer');
    expect((await set(users.member.id, 'viewer')).member.role).toBe('viewer');
    await rpc.members.remove.mutate({ user_id: users.member.id, project_id: project.id });
    await rpc.account.prove.mutate({ password: PASSWORD });
    expect((await set(users.viewer.id, 'member')).member.role).toBe('member');
  });

  it('owner: with a key only with the scope admin, which a key of an owner can not have', async () => {
    const { users, project } = await givenWorld();
    await givenMember(users.superadmin, project, 'owner');
    const granting = ['members:write', GRANTS_SCOPE];
    const rolesOf = async (user: TestUser, scopes: string[]) => {
      const { rpc } = await callerWithKey(user, scopes);
      const invite = (role: 'owner' | 'member') =>
        rpc.members.invite.mutate({ email: `${randomUUID()}@example.test`, role });
      const set = rpc.members.set.mutate({ user_id: users.viewer.id, role: 'owner' });
      return Promise.all(
        [invite('owner'), set, invite('member')].map((call) =>
          call.then(
            () => 201,
            ({ reason }) => reason,
          ),
        ),
      );
    };

    expect(await rolesOf(users.owner, granting)).toEqual(['scope_missing', 'scope_missing', 201]);
    expect(await rolesOf(users.superadmin, granting)).toEqual(['scope_missing', 'scope_missing', 201]);
    expect(await rolesOf(users.superadmin, [...granting, 'admin'])).toEqual([201, 201, 201]);
  });
});

it('further types of a webhook need it, fewer do not', async () => {
  const { users, project } = await givenWorld();
  const id = await givenWebhook(project, { types: ['card.created', 'card.moved'] });
  const { rpc } = await callerWithOldToken(users.owner);
  const set = (types: ('card.created' | 'card.deleted')[] | null) => rpc.webhooks.update.mutate({ id, types });

  expect((await set(['card.created'])).webhook.types).toEqual(['card.created']);
  for (const types of [null, ['card.created', 'card.deleted']] as const)
    expect(await refusalOf(set(types && [...types]))).toMatchObject({ errors: { proof: expect.anything() } });
  await rpc.account.prove.mutate({ password: PASSWORD });
  expect((await set(null)).webhook.types).toBeNull();
});

it.each([true, false])(
  'users.update with is_active %s needs it, as users.activate and users.deactivate do',
  async (is_active) => {
    const { users } = await givenWorld();
    const { rpc } = await callerWithOldToken(users.superadmin);
    const { id } = await givenUser();

    expect(await refusalOf(rpc.users.update.mutate({ id, is_active }))).toMatchObject({ status: 422 });
  },
);

describe('POST …/account/prove', () => {
  const isProven = async ({ rpc }: TestCaller) =>
    rpc.keys.create.mutate({ name: 'x', scopes: ['cards:read'] }).then(
      () => true,
      ({ reason }) => reason !== 'proof_required',
    );

  it('200 with the password: this session counts as proven, others do not', async () => {
    const user = await givenUser();
    const [one, other] = [await callerWithOldToken(user), await callerWithOldToken(user)];

    const events = await eventsOf(() => one.rpc.account.prove.mutate({ password: PASSWORD }));

    expect(events).toMatchObject([{ type: 'session.proven', user_id: user.id, project_id: null }]);
    expect([await isProven(one), await isProven(other)]).toEqual([true, false]);
  });

  it('422 for a wrong password, or without a code where a second factor is enabled', async () => {
    const caller = await callerWithOldToken(await givenProtectedUser());
    const prove = (input: object) => caller.rpc.account.prove.mutate({ password: PASSWORD, ...input });

    expect(await refusalOf(prove({ password: 'wrong' }))).toMatchObject({ errors: { password: expect.anything() } });
    expect(await refusalOf(prove({}))).toMatchObject({ status: 422, errors: { code: expect.anything() } });
    expect(await refusalOf(prove({ code: '000000' }))).toMatchObject({ errors: { code: expect.anything() } });
    expect(await isProven(caller)).toBe(false);
    await prove({ code: 'a-code', is_recovery: true });
    expect(await isProven(caller)).toBe(true);
  });

  it('429 after ten wrong passwords, for the sign-in as well', async () => {
    const { url } = await givenService();
    const user = await givenUser();
    const { rpc } = makeCaller(url, await givenToken(user, OLD));
    const prove = (password: string) => rpc.account.prove.mutate({ password });
    for (let tries = 0; tries < 10; tries++) await refusalOf(prove('wrong'));

    expect(await refusalOf(prove(PASSWORD))).toMatchObject({ status: 429 });
    const signIn = makeCaller(url).rpc.auth.authenticate.mutate({ email: user.email, password: PASSWORD });
    expect(await refusalOf(signIn)).toMatchObject({ status: 429 });
  });

  it.each([
    ['password', sql`password_hash = 'another'`],
    ['second factor', sql`totp_secret = 'ANOTHERSECRETXYZ'`],
  ])('does not count if the %s has changed meanwhile', async (_, change) => {
    const user = await givenUser();
    const db = await testDb();
    let asked = 0;
    const mustBeAllowed = async () => {
      if (++asked === 2) await query(db, sql`update users set ${change} where id = ${user.id}`);
      return { hasFailed: false };
    };
    const { url } = await givenService({}, { attemptLimit: { mustBeAllowed, countFailure: async () => {} } });
    const caller = makeCaller(url, await givenToken(user, OLD));

    await caller.rpc.account.prove.mutate({ password: PASSWORD });

    expect(asked).toBe(2);
    expect(await isProven(caller)).toBe(false);
  });

  it('403 with a key, and for a service, which has no password', async () => {
    const service = await givenServiceAccount();
    const withKey = await callerWithKey(service, ALL_SCOPES);

    expect((await withKey.post('/v1/account/prove', { password: 'x' })).status).toBe(403);
    expect((await (await callerWithOldToken(service)).post('/v1/account/prove', { password: 'x' })).status).toBe(403);
  });

  it('is not given by a sign-in from a remembered device', async () => {
    const { url } = await testService();
    const { email } = await givenProtectedUser();
    const signIn = (more: object) =>
      makeCaller(url).rpc.auth.authenticate.mutate({ email, password: PASSWORD, ...more });
    const first = await signIn({ code: 'a-code', is_recovery: true });
    const remembered = await signIn({ token: first.token });

    expect(await isProven(makeCaller(url, first.token))).toBe(true);
    expect(await isProven(makeCaller(url, remembered.token))).toBe(false);
  });

  it('says what to call, over REST', async () => {
    const { users, project } = await givenWorld();
    const caller = await callerWithOldToken(users.owner);

    const answer = await caller.post('/services/platforms/v1/webhooks/rotate-secret', {
      id: await givenWebhook(project),
    });

    expect(answer.headers.get('x-error-reason')).toBe('proof_required');
    expect(answer.body.errors.proof[0]).toMatch(
      /^proof is required: .* to account\.prove \(POST \/api\/v1\/account\/prove\)/,
    );
  });
});

describe('a stolen token of a superadmin', () => {
  it('422 for the own password and second factor, even with proof, and nothing changes', async () => {
    const { users, asSuperadmin, asKey } = await givenWorld();
    const { id } = users.superadmin;
    await query(await testDb(), sql`update users set totp_secret = 'sealed' where id = ${id}`);
    const before = await stored('users', id);

    for (const { rpc } of [asSuperadmin, asKey]) {
      const password = rpc.users.update.mutate({ id, password: 'another long sentence' });
      expect(await refusalOf(password)).toMatchObject({
        status: 422,
        errors: { password: ['password is your own: change it with account.changePassword.'] },
      });
      expect(await refusalOf(rpc.users.dropSecondFactor.mutate({ id }))).toMatchObject({
        status: 422,
        errors: { id: ['id is your own account: use account.dropSecondFactor.'] },
      });
    }
    expect(await stored('users', id)).toEqual(before);
  });

  it('with the password alone, a user with a second factor can not change it', async () => {
    const caller = await callerWithOldToken(await givenProtectedUser());
    const change = () =>
      caller.rpc.account.changePassword.mutate({ password: PASSWORD, new_password: 'another long sentence' });

    expect(await refusalOf(change())).toMatchObject({ status: 422, errors: { proof: expect.anything() } });
    await caller.rpc.account.prove.mutate({ password: PASSWORD, code: 'a-code', is_recovery: true });
    await change();
  });
});

describe('the scope grants:write', () => {
  const create = ({ rpc }: TestCaller, more: object = {}) =>
    rpc.keys.create.mutate({ name: 'x', scopes: [GRANTS_SCOPE, 'webhooks:write'], ...more });

  it('422 for a key of somebody who is no owner there and no superadmin', async () => {
    const { asMember, asOwner, asSuperadmin, otherProject, project, users } = await givenWorld();
    const { id: user_id } = await givenServiceAccount({ project });
    await query(
      await testDb(),
      sql`insert into members (project_id, user_id, role) values (${otherProject.id}, ${users.owner.id}, 'member')`,
    );

    expect(await refusalOf(create(asMember))).toMatchObject({ status: 422, errors: { scopes: expect.anything() } });
    expect(await refusalOf(create(asOwner, { project_id: otherProject.id }))).toMatchObject({ status: 422 });
    expect((await create(asOwner, { project_id: project.id })).key.scopes).toEqual([GRANTS_SCOPE, 'webhooks:write']);
    expect((await create(asSuperadmin, { user_id })).key.scopes).toContain(GRANTS_SCOPE);
  });

  it('is shown for keys of before it existed that could do this, and can be given up', async () => {
    const user = await givenUser();
    const list = async () => (await (await callerWithOldToken(user)).rpc.keys.list.query({})).keys;
    await givenKey(user, { scopes: ['cards:write'], names_grants: false });
    const { secret } = await givenKey(user, { scopes: ['cards:write', 'webhooks:write'], names_grants: false });
    expect((await list()).map(({ scopes }) => scopes.includes(GRANTS_SCOPE))).toEqual([false, true]);

    await (await callerWith(secret)).rpc.keys.rotateSelf.mutate({ scopes: ['webhooks:write'] });

    expect((await list())[1]!.scopes).toEqual(['webhooks:write']);
  });
});

describe('a command on a service', () => {
  /** The command line of somebody who signed in some time ago. */
  const commandOf = async (user: TestUser, terminal: FakeTerminal) => {
    const { url } = await testService();
    const HOME = await givenDirectory();
    const environment = () => ({ HOME });
    await keepLogin(environment, url, { email: user.email, token: await givenToken(user, OLD) });
    return (words: string) => runCommandLine([...words.split(' '), '--url', url], environment, terminal);
  };
  const CREATE = 'webhooks create --receiver-url https://example.com/deckhand --json';

  it('asks a person for the password, then does what it should', async () => {
    const { users } = await givenWorld();
    const terminal = givenTerminal([PASSWORD]);
    const command = await commandOf(users.owner, terminal);

    const { exitCode, printed } = await command(CREATE);

    expect([exitCode, terminal.shown.at(-1)]).toEqual([0, 'password: ']);
    expect(JSON.parse(printed!)).toHaveProperty('secret');
    expect((await command(CREATE)).exitCode).toBe(0);
    expect(terminal.shown).toHaveLength(2);
  });

  it('asks for a code, too, where a second factor is enabled', async () => {
    const { project } = await givenWorld();
    const user = await givenProtectedUser();
    await givenMember(user, project, 'owner');
    const terminal = givenTerminal([PASSWORD, codeAt(0)]);

    expect(await (await commandOf(user, terminal))(CREATE)).toMatchObject({ exitCode: 0 });
    expect(terminal.shown.slice(1)).toEqual(['password: ', 'code of the authenticator app: ']);
  });

  it('without a terminal: says what to call first, and asks for nothing', async () => {
    const { users } = await givenWorld();
    const terminal = givenTerminal([PASSWORD], { isPerson: false });
    const command = await commandOf(users.owner, terminal);

    expect(await command('webhooks create --receiver-url https://example.com/deckhand')).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('account.prove'),
    });
    expect(terminal.shown).toEqual([]);
    await command('account prove');
    expect((await command(CREATE)).exitCode).toBe(0);
  });
});
