import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { query } from '../server/database/query.ts';
import { type QueuedMail, queueMails } from '../server/domain/mail/mail.ts';
import { emptyDatabase } from './harness/contents.ts';
import { BASE, givenMailServer, type MailServer } from './harness/mailServer.ts';
import { givenService, type TestService } from './harness/service.ts';
import { givenUser, testDb } from './harness/world.ts';

let server: MailServer;
let service: TestService;
beforeAll(async () => {
  await emptyDatabase();
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
  await query(await testDb(), sql`delete from mails`);
});

const queue = async (...mails: QueuedMail[]) =>
  queueMails({ db: await testDb(), services: { sendsMail: true } }, mails);

describe('a mail', () => {
  it('of a reset has a link in its plain text and in its HTML', async () => {
    const user = await givenUser();
    await queue({ kind: 'password_reset', email: user.email });

    const [mail] = await server.sendDue();

    expect(mail).toMatchObject({ to: [user.email], subject: 'Set a new password' });
    expect(mail!.link).toBe(`${BASE}/reset-password#${mail!.secret}`);
    expect(mail!.html).toContain(`<a href="${mail!.link}">`);
  });
});
