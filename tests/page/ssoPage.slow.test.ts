import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasBrowser, openBrowser } from '../harness/browser.ts';
import { givenDemoService } from '../harness/demo.ts';
import { startIdentityProvider, type TestProvider } from '../harness/identityProvider.ts';
import { button } from '../harness/startPage.ts';

describe.skipIf(!hasBrowser)('single sign-on in a browser', () => {
  let provider: TestProvider;
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  beforeAll(async () => {
    provider = await startIdentityProvider();
    demo = await givenDemoService({ SSO_ISSUERS: JSON.stringify([provider.settings({ sign_up: true })]) });
    provider.register(demo.url);
    provider.people.ann = { email: 'ann@example.test', email_verified: true, name: 'Ann' };
    provider.people.member = { email: 'somebody@example.test' };
  });
  afterAll(async () => {
    await demo.close();
    await provider.stop();
  });

  const visit = async (path = '/') => {
    const context = await (await openBrowser()).newContext({ viewport: { width: 1400, height: 900 } });
    const page = await context.newPage();
    await page.goto(demo.url + path);
    return { page, context };
  };
  /** At the provider. */
  const signInAs = async (page: Page, subject: string) => {
    await page.locator('[name="subject"]').fill(subject);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };

  it('signs up, and gives proof in another tab while what was typed stays', async () => {
    const { page, context } = await visit('/account');
    await button(page, 'Sign in').click();
    await button(page, 'Continue with The company').click();
    await signInAs(page, 'ann');
    await page.getByRole('heading', { name: 'Ann' }).waitFor();
    await page.getByText('Your account has none').waitFor();
    await page.getByRole('row', { name: /The company ann/ }).waitFor();

    await demo.db.updateTable('sessions').set({ proven_at: null }).execute();
    await button(page, 'Unlink: The company').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click();
    const opened = context.waitForEvent('page');
    await button(page, 'Sign in at The company again').click();
    await signInAs(await opened, 'ann');

    await page.getByText('This is your only way to sign in').waitFor();
    await context.close();
  });

  it('links an account that has a password, which the next visitor signs in to', async () => {
    const { page, context } = await visit();
    await button(page, 'Member').click();
    await page.locator('.group').first().waitFor();
    await page.goto(`${demo.url}/account`);
    await button(page, 'Link The company').click();
    await signInAs(page, 'member');
    await page.getByRole('row', { name: /The company member/ }).waitFor();
    await context.close();

    const later = await visit('/account');
    await button(later.page, 'Sign in').click();
    await button(later.page, 'Continue with The company').click();
    await signInAs(later.page, 'member');

    await later.page.getByRole('heading', { name: 'Member' }).waitFor();
    await later.context.close();
  });

  it('refuses a callback of another browser', async () => {
    const { page, context } = await visit('/sso/callback?code=x&state=y');

    await page.getByText('This sign-in was started in another browser').waitFor();
    expect(await page.evaluate(`localStorage.getItem('deckhand.session')`)).toBeNull();
    await context.close();
  });
});
