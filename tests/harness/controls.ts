import type { ElementHandle, Page } from 'playwright-core';
import { vi } from 'vitest';
import type { pageOfSuite } from './page.ts';

/** The service's pages that the app draws. */
export const APP = /^\/(projects|account|admin)/;

type OpenedPage = Awaited<ReturnType<ReturnType<typeof pageOfSuite>['givenPage']>>;

/**
 * Goes through all pages that the links of the app lead to, and presses each control once, also in the dialogs and menus that
 * they open. `wrong` are controls without a name, those that do nothing that anybody could see, and those whose call was refused.
 */
export async function pressEverything({ page, refusals, open, untilQuiet }: OpenedPage) {
  const [queue, pages, controls] = [['/'], new Set<string>(), new Set<string>()];
  const [wrong, links] = [new Set<string>(), new Set<string>()];
  const placeOf = () => page.evaluate<string>('location.pathname + location.search');
  page.on('popup', (opened) => opened.close());

  /** Opens the page, and the dialog or menu that pressing these controls opens; returns false if that is gone. */
  const bring = async (path: string, trail: string[], scope: string) => {
    if ((await placeOf()) === path && (await openedOn(page)) === scope) return true;
    for (let layers = 0; layers < 3 && (await openedOn(page)); layers++) await page.keyboard.press('Escape');
    if ((await placeOf()) !== path || (await openedOn(page))) await open(path);
    for (const key of trail) {
      const control = await nextControl(page, (one) => one !== key);
      if (control) await press(control);
    }
    await untilQuiet();
    return (await openedOn(page)) === scope;
  };
  const pressAll = async (path: string, trail: string[] = [], scope = ''): Promise<void> => {
    while (await bring(path, trail, scope)) {
      await page.evaluate('document.querySelectorAll(".messages .icon").forEach((close) => close.click())');
      const control = await nextControl(page, (key) => controls.has(key));
      if (!control) return;
      const { key, href, name } = control;
      controls.add(key);
      if (APP.test(href)) queue.push(href);
      else if (href) links.add(href);
      if (name === 'Sign out' || links.has(href) || href === path) continue;

      // Once more if the page was drawn anew just then; what is gone by now is not pressed.
      const isSeen = await press(control).catch(async () => {
        const again = await nextControl(page, (one) => one !== key);
        return again === undefined || press(again);
      });
      await untilQuiet();
      const faults = [!name && 'has no name', !isSeen && 'does nothing', ...refusals.splice(0)].filter(Boolean);
      for (const fault of faults) wrong.add(`${path}: ${[...trail, key].join(' > ')}: ${fault}`);
      const opened = await openedOn(page);
      if (opened !== '' && opened !== scope) await pressAll(path, [...trail, key], opened);
    }
  };

  for (const href of queue) {
    await open(href);
    const path = await placeOf();
    if (!pages.has(path)) await pressAll(path);
    pages.add(path);
  }
  return { pages, controls, wrong, links };
}

/** `key` is the same for controls that differ only in what they are for: of "Actions for …", one has to do. */
type Control = { key: string; name: string; kind: string; href: string };
type Found = Control & { element: ElementHandle<HTMLElement> };

/** The first control that was not pressed yet: in the dialog or menu that is open, else on the page. */
async function nextControl(page: Page, isDone: (key: string) => boolean): Promise<Found | undefined> {
  const found = await page.evaluateHandle(findControls);
  const controls = await found.evaluate((all) => all.map(({ element: _, ...control }): Control => control));
  const at = controls.findIndex(({ key }) => !isDone(key));
  const element = (await found.evaluateHandle((all, place) => all[place]?.element as HTMLElement, at)).asElement();
  return controls[at] && element ? { ...controls[at], element } : undefined;
}

