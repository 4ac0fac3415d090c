import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../client/client.ts';
import { hasBrowser, openBrowser } from '../harness/browser.ts';
import { codeAt } from '../harness/codes.ts';
import { startIdentityProvider } from '../harness/identityProvider.ts';
import { givenMailServer } from '../harness/mailServer.ts';
import { givenMigratedDirectory, startService } from '../harness/process.ts';
import { button, choose, dialog, send } from '../harness/startPage.ts';

const EMAIL = 'nora@journey.test';
const [FIRST_PASSWORD, PASSWORD] = ['the first sentence of nora', 'another sentence of nora'];

/** A service with a mail server and an identity provider, and the demo data. */
async function givenServices() {
  const [mails, provider] = [await givenMailServer(), await startIdentityProvider()];
  const service = await startService({
    ...mails.settings,
    DATA_DIR: await givenMigratedDirectory(),
    SSO_ISSUERS: JSON.stringify([provider.settings()]),
  });
  provider.register(service.url);
  provider.people.nora = { email: EMAIL, name: 'Nora at work' };
  onTestFinished(async () => {
    await service.stop();
    await provider.stop();
    await mails.close();
  });
  const admin = createClient({
    url: service.url,
    signIn: { email: 'admin@demo.test', password: 'demo-password' },
  });
  return { mails, service, admin };
}

async function givenPage(): Promise<Page> {
  const context = await (await openBrowser()).newContext({ viewport: { width: 1400, height: 900 } });
  onTestFinished(() => context.close());
  return context.newPage();
}

const signIn = async (page: Page, password: string) => {
  await button(page, 'Sign in').click();
  await send(dialog(page, 'Sign in'), { 'E-mail address': EMAIL, Password: password });
};

describe.skipIf(!hasBrowser)('a person without help', () => {
  it('is invited, signs up, forgets the password, links single sign-on, exports and erases', {
    timeout: 180_000,
  }, async () => {
    const { mails, service, admin } = await givenServices();
    const page = await givenPage();

    await admin.members.invite.mutate({ project_id: 1, email: EMAIL, role: 'member' });
    const invitation = await mails.lastTo(EMAIL);
    await page.goto(invitation.link!);
    await send(page, { 'Your name': 'Nora', Password: FIRST_PASSWORD });
    await button(page, 'Account of Nora').waitFor();

    await page.goto(`${service.url}/account`);
    await send(page, { Password: FIRST_PASSWORD });
    await send(page, { 'Code that the app shows': codeAt(0, await page.locator('#content p code').innerText()) });
    const codes = (await page.getByRole('region', { name: 'Recovery codes' }).locator('pre').innerText()).split('\n');
    await button(page, 'I have stored it').click();
    await expect.poll(async () => (await mails.lastTo(EMAIL)).subject).toBe('A second factor was enabled');
    await choose(page, 'Account of Nora', 'Sign out');

    await button(page, 'Sign in').click();
    await button(page, 'Forgot your password?').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': EMAIL });
    await page.getByRole('status').getByText(`If an account has the address ${EMAIL}`).waitFor();
    await expect.poll(async () => (await mails.lastTo(EMAIL)).subject).toBe('Set a new password');
    await page.goto((await mails.lastTo(EMAIL)).link!);
    await send(page, { 'New password': PASSWORD });
    await page.getByText('Your password is changed').waitFor();
    await expect.poll(async () => (await mails.lastTo(EMAIL)).subject).toBe('Your password was changed');

    await page.goto(`${service.url}/account`);
    await signIn(page, PASSWORD);
    await page.getByLabel('It is a recovery code').check();
    await send(page, { 'Code of the second factor': codes[0]! });
    await button(page, 'Link The company').click();
    await page.getByRole('textbox', { name: 'Account' }).fill('nora');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('row', { name: /The company nora/ }).waitFor();

    const saved = page.waitForEvent('download');
    await button(page, 'Export my data').click();
    const exported = await readFile(await (await saved).path(), 'utf8');
    for (const known of [EMAIL, 'Nora', 'identities', 'members']) expect(exported).toContain(known);

    await button(page, 'Erase my account').click();
    await send(page.getByRole('dialog'), { [`Type ${EMAIL} to erase it`]: EMAIL });
    await button(page, 'Sign in').waitFor();
    await signIn(page, PASSWORD);
    await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor();
    expect((await admin.users.list.query({ search: EMAIL })).users).toEqual([]);
  });
});
