import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeCaller } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { eventsOf } from '../harness/events.ts';
import { givenService, testService, withOwnService } from '../harness/service.ts';
import {
  givenInvitation,
  givenLink,
  givenProject,
  givenServiceAccount,
  givenToken,
  givenUser,
  givenWorld,
  insert,
  PASSWORD,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

withOwnService();

const LINK_INVALID = '400 link_invalid';
const newEmail = () => `${randomUUID()}@example.test`;
const callerOf = async (user?: TestUser) => makeCaller((await testService()).url, user && (await givenToken(user)));
const mailsTo = async (email: string) =>
  (
    await query(
      await testDb(),
      sql<{ kind: string; state: string }>`select kind, state from mails where email = ${email} order by id`,
    )
  ).map(({ kind, state }) => `${kind} ${state}`);
const addressLink = ({ id: user_id }: TestUser, email: string) =>
  givenLink({ kind: 'address_confirmation', email, user_id });

describe('account.changeAddress', () => {
  it('queues a mail to the new address, once, and changes nothing yet', async () => {
    const user = await givenUser();
    const { rpc } = await callerOf(user);
    const email = newEmail();

    await rpc.account.changeAddress.mutate({ email });
    await rpc.account.changeAddress.mutate({ email });

    expect(await mailsTo(email)).toEqual(['address_confirmation waiting']);
    expect(await stored('users', user.id)).toMatchObject({ email: user.email });
  });

  it('answers the same for the address of somebody else, and 422 for the own one and that of a service', async () => {
    const other = await givenUser();
    const user = await givenUser();
    const { post } = await callerOf(user);
    const change = async (email: string) => {
      const { status, body } = await post('/v1/account/change-address', { email });
      return { status, body };
    };

    expect(await change(other.email)).toEqual(await change(newEmail()));
    expect(await change(user.email.toUpperCase())).toMatchObject({ status: 422 });
    expect(await change('service-1@service.invalid')).toMatchObject({ status: 422 });
  });

  it('422 without fresh proof, 400 without a mail server, 429 after ten in a day', async () => {
    const user = await givenUser();
    const unproven = makeCaller((await testService()).url, await givenToken(user, { proven_at: new Date(0) }));
    const { url, app } = await givenService({}, { sendsMail: false });
    const withoutMail = makeCaller(url, await givenToken(user));
    const { rpc } = await callerOf(user);
    const change = (by: typeof rpc) => reasonOf(by.account.changeAddress.mutate({ email: newEmail() }));

    expect(await change(unproven.rpc)).toBe('422 proof_required');
    expect(await change(withoutMail.rpc)).toBe('400 mail_not_configured');
    for (let count = 0; count < 10; count++) await rpc.account.changeAddress.mutate({ email: newEmail() });
    expect(await change(rpc)).toBe('429 too_many_mails');
    await app.close();
  });
});

describe('account.requestConfirmation', () => {
  it('queues a mail to the own address, unless it is confirmed', async () => {
    const [confirmed, unconfirmed] = [await givenUser(), await givenUser({ email_confirmed_at: null })];

    for (const user of [confirmed, unconfirmed]) await (await callerOf(user)).rpc.account.requestConfirmation.mutate();

    expect(await mailsTo(confirmed.email)).toEqual([]);
    expect(await mailsTo(unconfirmed.email)).toEqual(['address_confirmation waiting']);
  });
});

describe('account.confirmAddress', () => {
  it('changes the address, tells the old one, and ends open links of both', async () => {
    const user = await givenUser();
    const { id: user_id, email: before } = user;
    const email = newEmail();
    const { rpc } = await callerOf(user);
    const secret = await addressLink(user, email);
    const project = await givenProject();
    const invitation_id = await givenInvitation(project, { email: before });
    const invitation = await givenLink({ kind: 'invitation', email: before, invitation_id });
    const reset = await givenLink({ kind: 'password_reset', email: before, user_id });
    const further = await addressLink(user, newEmail());
    await insert('mails', { kind: 'password_reset', email: email.toUpperCase() });

    const events = await eventsOf(async () => {
      expect(await rpc.account.confirmAddress.mutate({ secret })).toEqual({ email });
    });

    expect(events).toMatchObject([{ type: 'user.updated', data: { fields: ['email', 'email_confirmed_at'] } }]);
    expect(await stored('users', user_id)).toMatchObject({ email });
    expect((await mailsTo(before)).at(-1)).toBe('address_changed waiting');
    expect(await mailsTo(email.toUpperCase())).toEqual(['password_reset dropped']);
    for (const used of [secret, further])
      expect(await reasonOf(rpc.account.confirmAddress.mutate({ secret: used }))).toBe(LINK_INVALID);
    expect(await reasonOf(rpc.account.resetPassword.mutate({ secret: reset, new_password: PASSWORD }))).toBe(
      LINK_INVALID,
    );
    expect(await reasonOf(rpc.account.showInvitation.query({ secret: invitation }))).toBe(LINK_INVALID);
    // The invitation itself waits for whoever has the address.
    expect(await stored('invitations', invitation_id)).toMatchObject({ email: before });
    expect((await rpc.account.whoAmI.query()).account.email).toBe(email);
  });

  it('403 for another account, which could collect the invitations of the address otherwise', async () => {
    const [attacker, victim] = [await givenUser(), await givenUser()];
    const secret = await addressLink(attacker, victim.email);
    const { rpc } = await callerOf(victim);

    expect(await reasonOf(rpc.account.confirmAddress.mutate({ secret }))).toBe('403 other_user');
    expect(await reasonOf((await callerOf()).rpc.account.confirmAddress.mutate({ secret }))).toBe('401 not_signed_in');
    expect(await stored('users', attacker.id)).toMatchObject({ email: attacker.email });
  });

  it('422 if the address belongs to somebody by now, and of two at once, one gets it', async () => {
    const [first, second] = [await givenUser(), await givenUser()];
    const email = newEmail();
    const confirm = async (user: TestUser) =>
      (await callerOf(user)).rpc.account.confirmAddress.mutate({ secret: await addressLink(user, email) });

    const outcomes = await Promise.allSettled([confirm(first), confirm(second)]);

    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const loser = outcomes[0]!.status === 'fulfilled' ? second : first;
    expect(await reasonOf(confirm(loser))).toBe('422 already_exists');
  });

  it('400 after a superadmin changed the address meanwhile', async () => {
    const user = await givenUser();
    const superadmin = await givenUser({ superadmin: true });
    const secret = await addressLink(user, newEmail());
    await (await callerOf(superadmin)).rpc.users.update.mutate({ id: user.id, email: newEmail() });

    expect(await reasonOf((await callerOf(user)).rpc.account.confirmAddress.mutate({ secret }))).toBe(LINK_INVALID);
  });
});

describe('an address that a superadmin enters', () => {
  it('is confirmed; the old one is told, and open links end', async () => {
    const [user, unconfirmed] = [await givenUser(), await givenUser({ email_confirmed_at: null })];
    const { rpc } = await callerOf(await givenUser({ superadmin: true }));
    const email = newEmail();
    const reset = await givenLink({ kind: 'password_reset', email: user.email, user_id: user.id });

    const { user: updated } = await rpc.users.update.mutate({ id: user.id, email });

    expect(updated).toMatchObject({ email, email_confirmed_at: expect.any(Date), has_password: true });
    expect((await mailsTo(user.email)).at(-1)).toBe('address_changed waiting');
    const entered = await rpc.users.update.mutate({ id: unconfirmed.id, email: newEmail() });
    expect(entered.user.email_confirmed_at).toEqual(expect.any(Date));
    expect(await mailsTo(unconfirmed.email)).toEqual([]);
    expect(await reasonOf(rpc.account.resetPassword.mutate({ secret: reset, new_password: PASSWORD }))).toBe(
      LINK_INVALID,
    );
  });
});

describe('an address that nobody has confirmed', () => {
  it('403 for its invitations, until the link of one confirms it', async () => {
    const project = await givenProject();
    const user = await givenUser({ email_confirmed_at: null });
    const { email } = user;
    const id = await givenInvitation(project, user);
    const secret = await givenLink({ kind: 'invitation', email, invitation_id: id });
    const others = await givenLink({
      kind: 'invitation',
      email: newEmail(),
      invitation_id: await givenInvitation(project, { email: newEmail() }),
    });
    const { rpc } = await callerOf(user);
    const accept = (secret?: string) => rpc.account.acceptInvitation.mutate({ id, secret });

    expect(await reasonOf(rpc.account.listInvitations.query({}))).toBe('403 address_unconfirmed');
    expect(await reasonOf(rpc.account.declineInvitation.mutate({ id }))).toBe('403 address_unconfirmed');
    expect(await reasonOf(accept())).toBe('403 address_unconfirmed');
    expect(await reasonOf(accept(others))).toBe(LINK_INVALID);

    expect((await accept(secret)).member).toMatchObject({ user_id: user.id, role: 'member' });
    expect((await rpc.account.whoAmI.query()).account.email_confirmed_at).toEqual(expect.any(Date));
  });

  it('gets the mails of an address whose letters the database takes for the same', async () => {
    const { asOwner, asMember } = await givenWorld();
    const mailbox = randomUUID();
    const { invitation } = await asOwner.rpc.members.invite.mutate({
      email: `${mailbox}i@example.test`,
      role: 'member',
    });
    await asMember.rpc.account.changeAddress.mutate({ email: `${mailbox}\u0130@example.test` });

    expect(await mailsTo(`${mailbox}\u0130@example.test`)).toEqual([]);
    expect(await mailsTo(invitation.email)).toEqual(['invitation waiting', 'address_confirmation waiting']);
  });

  it('is not added by a superadmin who names it', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const { email } = await givenUser({ email_confirmed_at: null });

    const added = asSuperadmin.rpc.members.add.mutate({ project_id: project.id, email, role: 'viewer' });

    expect(await reasonOf(added)).toBe('422 not_registered');
  });
});

