import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import type { DemoName } from '../../server/database/seed/demoUsers.ts';
import { hasBrowser } from '../harness/browser.ts';
import { codeAt } from '../harness/codes.ts';
import { button, choose, dialog, givenRollout, pageOfSuite, send, untilTold } from '../harness/page.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';

describe.skipIf(!hasBrowser)('the desk', () => {
  let secretOfWebhook = '';
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    // Accepts what is signed with the secret.
    receiver = await givenWebhookReceiver(({ body, headers }, response) => {
      new Webhook(secretOfWebhook).verify(body, headers);
      response.end();
    });
  });
  afterAll(() => receiver.remove());
  const { givenPage, clientOf, url } = pageOfSuite(() => ({ WEBHOOK_ALLOWED_HOSTS: receiver.host }));

  let problems: string[] = [];
  afterEach(() => expect(problems.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([]));

  const givenDesk = async (path: string, name: DemoName) => {
    const given = await givenPage();
    problems = given.problems;
    await given.enter(path, name);
    return given.page;
  };
  const rowOf = (page: Page, name: string | RegExp) => page.getByRole('row', { name });
  /** Presses a button that asks, reads the question, and agrees. */
  const agree = async (page: Page, name: string, question: RegExp) => {
    await button(page, name).click();
    await page.getByRole('dialog').getByText(question).waitFor();
    await page.getByRole('dialog').getByRole('button').first().click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  };
  /** Reads a secret, which is shown once. */
  const takeSecret = async (page: Page, title: string) => {
    const secret = await page.getByRole('region', { name: title }).locator('pre').innerText();
    await button(page, 'I have stored it').click();
    expect(await page.getByText(secret.split('\n')[0]!).count()).toBe(0);
    return secret;
  };

  it('changes the own password, and sets up a second factor, which the next sign-in asks for', async () => {
    const page = await givenDesk('/account', 'Outsider');
    const untilLeft = (count: number) => page.getByText(`On. You have ${count} unused recovery codes.`).waitFor();

    await send(page, { 'Current password': 'demo-password', 'New password': 'another-password' });
    await untilTold(page, 'Your password is changed, and all other sessions have ended. No API key is left.');
    await page.reload();
    await send(page, { Password: 'another-password' });
    await send(page, { 'Code that the app shows': codeAt(0, await page.locator('#content p code').innerText()) });
    const codes = (await takeSecret(page, 'Recovery codes')).split('\n');
    await untilLeft(codes.length);

    await choose(page, 'Account of Outsider', 'Sign out');
    await button(page, 'Sign in').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': 'outsider@demo.test', Password: 'another-password' });
    await page.getByLabel('It is a recovery code').check();
    await send(page, { 'Code of the second factor': codes[0]! });
    await untilLeft(codes.length - 1);
  });

  it('makes a key, which works until it is revoked', async () => {
    const page = await givenDesk('/account/keys', 'Member');

    await button(page, 'New key').click();
    await page.getByLabel('read boards', { exact: true }).check();
    await send(page, { Name: 'Nightly import' });
    const token = await takeSecret(page, 'Secret of Nightly import');
    const { boards } = createClient({ url: url(), token });
    expect((await boards.list.query()).boards).toHaveLength(2);
    await agree(page, 'Revoke: Nightly import', /^Programs that use Nightly import stop working at once/);

    await untilTold(page, 'Nightly import is revoked.');
    await expect(boards.list.query()).rejects.toMatchObject({ status: 401 });
  });

  it('invites a member, changes a role, removes a member, and finds that in the audit', async () => {
    const page = await givenDesk('/projects/1/members', 'Owner');

    await send(page, { 'E-mail address': 'new@desk.test' });
    await untilTold(page, 'new@desk.test is invited.');
    await agree(page, 'Withdraw: new@desk.test', /can no longer accept/);
    await button(page, 'Change role: Viewer').click();
    await dialog(page, 'Role of Viewer').getByLabel('Role').selectOption('member');
    await dialog(page, 'Role of Viewer').getByRole('button', { name: 'Change role' }).click();
    await untilTold(page, 'Viewer now has the role member.');
    await agree(page, 'Remove: Otp', /^Otp loses access to Harbor Website/);
    await rowOf(page, 'otp@demo.test').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('What').selectOption('A member got another role.');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.reload();

    await rowOf(page, 'Viewer · member').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    expect((await clientOf('Owner').members.list.query()).members).toHaveLength(3);
  });

  it('makes a webhook, sees the delivery of a test, pauses and deletes it', async () => {
    const page = await givenDesk('/projects/1/webhooks', 'Owner');

    await button(page, 'New webhook').click();
    await page.getByLabel('card.created').check();
    await send(page, { Address: `${receiver.url}/hook` });
    secretOfWebhook = await takeSecret(page, 'The secret of this webhook');
    await button(page, 'Send a test').click();
    await page.getByText(/^The test has arrived after \d+ ms \(200\)\.$/).waitFor();
    await rowOf(page, /webhook.test.* delivered, 200/).waitFor();
    await button(page, 'Pause').click();
    await page.getByText(/^Paused\. Events wait/).waitFor();
    await agree(page, 'Delete', /^Events of this project are no longer sent to http/);

    await page.getByText('No webhook yet.').waitFor();
  });

  it('finds a user by id', async () => {
    const page = await givenDesk('/admin/users', 'Admin');

    await page.getByRole('searchbox').fill('3');
    await page.getByRole('link', { name: 'Member' }).click();

    await page.getByRole('heading', { level: 1, name: 'Member' }).waitFor();
  });

  it('says what the deactivation of a user touched, and undoes it', async () => {
    const { user } = await clientOf('Admin').users.create.mutate({ name: 'Leaver', kind: 'service' });
    await clientOf('Admin').members.set.mutate({ project_id: 2, user_id: user.id, role: 'viewer' });
    const page = await givenDesk(`/admin/users/${user.id}`, 'Admin');

    await agree(page, 'Deactivate', /^Leaver is signed out everywhere/);
    await page.getByText('Leaver is deactivated. Sessions ended: 0, API keys refused: 0.').waitFor();
    await button(page, 'Undo').click();

    await page.getByText('Leaver may sign in again. API keys that work again: 0.').waitFor();
    await page.getByText('Active', { exact: true }).waitFor();
  });

  it('shows a rollout while it runs; its steps ask, and name what goes', async () => {
    const admin = clientOf('Admin');
    const id = await givenRollout(admin);
    const page = await givenDesk(`/admin/rollouts/${id}`, 'Admin');
    const untilState = (text: string) => page.getByRole('status').getByText(text, { exact: true }).waitFor();

    await untilState('stage 1 finished, waits for the next');
    await agree(page, 'Pause', /^It stops within a second\. Without release 2 so far: 1 project\.$/);
    await untilState('paused');
    await button(page, 'Abort').click();
    await dialog(page, 'Abort?').getByText('It ends for good. Without release 2: 1 project.').waitFor();
    await button(page, 'Cancel').click();
    await agree(page, 'Resume', /^It goes on to 1 project with release 2\./);
    await untilState('stage 1 finished, waits for the next');
    await admin.rollouts.advance.mutate({ id });

    await untilState('done');
    await button(page, 'Harbor Shop').click();
    await dialog(page, 'Changes in Harbor Shop').getByText('card “Say hello”').waitFor();
  });

  it('leads from a plan to the test checkout, and shows what was paid', async () => {
    const page = await givenDesk('/projects/1/plan', 'Owner');

    await button(page, 'Choose: pro, €19.00 for each month').click();
    const opening = page.waitForEvent('popup');
    await dialog(page, 'The checkout is ready').getByRole('link').click();
    const checkout = await opening;
    await checkout.getByRole('button', { name: 'Pay €19.00' }).click();
    await checkout.getByRole('heading', { name: 'Payment received' }).waitFor();
    await checkout.close();
    // Browsers of tests never tell that a window got the focus.
    await page.evaluate('dispatchEvent(new Event("focus"))');

    await page.getByText(/^Paid: the plan pro, by the month/).waitFor();
    await rowOf(page, 'pro, by the month').getByText('Your plan').waitFor();
  });

  it('saves all about a person as a file, and erases them once they type their address', async () => {
    const page = await givenDesk('/account', 'Viewer');
    const email = 'viewer@demo.test';
    const erase = async (address: string) => {
      await page.getByLabel(/^Type viewer@/).fill(address);
      await dialog(page, 'Erase my account?').getByRole('button', { name: 'Erase my account' }).click();
    };

    const [file] = await Promise.all([page.waitForEvent('download'), button(page, 'Export my data').click()]);
    const saved = JSON.parse(await readFile(await file.path(), 'utf8'));
    expect(saved).toContainEqual({ table: 'users', row: expect.objectContaining({ email }) });
    await button(page, 'Erase my account').click();
    await erase('somebody@desk.test');
    await page.getByText('That is another address.').waitFor();
    await erase(email);

    await page.getByRole('button', { name: 'Sign in' }).first().waitFor();
    const { users } = await clientOf('Admin').users.list.query({ search: 'Erased user' });
    expect(users).toMatchObject([{ email: expect.stringMatching(/@erased\.invalid$/), erased_at: expect.any(Date) }]);

    const desk = await givenDesk(`/admin/users/${users[0]!.id}`, 'Admin');
    await desk.getByText('Erased for good').waitFor();
    for (const name of ['New password', 'Activate', 'Save']) expect(await button(desk, name).count(), name).toBe(0);
  });
});
