import sanitize from 'sanitize-html';
import { describe, expect, it } from 'vitest';
import { sanitizeHtml } from '../../server/security/html.ts';
import { ALLOWED_ELEMENTS, shownElement, withoutStyles } from '../../server/web/app/card/allowedHtml.ts';

const PAGE = 'https://deckhand.test/projects/1/boards/2/cards/3';
const shown = (name: string, attributes: Record<string, string> = {}) =>
  shownElement(name, (one) => attributes[one] ?? null, PAGE);
const attributesOf = (name: string, attributes: Record<string, string>) =>
  (shown(name, attributes) as { attributes: object }).attributes;

describe('the HTML of a template in the panel', () => {
  it('has the elements that the service allows', () => {
    const allowed = [...sanitize.defaults.allowedTags, 'img', 'del', 'ins', 'details', 'summary'];

    expect([...ALLOWED_ELEMENTS].toSorted()).toEqual([...new Set(allowed)].toSorted());
  });

  it('has no scripts, and of unknown elements only what is in them', () => {
    for (const name of ['script', 'style', 'iframe', 'template']) expect(shown(name)).toBe('nothing');
    for (const name of ['form', 'svg', 'x-element', 'button']) expect(shown(name)).toBe('contents');
  });

  it('keeps no handlers, classes, ids and styles', () => {
    const attributes = { onclick: 'alert(1)', class: 'bar', id: 'content', style: 'position:fixed', title: 'Kept' };

    expect(attributesOf('p', attributes)).toEqual({ title: 'Kept' });
  });

  it('opens links in another window, and only those of the web and of mail', () => {
    const link = { href: 'https://example.com/a', rel: 'noopener noreferrer', target: '_blank' };

    expect(attributesOf('a', { href: 'https://example.com/a', target: '_top' })).toEqual(link);
    expect(shown('a', { href: '/docs' })).toMatchObject({ attributes: { href: 'https://deckhand.test/docs' } });
    expect(shown('a', { href: 'mailto:a@b.test' })).toMatchObject({ attributes: { href: 'mailto:a@b.test' } });
    for (const href of ['javascript:alert(1)', ' java\nscript:alert(1)', 'data:text/html,x', 'vbscript:x', 'https://'])
      expect(attributesOf('a', { href })).toEqual({});
    expect(attributesOf('a', {})).toEqual({});
  });

  it('has pictures of this host only, and says so of others', () => {
    expect(attributesOf('img', { src: '/a.png', alt: 'A boat', onerror: 'x' })).toEqual({
      src: 'https://deckhand.test/a.png',
      alt: 'A boat',
    });
    expect(shown('img', { src: 'data:image/png;base64,AA' })).toMatchObject({ name: 'img' });
    for (const src of [
      'https://other.test/a.png',
      '//other.test/a.png',
      'data:text/html,x',
      'https://deckhand.test.evil/',
    ])
      expect(shown('img', { src, alt: 'A boat' })).toEqual({
        name: 'em',
        attributes: {},
        text: 'Picture from another host is not shown: A boat',
      });
  });

  it('has neither landmarks nor main headings', () => {
    expect(shown('main')).toMatchObject({ name: 'div' });
    expect(shown('h1')).toMatchObject({ name: 'h3' });
    expect(shown('h6')).toMatchObject({ name: 'h6' });
  });

  it('is aligned as the service saves it, without a style attribute', async () => {
    const html = await sanitizeHtml('<p style="color:red;text-align:center">a style="text-align:left" b</p>');

    expect(withoutStyles(html)).toBe('<p data-align="center">a style="text-align:left" b</p>');
    expect(shown('p', { 'data-align': 'center' })).toMatchObject({ align: 'center' });
  });
});
