import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openerFor } from '../../server/cli/browser.ts';
import { pathOf } from '../../server/cli/pagePath.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDirectory } from '../harness/process.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';

const URL_WITH_SHELL_WORDS = `http://127.0.0.1:1/$(touch$IFS"x");touch&'y'|z`;

async function open(words: string[], settings: Record<string, string> = {}) {
  const HOME = await givenDirectory();
  const terminal = givenTerminal();
  const outcome = await runCommandLine(['open', ...words], () => ({ HOME, DATA_DIR: HOME, ...settings }), terminal);
  return { ...outcome, shown: terminal.shown, HOME };
}

/** A program that writes its words to a file and ends with this exit code. */
async function givenBrowser(exitCode = 0) {
  const directory = await givenDirectory();
  const [program, words] = [join(directory, 'browser'), join(directory, 'words.json')];
  const script = `require('fs').writeFileSync(${JSON.stringify(words)}, JSON.stringify(process.argv.slice(2)))`;
  await writeFile(program, `#!${process.execPath}\n${script}\nprocess.exitCode = ${exitCode}`);
  await chmod(program, 0o700);
  return { program, words: async () => JSON.parse(await readFile(words, 'utf8')) };
}

describe('open', () => {
  it.each([
    [['--print'], {}, 'http://127.0.0.1:3000/'],
    [['--print'], { PORT: '4000' }, 'http://127.0.0.1:4000/'],
    [['--print'], { DATABASE_URL: 'postgres://db.test/deckhand', HOST: '0.0.0.0' }, 'http://localhost:3000/'],
    [['docs', '--print'], { DECKHAND_URL: 'https://deckhand.test/' }, 'https://deckhand.test/docs'],
    [['guides', '--print', '--url', 'https://h.test/below'], {}, 'https://h.test/below/docs/guides'],
    [['projects', '7', '--print'], {}, 'http://127.0.0.1:3000/projects/7'],
    [['rollouts', '5', '--print'], {}, 'http://127.0.0.1:3000/admin/rollouts/5'],
  ])('%j with %j prints %s', async (words, settings, address) => {
    expect(await open(words, settings)).toMatchObject({ exitCode: 0, printed: address, shown: [] });
  });

  it('is for the only login, and 2 with several', async () => {
    const XDG_CONFIG_HOME = await givenDirectory();
    const path = join(XDG_CONFIG_HOME, 'deckhand');
    await mkdir(path);
    const keep = (...urls: string[]) => {
      const logins = urls.map((url) => [url, { email: 'x@y.test', token: 'secret' }]);
      return writeFile(join(path, 'logins.json'), JSON.stringify(Object.fromEntries(logins)));
    };

    await keep('https://one.test');
    expect(await open(['account', '--print', '--json'], { XDG_CONFIG_HOME })).toMatchObject({
      printed: '{\n  "url": "https://one.test/account"\n}',
    });
    await keep('https://one.test', 'https://two.test');
    expect(await open(['--print'], { XDG_CONFIG_HOME })).toMatchObject(
      failure(2, 'https://one.test, https://two.test'),
    );
  });

  it('starts BROWSER with the address as one word, which no shell sees', async () => {
    const { program, words } = await givenBrowser();

    const { exitCode, printed } = await open(['--url', URL_WITH_SHELL_WORDS], { BROWSER: `${program}  --new-tab` });

    expect(exitCode).toBe(0);
    expect(await words()).toEqual(['--new-tab', printed]);
    expect(printed).toContain('$(touch$IFS%22x%22);touch&');
  });

  it('1 if no browser could be started, with the address', async () => {
    const { program } = await givenBrowser(3);

    for (const [BROWSER, problem] of [
      ['/nonexistent/browser', 'is not on this machine'],
      [program, 'ended with exit code 3'],
    ] as const) {
      const { exitCode, printed, shown } = await open(['docs'], { BROWSER });
      expect({ exitCode, printed }).toEqual({ exitCode: 1, printed: 'http://127.0.0.1:3000/docs' });
      expect(shown).toEqual([
        expect.stringContaining(`No browser was opened: ${BROWSER} ${problem}. Open the address`),
      ]);
    }
  });

  it.each([
    [['bords', '2'], 'There is no page bords. Did you mean boards? There are '],
    [['boards'], 'The id is missing: open boards 2.'],
    [['cards', 'x'], 'x is not an id.'],
    [['docs', '2'], 'The page docs has no id.'],
    [['--id', '2'], '--id needs a page: open boards 2.'],
    [['boards', '2', '3'], "Unexpected argument '3'."],
  ])('2 for %j', async (words, message) => {
    expect(await open(words, { BROWSER: '/nonexistent' })).toMatchObject(failure(2, message));
  });

  it('1 for a board without a login', async () => {
    expect(await open(['boards', '2'])).toMatchObject(failure(1, 'You are not signed in to http://127.0.0.1:3000.'));
  });

  it.each([
    ['linux', '', ['xdg-open', 'http://x/']],
    ['darwin', '', ['open', 'http://x/']],
    ['win32', '', ['rundll32', 'url.dll,FileProtocolHandler', 'http://x/']],
    ['win32', 'firefox', ['firefox', 'http://x/']],
  ])('starts on %s with BROWSER %j: %j', (platform, browser, expected) => {
    expect(openerFor('http://x/', platform, browser)).toEqual(expected);
  });
});

describe('the path of a board', () => {
  it('is found by its groups if it is too large', async () => {
    const call = async (procedure: string) => {
      if (procedure === 'boards.get') throw Object.assign(new Error(), { reason: 'answer_too_large' });
      return { groups: [{ id: 31, project_id: 7 }] };
    };

    expect(await pathOf({ page: 'boards', id: 3 }, async () => call)).toBe('/projects/7/boards/3');
  });
});

describe('the path of a card', () => {
  const groupsOf: Record<number, number[]> = { 3: [31], 4: [41, 42] };
  /** Two boards in project 7; card 12 is in this group. */
  const callsFor = (group_id: number | null) => {
    const call = vi.fn(async (procedure: string, input: unknown) => {
      const { board_id = 0 } = input as { board_id?: number };
      if (procedure === 'cards.get') return { card: { id: 12, project_id: 7, group_id } };
      if (procedure === 'boards.list') return { boards: [{ id: 3 }, { id: 4 }] };
      return { groups: groupsOf[board_id]!.map((id) => ({ id })), next_cursor: null };
    });
    return vi.fn(async (_project?: number) => call);
  };

  it.each([
    ['with its board', 42, '/projects/7/boards/4/cards/12'],
    ['with the first board if it is in no group', null, '/projects/7/boards/3/cards/12'],
    ['without a board if its group is on none', 99, '/projects/7'],
  ])('is %s', async (_, group, path) => {
    const callsIn = callsFor(group);

    expect(await pathOf({ page: 'cards', id: 12 }, callsIn)).toBe(path);
    expect(callsIn.mock.lastCall).toEqual([7]);
  });
});
