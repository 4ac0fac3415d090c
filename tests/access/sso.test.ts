import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { query } from '../../server/database/query.ts';
import { endSessionsOfOthers } from '../../server/domain/account/identity.ts';
import { makeIdentityProviders } from '../../server/security/identityProvider.ts';
import { makeCaller, type TestCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep } from '../harness/codes.ts';
import { eventsOf } from '../harness/events.ts';
import { type Person, startIdentityProvider, type TestProvider } from '../harness/identityProvider.ts';
import { givenDirectory } from '../harness/process.ts';
import { givenService, type TestService, withOwnDatabase } from '../harness/service.ts';
import { refusal, startSso } from '../harness/sso.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';
import {
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWorld,
  insert,
  PASSWORD,
  stored,
  type TestProject,
  testDb,
} from '../harness/world.ts';

withOwnDatabase();

let company: TestProvider;
let partner: TestProvider;
let service: TestService;
let projects: { team: TestProject; other: TestProject; inactive: TestProject };

beforeAll(async () => {
  const [team, other, inactive] = [
    await givenProject(),
    await givenProject(),
    await givenProject({ is_active: false }),
  ];
  projects = { team, other, inactive };
  company = await startIdentityProvider();
  partner = await startIdentityProvider('partner');
  const groups = {
    readers: { project_id: team.id, role: 'viewer' },
    writers: { project_id: team.id, role: 'member' },
    others: { project_id: other.id, role: 'member' },
    idle: { project_id: inactive.id, role: 'member' },
    unknown: { project_id: 2_000_000_000, role: 'member' },
  };
  const issuers = [
    company.settings({ ...{ sign_up: true, groups_claim: 'groups', groups, trusted_amr: ['mfa'], session_hours: 1 } }),
    partner.settings(),
  ];
  service = await givenService({ SSO_ISSUERS: JSON.stringify(issuers) });
  for (const provider of [company, partner]) provider.register(service.url);
});
afterAll(async () => {
  await service.app.close();
  await Promise.all([company.stop(), partner.stop()]);
});

let people = 0;
/** A person at the company, with an address that nobody else has. */
function givenPerson(person: Person = {}, provider = company) {
  const subject = `person-${++people}`;
  provider.people[subject] = { email: `${subject}@example.test`, email_verified: true, name: 'Ann', ...person };
  return { subject, email: provider.people[subject].email as string };
}

/** Signs in at a provider, or links or proves with the token of a caller. */
async function sso(
  subject: string,
  { provider = company, caller = makeCaller(service.url), more = {}, ...start }: any = {},
) {
  const issuer = provider === company ? 'company' : 'partner';
  const flow = await startSso(caller, { issuer, ...start });
  const callback = await provider.browser().signIn(flow.url.href, subject);
  const user = await flow.finish(callback, more);
  return { ...user, caller: makeCaller(service.url, user.token ?? caller.token) };
}

/** A user of Deckhand who has linked a person of a provider. */
async function givenLinked(user: { id: number }, provider = company) {
  const person = givenPerson({}, provider);
  const id = await insert('identities', { user_id: user.id, issuer: provider.url, subject: person.subject });
  return { ...person, identityId: id };
}

const sessionOf = ({ token }: TestCaller) => JSON.parse(atob(`${token}`.split('.')[1]!)).jti;
const isSignedIn = async ({ rpc }: TestCaller) => (await refusal(rpc.account.whoAmI.query())) === undefined;
const identitiesOf = async (user: { id: number }) =>
  query(await testDb(), sql<{ issuer: string }>`select issuer, subject from identities where user_id = ${user.id}`);

