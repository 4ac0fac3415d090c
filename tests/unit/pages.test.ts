import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { hasBrowser, holdBack, isWiderThanScreen, pageForSuite } from '../harness/browser.ts';
import { givenService, testService } from '../harness/service.ts';
import { givenTrial, givenWorld, stored } from '../harness/world.ts';

const UPGRADE = '/services/platforms/v1/subscriptions/upgrade-trial';

describe.skipIf(!hasBrowser)('in a browser', () => {
  const openPage = pageForSuite();
  const givenPage = async () => openPage((await testService()).url);

  const givenCheckout = async () => {
    const { project, asOwner } = await givenWorld();
    const { id, product } = await givenTrial(project);
    const { body } = await asOwner.post(UPGRADE, { product, plan: 'pro', period: 'year' });
    return { id, url: body.data.checkout_url as string };
  };

  it('a checkout can be paid', async () => {
    const { id, url } = await givenCheckout();
    const { page, problems } = await givenPage();

    await page.goto(url);
    const shown = await page.locator('main').innerText();
    await page.getByRole('button', { name: 'Pay €190.00' }).click();

    for (const part of ['test checkout', 'pro', '1 year', '€190.00']) expect(shown).toContain(part);
    expect(await page.getByRole('heading').innerText()).toBe('Payment received');
    expect(page.url()).toBe(url);
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'paid' });
    expect(problems).toEqual([]);
  });

  it('a checkout is paid once if its button is pressed twice', async () => {
    const { id, url } = await givenCheckout();
    const { page, problems } = await givenPage();
    const pay = await holdBack(page, '**/pay');

    await page.goto(url);
    await page.getByRole('button', { name: 'Pay €190.00' }).dblclick({ noWaitAfter: true });
    await pay.first;
    pay.release();

    await page.getByRole('heading', { name: 'Payment received' }).waitFor();
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'paid' });
    expect(problems).toEqual([]);
  });

  it('a checkout can be cancelled', async () => {
    const { id, url } = await givenCheckout();
    const { page, problems } = await givenPage();

    await page.goto(url);
    await page.getByRole('button', { name: 'Cancel' }).click();

    expect(await page.getByRole('heading').innerText()).toBe('Cancelled');
    expect(await stored('subscriptions', id)).toMatchObject({ status: 'trial' });
    expect(problems).toEqual([]);
  });

  it('a page of another origin can call the service only if ALLOWED_ORIGINS has it', async () => {
    const elsewhere = createServer((_, response) => response.end('<h1>Elsewhere</h1>')).listen(0, '127.0.0.1');
    await once(elsewhere, 'listening');
    const origin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
    const { asMember } = await givenWorld();
    const { url: allowing } = await givenService({ ALLOWED_ORIGINS: origin });
    const { url: closed } = await givenService();
    const { page } = await givenPage();
    await page.goto(origin);
    const listFrom = (url: string) =>
      page.evaluate(
        ([address, token]) =>
          fetch(address!, { method: 'POST', headers: { authorization: `Bearer ${token}` } }).then(
            ({ status, headers }) => [status, headers.has('x-ratelimit-remaining')],
            () => 'blocked',
          ),
        [`${url}/api/services/operations/v1/operations/boards/list`, asMember.token!],
      );

    expect(await listFrom(allowing)).toEqual([200, true]);
    expect(await listFrom(closed)).toBe('blocked');
    elsewhere.close();
  });

  it('no page is wider than a phone screen', async () => {
    const { page } = await givenPage();
    const { url } = await testService();

    for (const address of [`${url}/`, (await givenCheckout()).url]) {
      await page.goto(address);
      expect(await isWiderThanScreen(page)).toBe(false);
    }
  });
});
