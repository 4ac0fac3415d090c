import { sql } from 'kysely';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { remindersOf, resumeWebhooks } from '../../server/database/level.ts';
import { query, transact } from '../../server/database/query.ts';
import { removeSome } from '../../server/database/removal.ts';
import { findLink } from '../../server/domain/mail/link.ts';
import { callForMail, type QueuedMail, queueMails } from '../../server/domain/mail/mail.ts';
import { mailRemoval } from '../../server/domain/mail/mailList.ts';
import {
  claimMail,
  LONGEST_ATTEMPT_MILLISECONDS,
  mailCounts,
  measureMails,
  recordFailure,
  recordSent,
} from '../../server/domain/mail/mailQueue.ts';
import { showOn, startMails } from '../../server/domain/mail/mailWork.ts';
import type { Mailing } from '../../server/domain/mail/sending.ts';
import { linkOf, writeMail } from '../../server/domain/mail/text.ts';
import { MailFailure, makeSmtp, SMTP_LIMITS } from '../../server/security/smtp.ts';
import type { MailKind } from '../../shared/mail.ts';
import { makeCaller } from '../harness/caller.ts';
import { codeAt, givenProtectedUser, holdTimeStep, SECRET } from '../harness/codes.ts';
import { BASE, type Behaviour, givenMailServer, MAIL_FROM, type MailServer } from '../harness/mailServer.ts';
import { givenService, type TestService, withOwnDatabase } from '../harness/service.ts';
import { fakeTimers, realSetTimeout, replaceTimers } from '../harness/timers.ts';
import { givenInvitation, givenToken, givenUser, givenWorld, PASSWORD, testDb } from '../harness/world.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let server: MailServer;
let service: TestService;
withOwnDatabase();
beforeAll(async () => {
  server = await givenMailServer();
  service = await givenService(server.settings);
});
afterAll(async () => {
  await service.app.close();
  await server.close();
});
beforeEach(async () => {
  server.behave('take');
  server.received.length = 0;
  await change(sql`delete from mails`);
});

const change = async (statement: ReturnType<typeof sql<any>>) => query(await testDb(), statement);
const mails = () => change(sql`select * from mails order by id`);
const links = () => change(sql`select mail_id, extract(epoch from expires_at - now())::int as seconds from mail_links`);
const queue = async (...queued: QueuedMail[]) =>
  queueMails({ db: await testDb(), services: { sendsMail: true } }, queued);
const world = () => givenWorld(service);

/** An invitation by the owner of a project, queued as a mail. */
async function givenInvited(email: string, { project: name = 'Garden', inviter = 'Ann' } = {}) {
  const given = await world();
  await change(sql`update projects set name = ${name} where id = ${given.project.id}`);
  await change(sql`update users set name = ${inviter} where id = ${given.users.owner.id}`);
  const invitation_id = await givenInvitation(given.project, { email }, { invited_by: given.users.owner.id });
  await queue({ kind: 'invitation', email, invitation_id });
  return { ...given, invitation_id };
}