describe('a sign-up', () => {
  it('makes a person without a password, whom the same identity signs in again', async () => {
    const { subject, email } = givenPerson();

    const [first, second] = [await sso(subject), await sso(subject)];

    expect(second).toMatchObject({ id: first.id, email, name: 'Ann', purpose: 'sign_in', superadmin: false });
    const { account } = await second.caller.rpc.account.whoAmI.query();
    expect(account).toMatchObject({ id: first.id, has_password: false });
    const { email_confirmed_at, password_hash } = await stored('users', first.id);
    expect({ email_confirmed_at, password_hash }).toEqual({
      email_confirmed_at: expect.anything(),
      password_hash: null,
    });
    const { rpc } = makeCaller(service.url);
    expect(await refusal(rpc.auth.authenticate.mutate({ email, password: PASSWORD }))).toMatchObject({ status: 401 });
    expect(await refusal(second.caller.rpc.account.prove.mutate({ password: PASSWORD }))).toMatchObject({
      ...{ status: 403, reason: 'no_password', message: expect.stringContaining('identity provider') },
    });
  });

  it('does not confirm an address that the issuer did not verify', async () => {
    const { asSuperadmin } = await givenWorld(service);
    const { subject, email } = givenPerson({ email_verified: false });
    const { id } = await sso(subject);

    expect(await stored('users', id)).toMatchObject({ email_confirmed_at: null });
    const add = asSuperadmin.rpc.members.add.mutate({ project_id: projects.team.id, email, role: 'viewer' });
    expect(await refusal(add)).toMatchObject({ status: 422, reason: 'not_registered' });
  });

  it('403 account_exists for the address of an account: it is never taken over', async () => {
    const user = await givenUser();
    const { subject } = givenPerson({ email: user.email.toUpperCase() });

    expect(await refusal(sso(subject))).toMatchObject({ status: 403, reason: 'account_exists' });
    expect(await identitiesOf(user)).toEqual([]);
  });

  it('403 sso_refused without an address', async () => {
    const { subject } = givenPerson({ email: 'no address' });

    expect(await refusal(sso(subject))).toMatchObject({ status: 403, reason: 'sso_refused' });
  });

  it('403 no_account_here where the issuer allows none, also with the address and subject of a person elsewhere', async () => {
    const { subject, email } = givenPerson();
    await sso(subject);
    partner.people[subject] = { email, email_verified: true };

    expect(await refusal(sso(subject, { provider: partner }))).toMatchObject({
      status: 403,
      reason: 'no_account_here',
    });
  });
});

describe('a link', () => {
  it('signs in to the account that linked it', async () => {
    const user = await givenUser();
    const caller = makeCaller(service.url, await givenToken(user));
    const { subject } = givenPerson({ email: 'another@example.test' }, partner);

    const linked = await sso(subject, { provider: partner, caller, purpose: 'link' });
    const signedIn = await sso(subject, { provider: partner });
    const told = await query(await testDb(), sql`select kind, email, data from mails where user_id = ${user.id}`);

    expect(told).toEqual([{ kind: 'identity_linked', email: user.email, data: { name: 'The partner' } }]);
    expect(linked).toMatchObject({ id: user.id, token: null, purpose: 'link' });
    expect(signedIn).toMatchObject({ id: user.id, email: user.email, token: expect.any(String) });
    expect((await caller.rpc.account.listIdentities.query({})).identities).toMatchObject([
      {
        issuer: partner.url,
        issuer_name: 'partner',
        issuer_title: 'The partner',
        subject,
        last_used_at: expect.any(Date),
      },
    ]);
  });

  it('422 proof_required without fresh proof, 401 without a session', async () => {
    const caller = makeCaller(service.url, await givenToken(await givenUser(), { proven_at: null }));

    expect(await refusal(startSso(caller, { purpose: 'link' }))).toMatchObject({
      status: 422,
      reason: 'proof_required',
    });
    const nobody = makeCaller(service.url);
    expect(await refusal(startSso(nobody, { purpose: 'link' }))).toMatchObject({
      status: 401,
      reason: 'not_signed_in',
    });
  });

  it('403 for an identity of another account, and once the session has ended', async () => {
    const { subject } = await givenLinked(await givenUser());
    const caller = makeCaller(service.url, await givenToken(await givenUser()));
    expect(await refusal(sso(subject, { caller, purpose: 'link' }))).toMatchObject({
      status: 403,
      reason: 'sso_refused',
    });

    const { url, finish } = await startSso(caller, { purpose: 'link' });
    const callback = await company.browser().signIn(url.href, givenPerson().subject);
    await caller.rpc.account.signOut.mutate();

    expect(await refusal(finish(callback))).toMatchObject({ status: 403, reason: 'sso_refused' });
  });
});

