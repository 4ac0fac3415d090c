import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findingsIn, LOOKS, showIn } from '../harness/axe.ts';
import { hasBrowser, newPage } from '../harness/browser.ts';
import { codeAt } from '../harness/codes.ts';
import { startIdentityProvider, type TestProvider } from '../harness/identityProvider.ts';
import { givenMailServer, type MailServer } from '../harness/mailServer.ts';
import { button, choose, dialog, pageOfSuite, send, untilTold } from '../harness/page.ts';

const NORA = 'nora@journey.test';
const [FIRST_PASSWORD, PASSWORD] = ['the first sentence of nora', 'another sentence of nora'];

/** Accounts, the links in mails, and single sign-on: with a mail server and an identity provider. */
describe.skipIf(!hasBrowser)('an account', () => {
  let mails: MailServer;
  let provider: TestProvider;
  const { givenStart, clientOf, open, url, db } = pageOfSuite(async () => {
    [mails, provider] = [await givenMailServer(), await startIdentityProvider()];
    const issuers = [provider.settings({ sign_up: true })];
    return { ...mails.settings, SSO_ISSUERS: JSON.stringify(issuers) };
  });
  beforeAll(() => provider.register(url()));
  afterAll(() => Promise.all([mails.close(), provider.stop()]));

  const mailTo = async (email: string, subject: string) => {
    await expect.poll(async () => (await mails.lastTo(email)).subject).toBe(subject);
    return mails.lastTo(email);
  };
  const linkTo = async (email: string) => (await mails.lastTo(email)).link!;
  const openLink = async (page: Page, link: string) => {
    await page.goto('about:blank');
    await page.goto(link);
    await page.locator('#content').getByRole('button').first().waitFor();
    expect(await page.evaluate('location.hash')).toBe('');
  };
  const expectFit = async (page: Page) => {
    expect(await findingsIn(page)).toEqual([]);
    await showIn(page, LOOKS[0]);
  };
  const usedLinks = () => db().selectFrom('mails').select('id').where('used_at', 'is not', null).execute();
  const signIn = async (page: Page, email: string, password: string) => {
    await button(page, 'Sign in').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': email, Password: password });
  };
  /** At the identity provider. */
  const signInAs = async (page: Page, subject: string) => {
    await page.locator('[name="subject"]').fill(subject);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  const visit = async (path: string) => {
    const page = await newPage();
    await page.goto(url() + path);
    return page;
  };

  it('is made from an invitation, gets a new password, is linked, exported and erased by its person alone', async () => {
    provider.people.nora = { email: NORA, name: 'Nora at work' };
    const { page, problems } = await givenStart();

    await clientOf('Admin').members.invite.mutate({ project_id: 1, email: NORA, role: 'member' });
    await openLink(page, await linkTo(NORA));
    await page.getByText(`invites ${NORA} to the project`).waitFor();
    await expectFit(page);
    await send(page, { 'Your name': 'Nora', Password: FIRST_PASSWORD });
    await page.locator('.group').first().waitFor();
    await button(page, 'Account of Nora').waitFor();
    const nora = clientOf('Member', { signIn: { email: NORA, password: FIRST_PASSWORD } });
    await nora.keys.create.mutate({ name: 'Import', scopes: ['boards:read'] });

    await page.goto(`${url()}/account`);
    await send(page, { Password: FIRST_PASSWORD });
    await send(page, { 'Code that the app shows': codeAt(0, await page.locator('#content p code').innerText()) });
    const codes = (await page.getByRole('region', { name: 'Recovery codes' }).locator('pre').innerText()).split('\n');
    await button(page, 'I have stored it').click();
    await mailTo(NORA, 'A second factor was enabled');
    await choose(page, 'Account of Nora', 'Sign out');

    await button(page, 'Sign in').click();
    await button(page, 'Forgot your password?').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': NORA });
    await page.getByRole('status').getByText(`If an account has the address ${NORA}`).waitFor();
    const { link } = await mailTo(NORA, 'Set a new password');
    const usedBefore = await usedLinks();
    await openLink(page, link!);
    expect(await usedLinks()).toEqual(usedBefore);
    await expectFit(page);
    await send(page, { 'New password': PASSWORD });
    await page.getByText('Your password is changed').waitFor();
    expect(await page.locator('#content').innerText()).toContain('1 API key still works');
    await mailTo(NORA, 'Your password was changed');
    await openLink(page, link!);
    await send(page, { 'New password': 'yet another sentence' });
    await page.getByRole('alert').getByText('This link was used, has expired').waitFor();

    await page.goto(`${url()}/account`);
    await signIn(page, NORA, PASSWORD);
    await page.getByLabel('It is a recovery code').check();
    await send(page, { 'Code of the second factor': codes[0]! });
    await button(page, 'Link The company').click();
    await signInAs(page, 'nora');
    await page.getByRole('row', { name: /The company nora/ }).waitFor();

    const saved = page.waitForEvent('download');
    await button(page, 'Export my data').click();
    const exported = await readFile(await (await saved).path(), 'utf8');
    for (const known of [NORA, 'Nora', 'identities', 'members']) expect(exported).toContain(known);

    await button(page, 'Erase my account').click();
    await send(page.getByRole('dialog'), { [`Type ${NORA} to erase it`]: NORA });
    await button(page, 'Sign in').waitFor();
    await signIn(page, NORA, PASSWORD);
    await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor();
    expect((await clientOf('Admin').users.list.query({ search: NORA })).users).toEqual([]);
    const ownProblems = problems.filter((text) => !/^Failed to load resource|^asked for /.test(text));
    expect(ownProblems).toEqual([]);
  });

  it('accepts an invitation after signing in', async () => {
    const { page } = await givenStart();
    const email = 'outsider@demo.test';
    await clientOf('Admin').members.invite.mutate({ project_id: 1, email, role: 'viewer' });

    await openLink(page, await linkTo(email));
    await send(page, { Password: 'demo-password' });
    await button(page, 'Accept the invitation').click();

    await untilTold(page, /You are now a member/);
  });

  it('confirms a new address', async () => {
    const { page } = await givenStart();
    await open(page, '/projects/1', 'Owner');
    await page.goto(`${url()}/account`);
    await page.getByText('owner@demo.test (confirmed)').waitFor();
    await button(page, 'Change the address').click();
    await send(dialog(page, 'Change your e-mail address'), { 'New e-mail address': 'new-owner@demo.test' });
    await untilTold(page, /on its way to new-owner@demo\.test/);

    await openLink(page, await linkTo('new-owner@demo.test'));
    await button(page, 'Confirm the address').click();

    await page.getByText('new-owner@demo.test (confirmed)').waitFor();
  });

  it('says what to do with a link that is incomplete', async () => {
    const { page } = await givenStart();

    await page.goto(`${url()}/reset-password`);
    await page.getByText('This page needs the whole link of the mail.').waitFor();
    await button(page, 'Send me a link').waitFor();
  });

  it('signs up by single sign-on, and gives proof in another tab while what was typed stays', async () => {
    provider.people.ann = { email: 'ann@example.test', email_verified: true, name: 'Ann' };
    const page = await visit('/account');
    await button(page, 'Sign in').click();
    await button(page, 'Continue with The company').click();
    await signInAs(page, 'ann');
    await page.getByRole('heading', { name: 'Ann' }).waitFor();
    await page.getByText('Your account has none').waitFor();
    await page.getByRole('row', { name: /The company ann/ }).waitFor();

    await db().updateTable('sessions').set({ proven_at: null }).execute();
    await button(page, 'Unlink: The company').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
    const opened = page.context().waitForEvent('page');
    await button(page, 'Sign in at The company again').click();
    await signInAs(await opened, 'ann');

    await page.getByText('This is your only way to sign in').waitFor();
  });

  it('is linked, and the next visitor signs in to it', async () => {
    provider.people.member = { email: 'somebody@example.test' };
    const page = await newPage();
    await open(page, '/projects/1');
    await page.goto(`${url()}/account`);
    await button(page, 'Link The company').click();
    await signInAs(page, 'member');
    await page.getByRole('row', { name: /The company member/ }).waitFor();

    const later = await visit('/account');
    await button(later, 'Sign in').click();
    await button(later, 'Continue with The company').click();
    await signInAs(later, 'member');

    await later.getByRole('heading', { name: 'Member' }).waitFor();
  });

  it('refuses a callback of single sign-on in another browser', async () => {
    const page = await visit('/sso/callback?code=x&state=y');

    await page.getByText('This sign-in was started in another browser').waitFor();
    expect(await page.evaluate(`localStorage.getItem('deckhand.session')`)).toBeNull();
  });
});