describe('the mail of an invitation', () => {
  it('is queued once in five minutes, whoever has the address, and not without a mail server', async () => {
    const world = await givenWorld();
    const { asOwner, project, users } = world;
    const { url, app } = await givenService({}, { sendsMail: false });
    const [unknown, silent] = [newEmail(), newEmail()];
    const invite = (email: string) => asOwner.rpc.members.invite.mutate({ email, role: 'viewer' });

    for (const email of [users.outsider.email, unknown, unknown]) await invite(email);
    await makeCaller(url, asOwner.token).rpc.members.invite.mutate({ email: silent, role: 'viewer' });

    for (const email of [users.outsider.email, unknown]) expect(await mailsTo(email)).toEqual(['invitation waiting']);
    expect(await mailsTo(silent)).toEqual([]);
    await query(
      await testDb(),
      sql`update mails set state = 'sent', created_at = created_at - interval '6 minutes' where email = ${unknown}`,
    );
    await invite(unknown);
    expect(await mailsTo(unknown)).toEqual(['invitation sent', 'invitation waiting']);
    expect(project.id).toBeGreaterThan(0);
    await app.close();
  });

  it('429 for more than 20 to one address in an hour, also if each is withdrawn', async () => {
    const { asOwner } = await givenWorld();
    const email = newEmail();
    const invite = async () => (await asOwner.rpc.members.invite.mutate({ email, role: 'viewer' })).invitation.id;
    for (let count = 0; count < 20; count++)
      await asOwner.rpc.members.withdrawInvitation.mutate({ id: await invite() });

    expect(await reasonOf(invite())).toBe('429 too_many_mails');
  });
});