describe('the local second factor', () => {
  holdTimeStep();

  it('401 code_required, then code_wrong, then a session with the right code', async () => {
    const user = await givenProtectedUser();
    const { subject } = await givenLinked(user);
    const { url, finish } = await startSso(makeCaller(service.url));
    const callback = await company.browser().signIn(url.href, subject);

    expect(await refusal(finish(callback))).toMatchObject({ status: 401, reason: 'code_required' });
    const flows = await query(
      await testDb(),
      sql<{ claims: object }>`select claims from sso_flows where user_id = ${user.id}`,
    );
    expect(flows).toMatchObject([{ claims: { sub: subject } }]);
    expect(await refusal(finish(callback, { code: '000000' }))).toMatchObject({ status: 401, reason: 'code_wrong' });
    const answers = await Promise.all(
      [1, 2].map(() => refusal(finish(callback, { code: 'a-code', is_recovery: true }))),
    );
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
  });

  it('is not asked for after a trusted way to sign in there', async () => {
    const user = await givenProtectedUser();
    const { subject } = await givenLinked(user);
    company.people[subject]!.amr = ['pwd', 'mfa'];

    expect(await sso(subject)).toMatchObject({ id: user.id });
  });
});

describe('proof', () => {
  it('of a person without a password is a fresh sign-in at the issuer, in the same session', async () => {
    const { subject } = givenPerson();
    const { id, caller } = await sso(subject);
    await query(await testDb(), sql`update sessions set proven_at = null where user_id = ${id}`);
    const create = () => refusal(caller.rpc.keys.create.mutate({ name: 'A key', scopes: ['cards:read'] }));
    expect(await create()).toMatchObject({ status: 422, reason: 'proof_required' });

    const { url } = await startSso(caller, { purpose: 'prove' });
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ prompt: 'login', max_age: '0' });
    expect(await sso(subject, { caller, purpose: 'prove' })).toMatchObject({ id, token: null, purpose: 'prove' });

    expect(await create()).toBeUndefined();
  });

  it('403 by another identity; a code as well where a second factor is enabled', async () => {
    const user = await givenProtectedUser();
    const caller = makeCaller(service.url, await givenToken(user, { proven_at: null }));
    const { subject } = await givenLinked(user);
    const stranger = (await givenLinked(await givenUser())).subject;

    expect(await refusal(sso(stranger, { caller, purpose: 'prove' }))).toMatchObject({ status: 403 });
    expect(await refusal(sso(subject, { caller, purpose: 'prove' }))).toMatchObject({ reason: 'code_required' });
    const proven = await sso(subject, { caller, purpose: 'prove', more: { code: codeAt(0) } });
    expect(proven).toMatchObject({ id: user.id });
  });

  it('is given by a sign-in only if the person had to sign in there', async () => {
    const { subject } = givenPerson();
    const browser = company.browser();
    const provenBy = async () => {
      const { url, finish } = await startSso(makeCaller(service.url));
      const { token } = await finish(await browser.signIn(url.href, subject));
      return (await stored('sessions', sessionOf(makeCaller(service.url, token!)))).proven_at;
    };
    expect(await provenBy()).not.toBeNull();

    // The provider remembers them; the sign-in there is made older than this one.
    const { url, finish } = await startSso(makeCaller(service.url));
    await query(await testDb(), sql`update sso_flows set created_at = now() + interval '1 minute'`);
    const { token } = await finish(await browser.signIn(url.href, subject));

    expect((await stored('sessions', sessionOf(makeCaller(service.url, token!)))).proven_at).toBeNull();
  });
});

