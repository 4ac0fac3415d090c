import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { COMMANDS } from '../../server/cli/commands.ts';
import { blocksOf, exists, hasChanges, pages, ROOT, testCommandsOf, textOf } from '../harness/documentation.ts';
import { missingLines } from '../harness/guide.ts';
import { isNight } from '../harness/sample.ts';

/** What a newcomer reads first, and the page with the most moving parts. The night runs all. */
const ALWAYS = ['README.md', 'docs/tutorial.md', 'docs/rest.md', 'docs/rollouts.md'];

describe('the commands of the documentation', () =>
  testCommandsOf((page) => !hasChanges(page) && (isNight || ALWAYS.includes(page))));

describe('the documentation', () => {
  it('is checked for lines that are not printed, or by another command', () => {
    const steps = [
      { script: 'a', shown: 'id  title\n2   Launch …\n' },
      { script: 'b', shown: 'done\n' },
    ];
    const printed = (first: string, second: string) => `\n--- step 0 ---\n${first}\n\n--- step 1 ---\n${second}\n`;

    expect(missingLines(steps, printed('id title\nmore\n2  Launch plan', 'done'))).toEqual([]);
    expect(missingLines(steps, printed('2  Launch plan\nid title', 'done'))).toEqual(['2   Launch …']);
    expect(missingLines(steps, printed('id title\n2  Launch plan\ndone', ''))).toEqual(['done']);
  });

  it('has all its pages in the table of the README', () => {
    const table = textOf('README.md').split('## Read on')[1]!.split('\n## ')[0]!;

    expect(pages.filter((page) => page.startsWith('docs/') && !table.includes(`](${page})`))).toEqual([]);
  });

  it.each(pages)('%s has only blocks that are found', (page) => {
    const fences = textOf(page).match(/^```/gm) ?? [];

    expect(blocksOf(page).length * 2).toBe(fences.length);
  });

  it.each(pages)('%s names scripts, commands, settings and files that exist', (page) => {
    const text = textOf(page);
    const named = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name!);

    const scripts = named(/npm run ([\w:-]+)/g).filter((name) => !(name in packageJson.scripts));
    const commands = named(/npx deckhand ([a-z][a-z-]*(?: [a-z][a-z-]*)?)/g).filter((name) => !isCommand(name));
    const links = named(/\]\((?!https?:)([^)#]+)\)/g).filter((path) => !exists(join(ROOT, page, '..', path)));

    expect({ scripts, commands, links }).toEqual({ scripts: [], commands: [], links: [] });
  });
});

const isCommand = (name: string) =>
  [...COMMANDS.keys()].some((known) => [name, name.split(' ', 1)[0]].includes(known) || known.startsWith(`${name} `));
