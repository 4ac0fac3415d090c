import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sanitizeHtml } from '../../server/security/html.ts';
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

  it('a checkout is paid once if its button is pressed twice, and can be cancelled', async () => {
    const [paid, cancelled] = [await givenCheckout(), await givenCheckout()];
    const { page, problems } = await givenPage();
    const pay = await holdBack(page, '**/pay');

    await page.goto(paid.url);
    await page.getByRole('button', { name: 'Pay €190.00' }).dblclick({ noWaitAfter: true });
    await pay.first;
    pay.release();
    await page.getByRole('heading', { name: 'Payment received' }).waitFor();
    await page.goto(cancelled.url);
    await page.getByRole('button', { name: 'Cancel' }).click();

    expect(await page.getByRole('heading').innerText()).toBe('Cancelled');
    expect(await stored('subscriptions', paid.id)).toMatchObject({ status: 'paid' });
    expect(await stored('subscriptions', cancelled.id)).toMatchObject({ status: 'trial' });
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

  it('no page is wider than a phone screen, and code of the guides can be copied', async () => {
    const { url } = await testService();
    const { page, problems } = await openPage(url);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
    const guides = readdirSync(join(import.meta.dirname, '../../docs')).filter((name) => name.endsWith('.md'));
    const paths = ['/', '/docs/guides', ...guides.map((name) => `/docs/guides/${name.replace('.md', '')}`)];

    for (const address of [(await givenCheckout()).url, ...paths.map((path) => url + path)]) {
      await page.goto(address);
      expect(await isWiderThanScreen(page), address).toBe(false);
    }
    await page.goto(`${url}/docs/guides/client`);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();

    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('npm run pack:client\n');
    expect(problems).toEqual([]);
  });

  it('sanitised HTML has only allowed elements, attributes and URLs', async () => {
    const pieces = fc.array(fc.constantFrom(...HOSTILE), { minLength: 1, maxLength: 12 });
    const sent = fc.sample(pieces, { numRuns: 2000, seed: Number(process.env.FAST_CHECK_SEED) });
    const texts = await Promise.all(sent.map((parts) => sanitizeHtml(parts.join(''))));
    const { page } = await givenPage();

    const found = await page.evaluate<string[]>(`(${FOUND})(${JSON.stringify(texts)})`);

    const allowed = ['a', 'img', 'details', 'p', 'table', 'tbody', 'summary', 'https:'];
    const attributes = ['@src', '@id', '@class', '@title', '@open', '@style=text-align:center'];
    expect(found.filter((name) => ![...allowed, ...attributes].includes(name))).toEqual([]);
    expect(found).toEqual(expect.arrayContaining(['details', 'summary', '@id', '@class', '@style=text-align:center']));
  });
});

/** Pieces that a parser other than the browser's may read in another way. */
const HOSTILE = `<img src=x onerror=alert(1)>
<a href="javascript:alert(1)" id=x name=body>
<details open ontoggle=alert(1)>
<p style="text-align:center;background:url(//evil.test)" class=x>
<p id='"><img src=x onerror=alert(1)>'>
<a title="</style><img src=x onerror=alert(1)>">
<p class="-->&lt;img src=x onerror=alert(1)&gt;">
<svg> <math><mtext> <mglyph> <style> </style> <noscript> </noscript> <textarea> </textarea> <template> <table>
<select> <form> </form> <title> <xmp> <iframe> </iframe> <script> </script> <!-- --> --!> <![CDATA[ ]]>
&lt;script&gt; <summary> </p> </a> < / " '`
  .split('\n')
  .flatMap((line, at) => (at < 7 ? line : line.split(' ')))
  .concat('\u0001');

/** What a page finds in a text that it inserts: the names of elements and attributes, and the schemes of URLs. */
const FOUND = `(texts) => {
  const found = new Set();
  for (const text of texts) {
    const place = document.createElement('div');
    document.body.replaceChildren(place);
    place.innerHTML = text;
    for (const element of place.querySelectorAll('*')) {
      found.add(element.namespaceURI.endsWith('xhtml') ? element.localName : element.namespaceURI);
      for (const { name, value } of element.attributes) {
        found.add('@' + name + (name === 'style' ? '=' + value : ''));
        if (name === 'href' || name === 'src') found.add(new URL(value, 'https://page.test').protocol);
      }
    }
  }
  return [...found];
}`;