describe('groups', () => {
  const rolesOf = async (user: { id: number }) =>
    Object.fromEntries(
      (
        await query(
          await testDb(),
          sql<{ project_id: number; role: string }>`select project_id, role from members where user_id = ${user.id}`,
        )
      ).map(({ project_id, role }) => [project_id, role]),
    );

  it('make, change and remove memberships at each sign-in; unknown and inactive projects are skipped', async () => {
    const { team, other } = projects;
    const { subject } = givenPerson({ groups: ['readers', 'others', 'idle', 'unknown', 'whatever'] });
    let user!: { id: number };

    const added = await eventsOf(async () => {
      user = await sso(subject);
    });
    expect(await rolesOf(user)).toEqual({ [team.id]: 'viewer', [other.id]: 'member' });
    expect(added.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['user.created', 'identity.linked', 'member.added', 'session.started']),
    );

    company.people[subject]!.groups = ['readers', 'writers'];
    const changed = await eventsOf(() => sso(subject));
    expect(await rolesOf(user)).toEqual({ [team.id]: 'member' });
    expect(changed.map(({ type }) => type)).toEqual(expect.arrayContaining(['member.updated', 'member.removed']));

    delete company.people[subject]!.groups;
    await sso(subject);
    expect(await rolesOf(user)).toEqual({});
  });

  it('leave memberships by hand as they are, also after somebody has changed one of theirs', async () => {
    const { team, other } = projects;
    const { asSuperadmin } = await givenWorld(service);
    const { subject } = givenPerson({ groups: ['readers'] });
    const user = await sso(subject);
    await givenMember(user, other, 'owner');
    await asSuperadmin.rpc.members.set.mutate({ project_id: team.id, user_id: user.id, role: 'owner' });

    company.people[subject]!.groups = [];
    await sso(subject);

    expect(await rolesOf(user)).toEqual({ [team.id]: 'owner', [other.id]: 'owner' });
  });
});

describe('a session', () => {
  it('ends after the hours of the issuer', async () => {
    const { caller } = await sso(givenPerson().subject);

    const { created_at, expires_at } = await stored('sessions', sessionOf(caller));
    expect((new Date(expires_at).getTime() - new Date(created_at).getTime()) / 60_000).toBeCloseTo(60, 1);
    const { iat, exp } = JSON.parse(atob(`${caller.token}`.split('.')[1]!));
    expect(exp - iat, 'what the token says').toBe(60 * 60);
  });

  it('ends when the identity is unlinked, which the last way in can not be', async () => {
    const user = await givenUser();
    const { subject, identityId } = await givenLinked(user);
    const { caller } = await sso(subject);
    const byPassword = makeCaller(service.url, await givenToken(user));

    await byPassword.rpc.account.unlinkIdentity.mutate({ id: identityId });

    expect([await isSignedIn(caller), await isSignedIn(byPassword)]).toEqual([false, true]);
    const only = await sso(givenPerson().subject);
    const { id } = (await only.caller.rpc.account.listIdentities.query({})).identities[0]!;
    const { rpc } = only.caller;
    expect(await refusal(rpc.account.unlinkIdentity.mutate({ id }))).toMatchObject({
      status: 400,
      reason: 'last_way_in',
    });
    expect(await refusal(byPassword.rpc.account.unlinkIdentity.mutate({ id }))).toMatchObject({ status: 404 });
  });

  it('ends by back-channel logout, and no other one', async () => {
    const { subject } = givenPerson();
    const [first, second, other] = [await sso(subject), await sso(subject), await sso(givenPerson().subject)];
    const { issuer_session } = await stored('sessions', sessionOf(first.caller));

    await company.logOut(subject, issuer_session);

    const callers = [first.caller, second.caller, other.caller];
    expect(await Promise.all(callers.map(isSignedIn))).toEqual([false, true, true]);
  });

  it('400, not cached, for a logout token that is missing or forged', async () => {
    for (const logout_token of ['', 'e30.e30.e30', 'x'.repeat(5000)]) {
      const answer = await fetch(`${service.url}/sso/logout/company`, {
        method: 'POST',
        body: new URLSearchParams({ logout_token }),
      });
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([400, 'no-store']);
    }
  });

  it('ends when the settings no longer have its issuer', async () => {
    const { subject } = await givenLinked(await givenUser(), partner);
    const [gone, stays] = [await sso(subject, { provider: partner }), await sso(givenPerson().subject)];
    const settings = JSON.parse(JSON.stringify([company.settings({ scopes: 'openid', groups: {}, trusted_amr: [] })]));
    const identityProviders = makeIdentityProviders(settings, console as never);

    expect(await endSessionsOfOthers(await testDb(), { identityProviders })).toBeGreaterThan(0);

    expect([await isSignedIn(gone.caller), await isSignedIn(stays.caller)]).toEqual([false, true]);
  });

  it('403 for a deactivated user', async () => {
    const { subject } = await givenLinked(await givenUser({ is_active: false }));

    expect(await refusal(sso(subject))).toMatchObject({ status: 403, reason: 'sso_refused' });
  });
});