/** Presses a control, or types into it; returns whether anybody could see what it did. */
async function press({ kind, element }: Found): Promise<boolean> {
  const before = await element.evaluate(readState);
  if (kind === 'select') await element.selectOption({ index: await element.evaluate(nextOption) });
  else if (kind === 'field') await element.fill(await element.evaluate(plausibleValue));
  else await element.click();
  const isChanged = async () => (await element.evaluate(readState)) !== before;
  const isSeen = await vi.waitUntil(isChanged, { timeout: 20_000 }).catch(() => false);
  // Leaving a field saves it. A box gets its value back: a form that is sent later must not take rights away.
  if (kind === 'field') await element.evaluate((field) => field.blur());
  if (kind === 'checkbox') await element.click();
  return isSeen;
}

/** The dialog or menu that is open; empty if there is none. */
const openedOn = (page: Page) =>
  page.evaluate(() => {
    const scope = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.querySelector('.menu-list');
    return scope?.querySelector('h2')?.textContent ?? scope?.previousElementSibling?.ariaLabel ?? '';
  });

/** Confirmations of questions are left out, since they delete. What ends the page comes last. */
function findControls() {
  const scope =
    [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.querySelector('.menu-list') ?? document.body;
  const isQuestion = scope.matches('dialog') && !scope.querySelector('form, .list');
  const left = `:disabled, .messages *, .destructive${isQuestion ? ', button.button:not(.quiet)' : ''}`;
  const isLast = ({ name }: { name: string }) => /^(Delete|Remove|Close|Cancel|Take back)/.test(name);
  const selector = 'a:is([href^="/"], [href^="http"]), button, input, select:has(* + *), textarea, summary';
  return [...scope.querySelectorAll<HTMLInputElement>(selector)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches(left))
    .map((element) => {
      const { localName, ariaLabel, labels, textContent, title, type } = element;
      const name = (ariaLabel ?? labels?.[0]?.textContent ?? (textContent || title)).trim();
      const kinds = { a: 'link', input: type === 'checkbox' ? type : 'field', textarea: 'field', select: 'select' };
      const kind = kinds[localName as 'a'] ?? 'button';
      // Links to two cards, or to two users, count as one control: their pages are alike.
      const href = (element as unknown as HTMLAnchorElement).pathname ?? '';
      const shape = href.replace(/(cards|users|webhooks|rollouts|projects)\/\d+$/, '$1/#');
      const frame = element.closest('.panel, .bar, .sidebar, .calls, .filter')?.className;
      const place = frame ?? location.pathname.replaceAll(/\d+/g, '#');
      const where = scope === document.body ? place : scope.querySelector('h2')?.textContent?.split('“')[0];
      const part = element.closest('li, header, form, section, fieldset')?.className.split(' ')[0];
      const what =
        element.closest('fieldset')?.textContent ?? (title || name).split(/[:“(]| (?:of|for|to|the tag) /)[0];
      return { element, name, kind, href, key: href ? `link ${shape}` : [where, part, kind, what].join(' ') };
    })
    .sort((one, other) => Number(isLast(one)) - Number(isLast(other)));
}

/** What people see, without the list of calls; that the control itself has the focus does not count. */
function readState(element: HTMLElement): string {
  const copy = document.body.cloneNode(true) as HTMLElement;
  copy.querySelector('.calls ol')?.remove();
  const fields = [...document.querySelectorAll<HTMLInputElement>('input, select, textarea')];
  const focus = document.activeElement === element ? document.body : document.activeElement;
  const values = fields.map(({ value, checked }) => value + checked);
  return [location.href, copy.outerHTML.replaceAll(/ aria-busy="\w+"/g, ''), focus?.outerHTML, ...values].join('\n');
}

const nextOption = (one: HTMLElement) =>
  ((one as HTMLSelectElement).selectedIndex + 1) % (one as HTMLSelectElement).length;

/** Something that fits, and is not there already. */
function plausibleValue(element: HTMLElement): string {
  const { type, value } = element as HTMLInputElement;
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const dates = { date: tomorrow.slice(0, 10), time: '10:30', 'datetime-local': tomorrow.slice(0, 16) };
  const number = value === '' ? '1000' : `${Number(value) + 1}`;
  const texts = { password: 'demo-password', search: 'a', email: `x${value || '@roles.test'}`, number };
  return { ...dates, ...texts, url: 'https://example.com/probe' }[type as 'url'] ?? `${value} probe`.trim();
}
