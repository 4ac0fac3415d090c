import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseTemplate, readTemplate, writtenTemplate } from '../../server/cli/templateYaml.ts';
import { visible } from '../../server/cli/visible.ts';
import { givenDirectory } from '../harness/process.ts';

const refusalOf = (text: string) => {
  try {
    parseTemplate(text, 'template.yaml');
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

const boardWith = (description: string) => ({
  board: { key: 'welcome', title: 'Welcome', description, is_active: false, groups: [] },
});

describe('a template file', () => {
  it('has descriptions as blocks, the schema in its first line, and no aliases', () => {
    const card = { key: 'hello', title: 'yes', description: '<p>One</p>\n<p>Two</p>' };
    const group = { key: 'first', title: '7', cards: [card] };

    expect(writtenTemplate({ board: { key: 'welcome', title: 'Welcome', groups: [group, group] } })).toBe(
      `# yaml-language-server: $schema=template-file.schema.json

board:
  key: welcome
  title: Welcome
  groups:
${`    - key: first
      title: "7"
      cards:
        - key: hello
          title: yes
          description: |-
            <p>One</p>
            <p>Two</p>
`.repeat(2)}`,
    );
  });

  it.each([
    'One line.',
    'Two\nlines',
    'Lines\r\nof Windows',
    'a blank \n\n  indented\n\ttab\nend',
    '# no comment',
    '- no list: "quotes" and \'more\' | >',
    'true',
    '0x10',
    '~',
    'A text with\u202e another direction, \u2028 a separator and 😀',
    'x '.repeat(500).trim(),
    '--- \n...\n%YAML',
    '&a *a !tag @at `tick`',
  ])('reads %j as it was written, also as a terminal shows it', (description) => {
    const written = writtenTemplate(boardWith(description));

    expect(parseTemplate(written, 'template.yaml')).toEqual(boardWith(description));
    expect(parseTemplate(visible(written), 'template.yaml')).toEqual(boardWith(description));
  });

  it('reads JSON, too', () => {
    expect(parseTemplate(JSON.stringify(boardWith('x')), 'template.yaml')).toEqual(boardWith('x'));
  });
});

describe('wrong usage, in one sentence with the place', () => {
  const laughs = [
    'a: &a [x, x]',
    ...Array.from('bcdefghi', (name, at) => `${name}: &${name} [*${'abcdefgh'[at]}, *a]`),
  ];

  it.each([
    ['an alias', 'a: &x 1\nb: *x\n', 'Aliases are not allowed at line 2, column 4. Write the value out.'],
    ['aliases of aliases', laughs.join('\n'), 'Aliases are not allowed at line 2, column 8. Write the value out.'],
    ['a key of a flow twice', 'board: { key: a, 1: b, key: b }\n', 'Map keys must be unique at line 1, column 24.'],
    ['a key twice', 'board:\n  key: a\n  key: b\n', 'Map keys must be unique at line 3, column 3.'],
    ['an open list', '[', 'Flow sequence must end with a ] at line 1, column 2.'],
    ['a tag', 'board: !!js/function x', 'Unresolved tag: tag:yaml.org,2002:js/function at line 1, column 8.'],
    ['two documents', 'a: 1\n---\nb: 2\n', 'Source contains multiple documents at line 2, column 1.'],
  ])('for %s', (_, text, message) => {
    expect(refusalOf(text)).toBe(`template.yaml can't be read: ${message}`);
  });

  it('for a file of more than 1 MiB, and for none', async () => {
    const file = join(await givenDirectory(), 'large.yaml');
    await writeFile(file, `a: ${'x'.repeat(1024 * 1024)}`);

    await expect(readTemplate(file)).rejects.toThrow(`${file} is too large: a template file has at most 1 MiB.`);
    await expect(readTemplate(`${file}.missing`)).rejects.toThrow(/can't be read: ENOENT/);
  });

  it('merge keys and words of YAML 1.1 are texts', () => {
    expect(parseTemplate('title: yes\n"<<": {a: 1}\n', 'template.yaml')).toEqual({ title: 'yes', '<<': { a: 1 } });
  });
});