describe('a logout token', () => {
  it('works once: it ends no session that was opened after it', async () => {
    const { subject } = givenPerson();
    const first = await sso(subject);
    const { issuer_session } = await stored('sessions', sessionOf(first.caller));
    let sent = '';
    const received = createServer(async (request, response) => {
      sent = await text(request);
      response.end();
    });
    await new Promise<void>((resolve) => received.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void received.close());
    await company.logOut(subject, issuer_session, `http://127.0.0.1:${(received.address() as AddressInfo).port}`);
    const logOut = async () => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      return (await fetch(`${service.url}/sso/logout/company`, { method: 'POST', headers, body: sent })).status;
    };

    expect(await logOut()).toBe(200);
    await query(await testDb(), sql`update sessions set revoked_at = null where issuer_session = ${issuer_session}`);
    expect(await logOut()).toBe(400);

    expect(await isSignedIn(first.caller)).toBe(true);
  });
});

describe('the callback', () => {
  it('is the page for browsers, and for a command only its port on the machine of the person', async () => {
    const open = (state: string) =>
      fetch(`${service.url}/sso/callback/company?code=x&state=${state}`, { redirect: 'manual' });
    const inBrowser = await startSso(makeCaller(service.url));
    const inCommand = await startSso(makeCaller(service.url), { loopback_port: 45678 });

    const [page, unknown, sent] = [await open(inBrowser.state), await open('unknown'), await open(inCommand.state)];

    expect([page.status, unknown.status, sent.status]).toEqual([200, 200, 302]);
    expect(sent.headers.get('location')).toBe(`http://127.0.0.1:45678/callback?code=x&state=${inCommand.state}`);
  });
});

describe('the answer of a provider that a sign-in was not started at', () => {
  it.each(['/sso/callback/company', '/sso/callback'])(
    'at %s ends the sign-in: its code is sent to nobody',
    async (address) => {
      const user = await givenUser();
      const { subject } = await givenLinked(user);
      const atPartner = await startSso(makeCaller(service.url), { issuer: 'partner' });
      // A partner who cheats leads the browser on to the company, with the state of the sign-in at the partner.
      const atCompany = await startSso(makeCaller(service.url), { issuer: 'company' });
      const callback = await company.browser().signIn(atCompany.url.href, subject);
      callback.searchParams.set('state', atPartner.state);

      const answer = await fetch(`${service.url}${address}${callback.search}`);

      expect(answer.status).toBe(200);
      expect(await refusal(atPartner.finish(callback))).toMatchObject({ status: 400, reason: 'sso_expired' });
    },
  );

  it('is no concern of a service with one provider', async () => {
    const one = await givenService({ SSO_ISSUERS: JSON.stringify([company.settings()]) });
    onTestFinished(async () => void (await one.app.close()));

    const { url } = await startSso(makeCaller(one.url));

    expect(url.searchParams.get('redirect_uri')).toBe(`${one.url}/sso/callback`);
  });
});