describe('account.signUp', () => {
  const givenInvited = async (email = newEmail(), state: object = {}) => {
    const project = await givenProject({ name: 'Harbour' });
    const owner = await givenUser({ project, role: 'owner', name: 'Olga' });
    const invitation_id = await givenInvitation(project, { email }, { invited_by: owner.id, ...state });
    return {
      project,
      owner,
      email,
      invitation_id,
      secret: await givenLink({ kind: 'invitation', email, invitation_id }),
    };
  };
  const signUp = async (secret: string) =>
    (await callerOf()).rpc.account.signUp.mutate({ secret, name: 'Ann', password: 'a sentence of many words' });

  it('creates the account with the confirmed address, and makes it a member', async () => {
    const { project, email, secret, invitation_id } = await givenInvited();
    const { rpc } = await callerOf();

    const shown = await rpc.account.showInvitation.query({ secret });
    const { token, project_id } = await signUp(secret);

    expect(shown.invitation).toEqual({
      id: invitation_id,
      email,
      project_name: 'Harbour',
      role: 'member',
      invited_by_name: 'Olga',
      has_account: false,
    });
    expect(project_id).toBe(project.id);
    const { account } = await makeCaller((await testService()).url, token).rpc.account.whoAmI.query();
    expect(account).toMatchObject({ name: 'Ann', email, email_confirmed_at: expect.any(Date), superadmin: false });
    expect(account.default_project_id).toBe(project.id);
    expect(await reasonOf(signUp(secret))).toBe(LINK_INVALID);
  });

  it('422 if the address has an account: its user signs in and accepts', async () => {
    const user = await givenUser();
    const { secret, invitation_id: id } = await givenInvited(user.email.toUpperCase());
    const { rpc } = await callerOf(user);

    expect((await rpc.account.showInvitation.query({ secret })).invitation.has_account).toBe(true);
    expect(await reasonOf(signUp(secret))).toBe('422 already_exists');
    await rpc.account.acceptInvitation.mutate({ id, secret });
  });

  it('works once of two at the same moment, or of two invitations to an address', async () => {
    const email = newEmail();
    const [first, second] = [await givenInvited(email), await givenInvited(email)];

    const outcomes = await Promise.allSettled([signUp(first.secret), signUp(first.secret), signUp(second.secret)]);

    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('400 once it is withdrawn, its sender left, the project is inactive, or the link is of another kind', async () => {
    const change = async (statement: ReturnType<typeof sql>) => query(await testDb(), statement);
    const [withdrawn, left, inactive] = [await givenInvited(), await givenInvited(), await givenInvited()];
    await change(sql`delete from invitations where id = ${withdrawn.invitation_id}`);
    await change(sql`delete from members where user_id = ${left.owner.id}`);
    await change(sql`update projects set is_active = false where id = ${inactive.project.id}`);
    const reset = await givenLink({ kind: 'password_reset', email: newEmail() });

    for (const secret of [withdrawn.secret, left.secret, inactive.secret, reset])
      expect(await reasonOf(signUp(secret))).toBe(LINK_INVALID);
  });

  it('has no link for a service', async () => {
    const { asOwner } = await givenWorld();
    const { email } = await givenServiceAccount({ email: `service-${randomUUID()}@service.invalid` });

    expect(await reasonOf(asOwner.rpc.members.invite.mutate({ email, role: 'viewer' }))).toBe('422 invalid_input');
    expect(await mailsTo(email)).toEqual([]);
  });
});