describe('the text', () => {
  it('of an invitation names project, role and inviter, with a link for 7 days', async () => {
    await givenInvited('new@example.test');

    const [mail] = await server.sendDue();

    expect(mail).toMatchObject({
      to: ['new@example.test'],
      from: 'deckhand@mail.test',
      subject: 'Invitation to the project "Garden"',
      link: `${BASE}/invitation#${mail!.secret}`,
    });
    expect(mail!.text).toMatch(/^"Ann" has invited you to the project "Garden", with the role member\./);
    expect(mail!.headers).toMatchObject({ from: MAIL_FROM, 'auto-submitted': 'auto-generated' });
    expect(await links()).toEqual([{ mail_id: (await mails())[0].id, seconds: expect.closeTo(7 * 86_400, -2) }]);
  });

  it('of a reset has a link for 30 minutes, to the address of the account', async () => {
    const user = await givenUser();
    await queue({ kind: 'password_reset', email: user.email.toUpperCase() });

    const [mail] = await server.sendDue();

    expect(mail).toMatchObject({ to: [user.email], subject: 'Set a new password' });
    expect(mail!.link).toBe(`${BASE}/reset-password#${mail!.secret}`);
    expect(mail!.html).toContain(`<a href="${mail!.link}">`);
    expect(mail!.html).not.toMatch(/<img|<style|<script|style=/);
    expect(await mails()).toMatchObject([{ state: 'sent', user_id: user.id, sent_at: expect.any(Date), error: null }]);
    expect(await links()).toMatchObject([{ seconds: expect.closeTo(1800, -2) }]);
    expect(await findLink(await testDb(), 'password_reset', mail!.secret!)).toMatchObject({ user_id: user.id });
  });

  it('of a reset without a password has no link, and says how to sign in', () => {
    const facts = { kind: 'password_reset', hasPassword: false, to: 'a@example.test', when: new Date() } as const;

    expect(linkOf(facts)).toBeUndefined();
    expect(writeMail(facts, BASE).text).toContain('sign in with the single sign-on of your organization');
  });

  it('of a confirmation has a link for a day, to the new address', async () => {
    const user = await givenUser();
    await queue({ kind: 'address_confirmation', email: 'other@example.test', user_id: user.id });

    const [mail] = await server.sendDue();

    expect(mail).toMatchObject({ to: ['other@example.test'], link: `${BASE}/confirm-address#${mail!.secret}` });
    expect(await links()).toMatchObject([{ seconds: expect.closeTo(86_400, -2) }]);
  });

  it.each<[MailKind, string]>([
    ['password_changed', 'The password of your account'],
    ['address_changed', 'The e-mail address of your account'],
    ['second_factor_enabled', 'A second factor of your account'],
    ['second_factor_dropped', 'The second factor of your account'],
    ['identity_linked', 'An account at an identity provider'],
    ['key_created', 'An API key of your account ("<b>CI</b> Bcc: x＠example․test")'],
  ])('of %s says what happened, when, and what to do; no link', async (kind, happened) => {
    const user = await givenUser();
    const data = { by_superadmin: true, ...(kind === 'key_created' && { name: '<b>CI</b>\r\nBcc: x@example.test' }) };
    await queue({ kind, email: user.email, user_id: user.id, data });
    await change(sql`update mails set created_at = '2026-01-31T09:30:15Z'`);

    const [mail] = await server.sendDue();

    expect(mail!.text).toContain(`${happened} at ${BASE} was `);
    expect(mail!.text).toMatch(/A superadmin of the service did it\. Time: 2026-01-31 09:30 UTC\.\n/);
    expect(mail!.text).toContain('If it was not you, sign in, change your password');
    expect(mail!.html).not.toContain('<b>');
    expect(await links()).toEqual([]);
  });

  it('has names in which mail programs find no address to make a link of', async () => {
    const project = 'Pay at https://evil.example/x or evil.example, e.g. by a@evil.example';
    await givenInvited('new@example.test', { project, inviter: 'www.evil.example' });

    const [mail] = await server.sendDue();

    const own = [mail!.subject, mail!.text, mail!.html].join().replaceAll(BASE, '');
    expect(own).not.toMatch(/\w\.(example|evil)|@evil|s:\/\/evil/);
    expect(mail!.text).toContain('"Pay at https꞉//evil․example/x or evil․example, e․g. by a＠evil․example"');
  });

  it('takes names and addresses as text: no headers, no lines, no HTML', async () => {
    const name = 'Evil"\r\nBcc: victim@example.test\r\n\r\n<script>\u202e';
    await givenInvited('one@example.test', { project: `${name}${'x'.repeat(200)}`, inviter: name });
    await givenInvited('two@example.test\r\nBcc: victim@example.test');
    await givenInvited('three@example.test, victim@example.test');

    const sent = await server.sendDue();

    expect(sent.map(({ to }) => to)).toEqual([['one@example.test']]);
    const [{ headers, html, raw, subject }] = sent as [(typeof sent)[number]];
    expect(Object.keys(headers)).not.toContain('bcc');
    expect(raw).not.toMatch(/^bcc/im);
    expect(subject).toMatch(/^Invitation to the project "Evil" Bcc: victim＠example․test <script> x+…"$/);
    expect(html).not.toContain('<script>');
    expect(await mails()).toMatchObject([{ state: 'sent' }, { state: 'failed', failures: 1 }, { state: 'failed' }]);
  });
});

describe('the order', () => {
  it('is resets, confirmations, notices, invitations; the oldest first', async () => {
    const [first, second] = [await givenUser(), await givenUser()];
    await queue({ kind: 'key_created', email: first.email, user_id: first.id });
    await givenInvited('new@example.test');
    await queue({ kind: 'address_confirmation', email: 'other@example.test', user_id: first.id });
    for (const { email } of [first, second]) await queue({ kind: 'password_reset', email });

    const sent = await server.sendDue({ at: Date.now() + SECOND });

    expect(sent.map(({ subject }) => subject.slice(0, 10))).toEqual(
      ['Set a new password', 'Set a new password', 'Confirm', 'A new API key', 'Invitation'].map((it) =>
        expect.stringContaining(it.slice(0, 7)),
      ),
    );
    expect(sent.slice(0, 2).map(({ to }) => to[0])).toEqual([first.email, second.email]);
  });

  it('is found without reading all mails that wait, as after a failure of the mail server', async () => {
    await change(
      sql`insert into mails (kind, email) select 'password_reset', n || '@example.test' from generate_series(1, 2000) as n`,
    );
    const read = await transact(await testDb(), async (db) => {
      expect(await claimMail({ db })).toMatchObject({ email: '1@example.test' });
      return query(
        db,
        sql<{ rows: number }>`
          select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'mails'`,
      );
    });

    // Rows that earlier tests have deleted count, too.
    expect(read[0]!.rows).toBeLessThan(500);
  });
});

describe('a mail is dropped', () => {
  it.each<[string, () => Promise<unknown>]>([
    ['a reset for an address that nobody has', () => queue({ kind: 'password_reset', email: 'nobody@example.test' })],
    ['a reset for an address that is not confirmed', () => givenReset({ email_confirmed_at: null })],
    ['a reset for a deactivated user', () => givenReset({ is_active: false })],
    ['a reset for a service', () => givenReset({ kind: 'service', password_hash: null })],
    [
      'a reset of two days ago',
      async () => {
        await givenReset({});
        await change(sql`update mails set created_at = now() - interval '49 hours'`);
      },
    ],
    [
      'an invitation whose sender may no longer invite',
      async () => {
        const { project, users } = await givenInvited('new@example.test');
        await change(sql`delete from members where project_id = ${project.id} and user_id = ${users.owner.id}`);
      },
    ],
    [
      'a confirmation of an address that another user has by now',
      async () => {
        const [user, other] = [await givenUser(), await givenUser()];
        await queue({ kind: 'address_confirmation', email: other.email, user_id: user.id });
      },
    ],
    [
      'a notice to a deactivated user',
      async () => {
        const { id, email } = await givenUser({ is_active: false });
        await queue({ kind: 'password_changed', email, user_id: id });
      },
    ],
  ])('%s', async (_, given) => {
    await given();

    expect(await server.sendDue()).toEqual([]);
    expect(await mails()).toMatchObject([{ state: 'dropped', failures: 0, leased_until: null }]);
    expect(await links()).toEqual([]);
  });

  it('with its invitation, if that is withdrawn', async () => {
    const { asOwner, invitation_id } = await givenInvited('new@example.test');
    await asOwner.rpc.members.withdrawInvitation.mutate({ id: invitation_id });

    expect(await server.sendDue()).toEqual([]);
    expect(await mails()).toEqual([]);
  });
});

async function givenReset(state: object) {
  const user = await givenUser(state);
  await queue({ kind: 'password_reset', email: user.email });
  return user;
}

describe('a failed attempt', () => {
  it('is repeated for 24 hours, until the mail has failed; a superadmin sees it, and retries', async () => {
    const { asSuperadmin } = await world();
    await givenReset({});
    server.behave('defer');
    const begun = Date.now();
    const error = 'The mail server refused the recipient: 451 4.7.1 Try again later';
    let at = begun + SECOND;
    const pauses: number[] = [];
    for (let failures = 1; failures < 9; failures++) {
      await server.sendDue({ at });
      const [mail] = await mails();
      expect(mail).toMatchObject({ state: 'waiting', failures, error, leased_until: null });
      pauses.push(Math.round((mail.next_attempt_at.getTime() - at) / SECOND));
      await server.sendDue({ at: mail.next_attempt_at.getTime() - 1 });
      at = mail.next_attempt_at.getTime();
    }
    await server.sendDue({ at });

    expect(pauses).toEqual([10, 60, 300, 1800, 7200, 18_000, 28_800, 28_800]);
    expect(at - begun).toBeLessThan(24 * HOUR);
    const { mails: failed } = await asSuperadmin.rpc.mails.list.query({ state: 'failed' });
    expect(failed).toEqual([expect.objectContaining({ kind: 'password_reset', state: 'failed', failures: 9, error })]);
    expect(await links()).toEqual([]);
    expect(await server.sendDue({ at: at + 24 * HOUR })).toEqual([]);

    server.behave('take');
    const { mail } = await asSuperadmin.rpc.mails.retry.mutate({ id: failed[0]!.id });
    expect(mail).toMatchObject({ state: 'waiting', failures: 0 });
    expect(await server.sendDue()).toHaveLength(1);
    await expect(asSuperadmin.rpc.mails.retry.mutate({ id: mail.id })).rejects.toMatchObject({
      message: 'Only a mail that has failed can be tried again.',
    });
  });

  it('is tried at once if a superadmin says so, while it waits for its next attempt', async () => {
    const { asSuperadmin } = await world();
    await givenReset({});
    server.behave('defer');
    await server.sendDue();
    const [waiting] = await mails();
    server.behave('take');

    expect(await server.sendDue()).toEqual([]);
    await asSuperadmin.rpc.mails.retry.mutate({ id: waiting!.id });
    expect(await server.sendDue()).toHaveLength(1);
  });

  const own = (user = '') => makeSmtp(server.settings.SMTP_URL.replace('//', `//${user}`), MAIL_FROM);
  const impatient = () => makeSmtp(server.settings.SMTP_URL, MAIL_FROM, { greetingTimeout: 400, socketTimeout: 400 });
  it.each<[string, Behaviour, () => ReturnType<typeof makeSmtp>, string, string]>([
    [
      'a refused recipient',
      'refuse',
      own,
      'failed',
      'The mail server refused the recipient: 550 5.1.1 No such user here',
    ],
    ['a refused text', 'refuse text', own, 'failed', 'The mail server refused the message (554 5.7.1).'],
    ['no greeting', 'no greeting', impatient, 'waiting', 'The mail server did not answer in time.'],
    [
      'no answer to the recipient',
      'hang',
      impatient,
      'waiting',
      'The mail server did not answer in time whether it takes the recipient.',
    ],
    ['no answer', 'stall', impatient, 'waiting', 'The mail server did not answer in time whether it takes the text.'],
    ['an ended connection', 'drop', own, 'waiting', 'The mail server closed the connection.'],
    [
      'a wrong password',
      'take',
      () => own('deckhand:wrong-secret@'),
      'waiting',
      'The mail server refused the user or password of SMTP_URL (535 5.7.8).',
    ],
    [
      'no server',
      'take',
      () => makeSmtp('smtp://127.0.0.1:1', MAIL_FROM),
      'waiting',
      "The mail server can't be reached (ECONNREFUSED).",
    ],
  ])('says why: %s', async (_, behaviour, send, state, error) => {
    await givenReset({});
    server.behave(behaviour);

    await server.sendDue({ send: send() });

    expect(await mails()).toMatchObject([{ state, error, failures: 1 }]);
    // Where the mail server may have taken it, its link still works.
    expect(await links()).toHaveLength(['stall', 'drop'].includes(behaviour) ? 1 : 0);
  });

  it('may have sent the mail: it is sent again, and both links work until one is used', async () => {
    await givenReset({});
    server.behave('drop');
    const [first] = await server.sendDue();
    server.behave('take');

    const [second] = await server.sendDue({ at: Date.now() + 11 * SECOND });

    expect(first).toMatchObject({ isAcknowledged: false });
    expect(second!.headers['message-id']).toBe(first!.headers['message-id']);
    for (const { secret } of [first!, second!]) await findLink(await testDb(), 'password_reset', secret!);
  });

  it('is not ended while the mail server may still answer: each answer may take as long as the attempt', () => {
    expect(SMTP_LIMITS.socketTimeout).toBeGreaterThanOrEqual(LONGEST_ATTEMPT_MILLISECONDS);
  });

  const message = { id: 'one', to: 'a@example.test', subject: 'A', text: 'A', html: 'A' };
  const { signal } = new AbortController();

  it('of a recipient that the mail server thinks about for too long is not one of the server', async () => {
    server.behave('hang');

    await expect(own()(message, { signal, recipientMilliseconds: 20 })).rejects.toMatchObject({
      ...{ isOfServer: false, isPermanent: false, isUncertain: false },
    });
  });

  it('is short for the recipient the first time, so that others get their turn, and takes longer then', async () => {
    await givenReset({});
    const limits: unknown[] = [];
    const send: Mailing['send'] = async (_, { recipientMilliseconds }) => {
      limits.push(recipientMilliseconds);
      throw new MailFailure('It thinks.');
    };

    for (const at of [1, 20]) await server.sendDue({ send, at: Date.now() + at * SECOND });

    expect(limits).toEqual([5000, undefined]);
  });

  it('is no matter of how long the mail server thinks about the text', async () => {
    fakeTimers();
    server.beforeAnswer(() => vi.advanceTimersByTime(60_000));

    await own()(message, { signal, recipientMilliseconds: 5000 });

    server.beforeAnswer(() => undefined);
    expect(server.received).toHaveLength(1);
  });

  it('signs in with the user of SMTP_URL', async () => {
    await givenReset({});

    expect(await server.sendDue({ send: own('deckhand:right@') })).toHaveLength(1);
  });
});

describe('nobody reads a link', () => {
  it('in lists, logs, events and the audit trail; the database has hashes', async () => {
    const { asSuperadmin } = await world();
    const logged: string[] = [];
    const log = pino({ level: 'trace' }, { write: (line: string) => void logged.push(line) });
    const user = await givenReset({});
    const [{ secret }] = (await server.sendDue({ log })) as unknown as [{ secret: string }];
    await givenReset({});
    server.behave('refuse text');
    await server.sendDue({ log });
    const { mails: listed } = await asSuperadmin.rpc.mails.list.query({});
    await asSuperadmin.rpc.mails.retry.mutate({ id: listed[0]!.id });

    expect(listed.map(({ email }) => email)).toContain(user.email);
    expect(Object.keys(listed[0]!)).toEqual(
      'id kind email state failures error created_at sent_at next_attempt_at'.split(' '),
    );
    const entries = await asSuperadmin.rpc.audit.list.query({});
    const seen = JSON.stringify([listed, logged, service.logged, entries, await mails()]);
    expect(seen).toContain('mail.retried');
    expect(seen).not.toContain(secret);
    expect(seen).not.toContain('#');
    expect(JSON.stringify(await change(sql`select * from mail_links`))).not.toContain(secret);
  });
});

describe('a lease', () => {
  const at = (time: number) => sql<Date>`${new Date(time)}::timestamptz`;

  it('keeps other processes away for 30 seconds; then the mail of a killed one is sent', async () => {
    await givenReset({});
    const db = await testDb();
    const begun = Date.now() + SECOND;
    const claimed = await claimMail({ db, now: at(begun) });

    expect(claimed).toMatchObject({ kind: 'password_reset', failures: 0 });
    expect(await server.sendDue({ at: begun + 29 * SECOND })).toEqual([]);
    const again = await claimMail({ db, now: at(begun + 31 * SECOND) });
    expect(again!.id).toBe(claimed!.id);
    // The first one was only slow: its failure no longer counts, its success does.
    await recordFailure({ db }, claimed!, { message: 'Late.', isPermanent: true });
    expect(await mails()).toMatchObject([{ state: 'waiting', failures: 0, error: null }]);
    await recordSent({ db }, claimed!);
    expect(await mails()).toMatchObject([{ state: 'sent' }]);
  });

  it('is for one process each', async () => {
    for (let count = 0; count < 4; count++) await givenReset({});
    const db = await testDb();

    const claims = await Promise.all(Array.from({ length: 6 }, () => claimMail({ db })));

    const ids = claims.flatMap((claim) => claim?.id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(0);
  });
});

describe('the work of a process', () => {
  const start = async (send = makeSmtp(server.settings.SMTP_URL, MAIL_FROM)) =>
    startMails({ db: await testDb(), log: pino({ level: 'silent' }), base: BASE, send });

  it('sends what waits at its start, and what is queued then, at once', async () => {
    const first = await givenReset({});
    const work = await start();
    await server.lastTo(first.email);

    const second = await givenReset({});
    work.wake();

    await server.lastTo(second.email);
    await work.stop();
    expect(await mails()).toMatchObject([{ state: 'sent' }, { state: 'sent' }]);
  });

  /** A process that sends to everybody but these, whose mail servers do not answer. Returns whom it has begun to send to. */
  async function givenHanging(hangs: (to: string) => boolean) {
    const begun: string[] = [];
    const end = Promise.withResolvers<void>();
    const work = await start(async ({ to }) => {
      begun.push(to);
      if (hangs(to)) await end.promise;
    });
    onTestFinished(async () => {
      end.resolve();
      await work.stop();
    });
    return begun;
  }

  it('sends what others wait for while the recipients of a project hang, whose invitations go one by one', async () => {
    const { project, users } = await world();
    for (const at of [1, 2, 3, 4, 5]) {
      const email = `${at}@hanging${at}.test`;
      const invitation_id = await givenInvitation(project, { email }, { invited_by: users.owner.id });
      await queue({ kind: 'invitation', email, invitation_id });
    }
    await givenInvited('other@example.test');
    const { email } = await givenReset({});

    const begun = await givenHanging((to) => to.includes('hanging'));

    await expect.poll(() => begun.toSorted()).toEqual(['1@hanging1.test', email, 'other@example.test'].toSorted());
    await givenReset({ email: 'late@example.test' });
    await expect.poll(() => begun).toContain('late@example.test');
    expect(begun.filter((to) => to.includes('hanging'))).toEqual(['1@hanging1.test']);
  });

  it('keeps connections free for first attempts of mails about accounts, and for other domains', async () => {
    for (const at of [1, 2, 3]) await givenReset({ email: `again${at}@slow${at}.test` });
    await change(sql`update mails set failures = 1`);
    for (const at of [1, 2, 3]) await givenReset({ email: `${at}@hanging.test` });
    await givenInvited('new@example.test');

    const begun = await givenHanging(() => true);

    await expect.poll(() => begun).toHaveLength(4);
    expect(begun.toSorted()).toEqual(['1@hanging.test', '2@hanging.test', 'again1@slow1.test', 'again2@slow2.test']);
  });

  it('sends one mail at a time to an address, and keeps a connection free for resets', async () => {
    const users = [];
    for (const at of [1, 2, 3, 4]) users.push(await givenUser({ email: `${at}@slow${at}.test` }));
    for (const { email, id } of [...users, ...users])
      await queue({ kind: 'key_created', email, user_id: id, data: { name: 'CI' } });
    const begun = await givenHanging(() => true);
    await expect.poll(() => begun).toHaveLength(3);

    const { email } = await givenUser();
    await change(sql`insert into mails (kind, email, failures) values ('password_reset', ${email}, 1)`);
    await givenReset({ email: 'later@example.test' });

    await expect.poll(() => begun).toEqual(['1@slow1.test', '2@slow2.test', '3@slow3.test', 'later@example.test']);
  });

  it('tries with one mail at a time while the mail server is not there', async () => {
    for (const at of [1, 2, 3, 4, 5]) await givenReset({ email: `${at}@example.test` });
    const together: number[] = [];
    let underWay = 0;
    const ends: (() => void)[] = [];
    const work = await start(async () => {
      together.push(++underWay);
      await new Promise<void>((resolve) => ends.push(resolve));
      underWay--;
      throw new MailFailure('It is not there.', { isOfServer: true });
    });
    await expect.poll(() => ends).toHaveLength(2);
    for (const end of ends.splice(0)) end();
    await expect.poll(async () => (await mails()).filter(({ failures }) => failures > 0)).toHaveLength(2);

    callForMail();
    work.wake();
    await expect.poll(() => ends).toHaveLength(1);
    for (const end of ends.splice(0)) end();
    await work.stop();

    expect(together).toEqual([1, 2, 1]);
  });

  it('stops soon while the mail server stalls, and gives the lease back', async () => {
    await givenReset({});
    server.behave('stall');
    const work = await start();
    await expect.poll(links).toHaveLength(1);

    const limits: number[] = [];
    replaceTimers((end, milliseconds) => {
      limits.push(milliseconds);
      return realSetTimeout(end, milliseconds);
    });
    await work.stop();

    expect(Math.max(...limits)).toBeLessThan(1000);
    expect(await mails()).toMatchObject([{ state: 'waiting', failures: 0, leased_until: null }]);
  });

  it('on the demo shows mails on a terminal, and never in a log', async () => {
    const texts: string[] = [];
    const terminal = Object.assign(({ text }: { text: string }) => void texts.push(text), { isOnTerminal: true });
    const user = await givenReset({});
    await server.sendDue({ send: showOn(terminal) });
    await givenReset({});
    await server.sendDue({ send: showOn(() => texts.push('logged')) });

    expect(texts).toHaveLength(1);
    expect(texts[0]).toMatch(`A mail to ${user.email}: Set a new password\n`);
    expect(texts[0]).toMatch(new RegExp(`^ {2}${BASE}/reset-password#\\S{43}$`, 'm'));
    expect((await mails()).map(({ state }) => state)).toEqual(['sent', 'failed']);
  });

  it('holds the mails of a restored or copied database, until an operator resumes them', async () => {
    const db = await testDb();
    await givenReset({});
    await change(sql`
      insert into database_state (id, webhooks_paused_at) values (1, now())
      on conflict (id) do update set webhooks_paused_at = now()`);

    expect(await server.sendDue()).toEqual([]);
    expect((await remindersOf(db)).join()).toContain('and mails are held');
    await resumeWebhooks(db);
    expect(await server.sendDue()).toHaveLength(1);
  });

  it('is counted, and old mails are removed with their links', async () => {
    const db = await testDb();
    const before = new Map(mailCounts);
    await givenReset({});
    await server.sendDue();
    await givenReset({});

    expect(mailCounts.get('sent')).toBe(before.get('sent')! + 1);
    expect(await measureMails(db)).toContainEqual({
      kind: 'password_reset',
      mails: 1,
      oldestSeconds: expect.any(Number),
    });
    await change(sql`update mails set created_at = now() - interval '31 days' where state = 'sent'`);
    expect(await removeSome(db, mailRemoval, { rows: 10 })).toMatchObject({ count: 1 });
    expect(await mails()).toMatchObject([{ state: 'waiting' }]);
    expect(await links()).toEqual([]);
  });
});

describe('a notice', () => {
  holdTimeStep();
  const kinds = async () => (await mails()).map(({ kind, email, data }) => [kind, email, data]);

  it('follows a changed password, second factor and new key, to the person', async () => {
    const { asMember, users } = await world();
    await asMember.rpc.keys.create.mutate({ name: 'CI', scopes: ['boards:read'] });
    const { secret } = await asMember.rpc.account.startSecondFactor.mutate({ password: PASSWORD });
    await asMember.rpc.account.confirmSecondFactor.mutate({ code: codeAt(0, secret) });
    await asMember.rpc.account.dropSecondFactor.mutate({ password: PASSWORD, code: codeAt(1, secret) });
    await asMember.rpc.account.changePassword.mutate({ password: PASSWORD, new_password: 'another fine passphrase' });

    expect(await kinds()).toEqual([
      ['key_created', users.member.email, { name: 'CI' }],
      ['second_factor_enabled', users.member.email, {}],
      ['second_factor_dropped', users.member.email, {}],
      ['password_changed', users.member.email, {}],
    ]);
  });

  it('follows what a superadmin does, to the address before', async () => {
    const { asSuperadmin } = await world();
    const { id, email } = await givenProtectedUser();
    await asSuperadmin.rpc.users.dropSecondFactor.mutate({ id });
    await asSuperadmin.rpc.users.dropSecondFactor.mutate({ id });
    const password = 'another fine passphrase';
    await asSuperadmin.rpc.users.update.mutate({ id, password, email: `new-${email}` });

    const data = { by_superadmin: true };
    expect(await kinds()).toEqual([
      ['second_factor_dropped', email, data],
      ['password_changed', email, data],
      ['address_changed', email, data],
    ]);
  });

  it('is not for services, unconfirmed addresses and refused calls, nor without a mail server', async () => {
    const { asSuperadmin, asMember } = await world();
    const bot = await asSuperadmin.rpc.users.create.mutate({ name: 'Bot', kind: 'service' });
    await asSuperadmin.rpc.keys.create.mutate({ user_id: bot.user.id, name: 'CI', scopes: ['boards:read'] });
    const unconfirmed = await givenUser({ email_confirmed_at: null, totp_secret: SECRET });
    await asSuperadmin.rpc.users.dropSecondFactor.mutate({ id: unconfirmed.id });
    await asMember.rpc.account.changePassword
      .mutate({ password: 'wrong', new_password: PASSWORD })
      .catch(() => undefined);
    const silent = await givenService({}, { sendsMail: false });
    const user = await givenUser();
    const caller = makeCaller(silent.url, await givenToken(user, { proven_at: new Date() }));
    await caller.rpc.keys.create.mutate({ name: 'CI', scopes: ['boards:read'] });
    await silent.app.close();

    expect(await kinds()).toEqual([]);
  });
});