describe('the last superadmin with a password', () => {
  it('400 last_superadmin: keeps the right and stays active, also if two leave at once', async () => {
    const { asSuperadmin, users } = await givenWorld(service);
    await query(await testDb(), sql`update users set superadmin = id = ${users.superadmin.id}`);
    await givenUser({ superadmin: true, password_hash: null });
    const { id } = users.superadmin;
    const { rpc } = asSuperadmin;
    const last = { status: 400, reason: 'last_superadmin' };

    expect(await refusal(rpc.users.update.mutate({ id, superadmin: false }))).toMatchObject(last);
    expect(await refusal(rpc.users.update.mutate({ id, is_active: false }))).toMatchObject(last);
    const second = await givenUser({ superadmin: true });
    const asSecond = makeCaller(service.url, await givenToken(second));
    const answers = await Promise.all([
      refusal(rpc.users.update.mutate({ id: second.id, superadmin: false })),
      refusal(asSecond.rpc.users.update.mutate({ id, superadmin: false })),
    ]);

    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
  });
});

describe('deckhand login --sso', () => {
  it('signs in with a browser on the same machine, and keeps the token', async () => {
    const HOME = await givenDirectory();
    const terminal = givenTerminal();
    const { subject, email } = givenPerson();
    // The first window of a browser is a program that does not end.
    const BROWSER = `${process.execPath} -e setTimeout(Object,3000)`;
    const command = (words: string) => runCommandLine(words.split(' '), () => ({ HOME, BROWSER }), terminal);
    const run = command(`login --url ${service.url} --sso company`);
    await vi.waitFor(() => expect(terminal.shown.join('')).toContain(company.url));
    const [, address = ''] = terminal.shown.join('').split('\n');

    const callback = await company.browser().signIn(address, subject);
    const sent = await fetch(callback, { redirect: 'manual' });
    const port = new URL(sent.headers.get('location')!);
    expect((await fetch(`${port.origin}/callback?code=x&state=wrong`)).status).toBe(404);
    expect((await fetch(port)).status).toBe(200);

    expect(await run).toMatchObject({ exitCode: 0, printed: expect.stringContaining(`as Ann (${email}) until`) });
    expect((await command(`account who-am-i --url ${service.url}`)).printed).toContain(email);
  });

  it.each(['file:///etc/passwd', '--version', 'C:\\calc.exe', 'javascript:alert(1)'])(
    '1 for a service that sends %s, which is nothing to open in a browser',
    async (url) => {
      const hostile = createServer((_request, response) => {
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ result: { data: { json: { url, state: 'x' } } } }));
      });
      await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void hostile.close());
      const { port } = hostile.address() as AddressInfo;
      const terminal = givenTerminal();
      const words = `login --url http://127.0.0.1:${port} --sso company`.split(' ');

      expect(await runCommandLine(words, () => ({ BROWSER: 'true' }), terminal)).toMatchObject(
        failure(1, 'no address'),
      );
      expect(terminal.shown.join('')).not.toContain(url);
    },
  );

  it('2 without a name where there are several, or without --sso', async () => {
    const command = (words: string) => runCommandLine(words.split(' '), () => ({}), givenTerminal());

    expect(await command(`login --url ${service.url} --sso`)).toMatchObject(failure(2, 'company, partner'));
    expect(await command(`login company --email a@b.test --url ${service.url}`)).toMatchObject(failure(2, '--sso'));
  });
});
