import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sanitizeHtml } from '../../server/security/html.ts';
import { findingsIn, LOOKS, showIn } from '../harness/axe.ts';
import { hasBrowser, holdBack, isWiderThanScreen, pageForSuite } from '../harness/browser.ts';
import { seed } from '../harness/sample.ts';
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

  const guides = ['', '/readme', ...namesOfGuides()].map((name) => `/docs/guides${name}`);

  it('every guide, the checkout and the page of a 404 are clean for axe, and fit the smallest phone', {
    timeout: 300_000,
  }, async () => {
    const { url } = await testService();
    const { page } = await openPage(url);
    const paths = [(await givenCheckout()).url, ...['/nowhere', ...guides].map((path) => url + path)];

    const [wide, narrow] = [LOOKS.filter(({ width }) => width > 1000), LOOKS.filter(({ width }) => width < 1000)];
    for (const [at, address] of paths.entries()) {
      await page.goto(address);
      // Each in light and dark: one of them wide, the next one narrow.
      const found = await findingsIn(page, at % 2 ? narrow : wide);
      await showIn(page, narrow[0]!);
      expect([found, await isWiderThanScreen(page)], address).toEqual([[], false]);
    }
    await page.emulateMedia({ colorScheme: null });
  });

  it('the guides can be searched with the keyboard alone, and their code can be copied', async () => {
    const { url } = await testService();
    const { page, problems } = await openPage(url);
    await page.setViewportSize({ width: 1400, height: 900 });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url });
    await page.goto(`${url}/docs/guides`);
    const [result, focused] = [page.locator('#results a'), page.locator(':focus')];

    await page.keyboard.press('/');
    await page.keyboard.type('nowhere to be found');
    await page.getByText('0 found').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('#listed').isVisible()).toBe(true);
    await page.keyboard.type('pack:client');
    await page.locator('#results mark', { hasText: 'pack:client' }).first().waitFor();
    await page.keyboard.press('ArrowDown');
    expect(await focused.innerText()).toBe(await result.first().innerText());
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('repeat safely');
    await result.filter({ hasText: 'Repeat a call safely' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${url}/docs/guides/rest#repeat-a-call-safely`);
    expect(await page.locator(':target').innerText()).toBe('Repeat a call safely');

    await page.goto(`${url}/docs/guides/client`);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('npm run pack:client\n');
    expect(problems).toEqual([]);
  });

  it('an unknown path is a page with ways on', async () => {
    const { url } = await testService();
    const { page } = await openPage(url);

    const response = await page.goto(`${url}/nowhere`);

    expect(response?.status()).toBe(404);
    expect(await page.title()).toBe('Page not found · Deckhand');
    const links = await page.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    expect(links).toEqual(['/', '/docs', '/docs/guides']);
  });

  it('sanitised HTML has only allowed elements, attributes and URLs', async () => {
    const pieces = fc.array(fc.constantFrom(...HOSTILE), { minLength: 1, maxLength: 12 });
    const sent = fc.sample(pieces, { numRuns: 2000, seed });
    const texts = await Promise.all(sent.map((parts) => sanitizeHtml(parts.join(''))));
    const { page } = await givenPage();

    const found = await page.evaluate<string[]>(`(${FOUND})(${JSON.stringify(texts)})`);

    const allowed = ['a', 'img', 'details', 'p', 'table', 'tbody', 'summary', 'https:'];
    const attributes = ['@src', '@id', '@class', '@title', '@open', '@style=text-align:center'];
    expect(found.filter((name) => ![...allowed, ...attributes].includes(name))).toEqual([]);
    expect(found).toEqual(expect.arrayContaining(['details', 'summary', '@id', '@class', '@style=text-align:center']));
  });
});

describe('an unknown path', () => {
  const ACCEPT = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

  it('404 as a page for browsers, as JSON for everybody else, with the same headers', async () => {
    const { url } = await testService();
    const of = async (path: string, init: RequestInit) => {
      const { status, headers } = await fetch(url + path, init);
      return { status, type: headers.get('content-type')?.split(';')[0], names: [...headers.keys()].sort() };
    };
    const forPrograms = await of('/nowhere', {});
    const page = { ...forPrograms, type: 'text/html' };

    expect(forPrograms).toMatchObject({ status: 404, type: 'application/json' });
    expect(forPrograms.names).toEqual(expect.arrayContaining(['x-error-reason', 'x-ratelimit-remaining']));
    expect(await of('/nowhere?a=b', { headers: ACCEPT })).toEqual(page);
    expect((await of('/docs/guides/nowhere', { headers: ACCEPT, method: 'HEAD' })).type).toBe('text/html');
    for (const path of ['/api/nowhere', '/trpc/nowhere', '/mcp/nowhere', '/health/nowhere']) {
      expect(await of(path, { headers: ACCEPT }), path).toMatchObject({ status: 404, type: 'application/json' });
    }
    expect(await of('/nowhere', { headers: ACCEPT, method: 'POST' })).toMatchObject({ type: 'application/json' });
  });

  it('429 above the rate limit of the address, also for browsers', async () => {
    const { url, app } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const statuses = [];
    for (let call = 0; call < 3; call++) statuses.push((await fetch(`${url}/nowhere`, { headers: ACCEPT })).status);
    await app.close();

    expect(statuses).toEqual([404, 404, 429]);
  });
});

function namesOfGuides(): string[] {
  const files = readdirSync(join(import.meta.dirname, '../../docs'));
  return files.filter((name) => name.endsWith('.md')).map((name) => `/${name.replace('.md', '')}`);
}

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
