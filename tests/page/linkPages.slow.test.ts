import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { addLink } from '../../server/domain/mail/link.ts';
import { axeFindings, LOOKS, showIn } from '../harness/axe.ts';
import { hasBrowser, isWiderThanScreen } from '../harness/browser.ts';
import { button, dialog, pageOfSuite, send, untilTold } from '../harness/startPage.ts';

/** The pages that the links in mails open. The service queues the mails; the test adds their links. */
describe.skipIf(!hasBrowser)('the page of a link', () => {
  const { givenStart, clientOf, open, db } = pageOfSuite();

  /** What the sender does with the latest mail to an address: it looks the user up, and adds a link. */
  const linkTo = async (email: string) => {
    const [mail] = await query(
      db(),
      sql<{ id: number; kind: string }>`
        update mails set state = 'sent', user_id = coalesce(user_id, (select id from users where users.email = mails.email and invitation_id is null))
        where id = (select max(id) from mails where email = ${email} and kind in ('invitation', 'password_reset', 'address_confirmation'))
        returning id, kind`,
    );
    const path = {
      invitation: 'invitation',
      password_reset: 'reset-password',
      address_confirmation: 'confirm-address',
    };
    return `/${path[mail!.kind as keyof typeof path]}#${await addLink(db(), mail!.id, 600)}`;
  };
  const openLink = async (page: Page, link: string) => {
    await page.goto(new URL(link, page.url()).href);
    await page.locator('#content').getByRole('button').first().waitFor();
    expect(await page.evaluate('location.hash')).toBe('');
  };
  const usedMails = async () => (await query(db(), sql`select from mails where used_at is not null`)).length;

  it('sets a forgotten password when its button is pressed, not before, and once', async () => {
    const { page, problems } = await givenStart();
    const email = 'member@demo.test';
    await clientOf('Member').keys.create.mutate({ name: 'Import', scopes: ['boards:read'] });
    await button(page, 'Sign in').click();
    await button(page, 'Forgot your password?').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': email });
    await page.getByRole('status').getByText(`If an account has the address ${email}`).waitFor();
    const link = await linkTo(email);

    await openLink(page, link);
    expect(await usedMails()).toBe(0);
    for (const look of LOOKS) {
      await showIn(page, look);
      expect([await axeFindings(page), await isWiderThanScreen(page)]).toEqual([[], false]);
    }
    await send(page, { 'New password': 'a sentence of many words' });
    await page.getByText('Your password is changed').waitFor();
    expect(await page.locator('#content').innerText()).toContain('One API key still works');

    await page.getByRole('link', { name: 'Sign in' }).click();
    await button(page, 'Sign in').click();
    await send(dialog(page, 'Sign in'), { 'E-mail address': email, Password: 'a sentence of many words' });
    await page.locator('.group').first().waitFor();
    await openLink(page, link);
    await send(page, { 'New password': 'yet another sentence' });
    await page.getByRole('alert').getByText('This link was used, has expired').waitFor();
    expect(problems.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([]);
  });

  it('signs an invited person up, who then is a member', async () => {
    const { page, problems } = await givenStart();
    const email = 'ann@example.test';
    await clientOf('Admin').members.invite.mutate({ project_id: 1, email, role: 'member' });

    await openLink(page, await linkTo(email));
    await page.getByText('invites ann@example.test to the project').waitFor();
    for (const look of LOOKS) {
      await showIn(page, look);
      expect([await axeFindings(page), await isWiderThanScreen(page)]).toEqual([[], false]);
    }
    await send(page, { 'Your name': 'Ann', Password: 'a sentence of many words' });

    await page.locator('.group').first().waitFor();
    await button(page, 'Account of Ann').waitFor();
    expect(problems).toEqual([]);
  });

  it('lets somebody with an account sign in and accept', async () => {
    const { page } = await givenStart();
    const email = 'outsider@demo.test';
    await clientOf('Admin').members.invite.mutate({ project_id: 1, email, role: 'viewer' });

    await openLink(page, await linkTo(email));
    await send(page, { Password: 'demo-password' });
    await button(page, 'Accept the invitation').click();

    await untilTold(page, /You are now a member/);
  });

  it('confirms a new address in the account that asked for it', async () => {
    const { page } = await givenStart();
    await open(page, '/projects/1', 'Owner');
    await page.goto(new URL('/account', page.url()).href);
    await page.getByText('owner@demo.test (confirmed)').waitFor();
    await button(page, 'Change the address').click();
    await send(dialog(page, 'Change your e-mail address'), { 'New e-mail address': 'new-owner@demo.test' });
    await untilTold(page, /on its way to new-owner@demo\.test/);
    const link = await linkTo('new-owner@demo.test');

    await openLink(page, link);
    await button(page, 'Confirm the address').click();

    await page.getByText('new-owner@demo.test (confirmed)').waitFor();
  });

  it('says what to do with a link that is incomplete', async () => {
    const { page } = await givenStart();

    await page.goto(new URL('/reset-password', page.url()).href);
    await page.getByText('This page needs the whole link of the mail.').waitFor();
    await button(page, 'Send me a link').waitFor();
  });
});
