import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import sanitize from 'sanitize-html';
import { describe, expect, it } from 'vitest';
import { refuseHtml, sanitizeHtml } from '../../server/security/html.ts';
import { seed } from '../harness/sample.ts';

const LONGEST = 65_536;
const filledWith = (part: string) => part.repeat(Math.floor(LONGEST / part.length));

describe('HTML', () => {
  it.each([
    ['plain text', 'Ready?\n "Yes" 😀', 'Ready?\n "Yes" 😀'],
    ['plain < > &', 'Tom & Jerry <3, a < b && c > d', 'Tom & Jerry <3, a < b && c > d'],
    ['entities', '&lt;b&gt; &amp; &#65;', '&lt;b&gt; &amp; &#65;'],
    ['plain < > & between tags', '<b>a < b && c > d</b> &#65;', '<b>a &lt; b &amp;&amp; c &gt; d</b> A'],
    ['< at the end', 'a & b <', 'a &amp; b &lt;'],
    ['an end tag alone', 'a & b</b>', 'a &amp; b'],
    ['a comment', 'a<!-- b --><?c?><!d>e', 'ae'],
    ['a script', 'a<script>alert(1)</script>b', 'ab'],
    ['an event handler', '<p onclick="x()">a</p>', '<p>a</p>'],
    ['a foreign scheme', '<a href="javascript:x()">a</a>', '<a>a</a>'],
    ['a scheme in disguise', '<a href="java&#10;script:x()">a</a><img src="&#1;data:x">', '<a>a</a><img />'],
    ['an unfinished tag', '<img src=x onerror=y', ''],
    [
      'details',
      '<details open ontoggle="x()"><summary>a</summary>b</details>',
      '<details open><summary>a</summary>b</details>',
    ],
    ['class and id', '<p class="a b" id="c" name="d" data-e="f">g</p>', '<p class="a b" id="c">g</p>'],
    ['quotes in a class', `<p class='a" onclick="x()'>b</p>`, '<p class="a&quot; onclick=&quot;x()">b</p>'],
    ['an alignment', '<p style=" text-align : Center ; color: red">a</p>', '<p style="text-align:center">a</p>'],
    ['two alignments', '<p style="text-align:left;text-align:end">a</p>', '<p style="text-align:end">a</p>'],
    ['other styles', '<p style="position:fixed;background:url(javascript:x())">a</p>', '<p>a</p>'],
    ['a script as alignment', '<p style="text-align:expression(x())">a</p>', '<p>a</p>'],
    ['an attribute in an alignment', `<p style='text-align:left" onclick="x()'>a</p>`, '<p>a</p>'],
    ['a telephone number', '<a href="tel:+49123">a</a><img src="tel:+49123">', '<a href="tel:+49123">a</a><img />'],
    [
      'a new window',
      '<a href="https://a.test" target="_BLANK" rel="opener">a</a>',
      '<a href="https://a.test" target="_blank" rel="noopener noreferrer">a</a>',
    ],
    ['another window', '<a href="https://a.test" target="_top" rel="opener">a</a>', '<a href="https://a.test">a</a>'],
    ['links around a removed tag', '<a href="//x"><x <b><a href="//x">', '<a></a><a></a>'],
  ])('with %s is sanitised', async (_, sent, stored) => {
    expect(await sanitizeHtml(sent)).toBe(stored);
  });

  const textParts = '< <3 <_b > & &lt; &#60 &lt b> /b> !-- ? " \' ` \n ſ ＜b＞'
    .split(' ')
    .map((part) => part.replace('_', ' '));

  it('has no tags where plain text is returned as sent, also next to another one', async () => {
    const description = fc.array(fc.constantFrom(...textParts)).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(description, description, async (one, other) => {
        const tags: string[] = [];
        const page = (await sanitizeHtml(one)) + (await sanitizeHtml(other));
        sanitize(page, { allowedTags: [], onOpenTag: (name) => tags.push(name) });

        expect(tags.filter((name) => name !== 'b')).toEqual([]);
        if (!/<(?=[a-z/!?]|$)/i.test(one)) expect(page.startsWith(one)).toBe(true);
      }),
      { numRuns: 300, seed },
    );
  });

  it('that was sanitised does not change when sanitised again', async () => {
    const tags =
      '<b>|</b>|<a href="//x">|<a target=_blank rel=x>|</a>|<p>|<p style="text-align:left;x:y" class="&quot;" id=\'"\'>';
    const others = `<details open>|<summary>|<li>|<script>|<x|<!--|-->|<|>|&|&amp;|"|'|x `;
    const parts = fc.constantFrom(...tags.split('|'), ...others.split('|'));
    await fc.assert(
      fc.asyncProperty(fc.array(parts), async (sent) => {
        const once = await sanitizeHtml(sent.join(''));

        expect(await sanitizeHtml(once)).toBe(once);
      }),
      { numRuns: 300, seed },
    );
  });

  it.each(['<', '<p>x</p>', '<br>', '<br>&amp;', '<a href="javascript:x">y</a>', '</p>'])(
    'is refused with too many %s',
    (part) => {
      expect(refuseHtml(filledWith(part))).toBe('must not contain more than 3000 of the characters < and &');
      expect(refuseHtml('<br>'.repeat(3000))).toBeUndefined();
    },
  );

  it.each(['&', '&amp;', '< ', '<3', '>'])('that is plain text may be full of %s', async (part) => {
    const long = filledWith(part);

    expect(refuseHtml(long)).toBeUndefined();
    expect(await sanitizeHtml(long)).toBe(long);
  });

  it('is refused when it is nested too deeply', () => {
    expect(refuseHtml('<b>'.repeat(101))).toBe('must not nest deeper than 100 elements');
    expect(refuseHtml('<b>'.repeat(100))).toBeUndefined();
  });

  it('is at most six times as long after sanitising', async () => {
    expect((await sanitizeHtml(`<b>${filledWith('>')}`)).length).toBe(4 * LONGEST + '<b></b>'.length);
    const quotes = `<a title='${'"'.repeat(60_000)}'>`;
    expect((await sanitizeHtml(quotes)).length).toBeLessThanOrEqual(6 * quotes.length);
  });

  it('of many calls is sanitised one at a time, yielding to other work in between', async () => {
    const events: string[] = [];
    const calls = Array.from({ length: 3 }, () =>
      sanitizeHtml('<b>x</b>'.repeat(500)).then(() => void events.push('read')),
    );
    let isDone = false;
    const others = (async () => {
      while (!isDone) {
        events.push('turn');
        await setImmediate();
      }
    })();

    await Promise.all(calls);
    isDone = true;
    await others;

    expect(events.filter((event) => event === 'read')).toHaveLength(3);
    expect(events.join(' ')).not.toContain('read read');
  });
});
