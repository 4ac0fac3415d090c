import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../server/cli/commands.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDirectory } from '../harness/process.ts';

const run = promisify(execFile);
const scriptOf = async (shell: string) => (await runCommandLine(['completion', shell], () => ({}))).printed!;

describe('completion in bash', () => {
  let file: string;
  beforeAll(async () => {
    file = join(await givenDirectory(), 'deckhand.bash');
    await writeFile(file, await scriptOf('bash'));
  });

  /** What Tab offers after these words, the last of which is unfinished. */
  async function offered(...words: string[]): Promise<string[]> {
    const script = `source "$1"; shift; COMP_WORDS=(deckhand "$@"); COMP_CWORD=$#
      $(complete -p deckhand | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['-c', script, 'bash', file, ...words]);
    return stdout.split('\n').filter(Boolean);
  }

  it('offers commands, options and values', async () => {
    const expected = {
      bo: 'boards',
      mig: 'migrate',
      'boards ': 'get list create update reorder delete restore --help',
      'completion f': 'fish',
      'members set --role ': 'viewer member owner',
      'members set --user-id 7 --role o': 'owner',
      'members set --user-id ': '',
      'users update --no-s': '--no-superadmin --no-superadmin-billing',
      'login --e': '--email',
      'login --email ': '',
      'login --recovery --u': '--url',
      'open pro': 'projects',
      'open boards ': '--page --id --print --no-print --url --json --help',
      'events f': 'follow',
      'nonsense ': '',
    };
    const found = Object.keys(expected).map(async (words) => [words, (await offered(...words.split(' '))).join(' ')]);

    expect(Object.fromEntries(await Promise.all(found))).toEqual(expected);
  });

  it('offers every option of every command', async () => {
    const script = await scriptOf('bash');

    for (const [name, command] of COMMANDS) {
      const [, choices = ''] = new RegExp(`^    '${name}'\\)\\n      choices='(.*)'`, 'm').exec(script) ?? [];
      const flags = command.options.map(({ flag }) => `--${flag}`);
      expect(choices.split(' '), name).toEqual(expect.arrayContaining(flags));
    }
  });
});

describe('completion in other shells', () => {
  it('has the same words for zsh', async () => {
    const choices = (script: string) => script.slice(script.indexOf('  case'), script.lastIndexOf('  esac'));

    expect(choices(await scriptOf('zsh'))).toBe(choices(await scriptOf('bash')));
    expect(await scriptOf('zsh')).toMatch(/^#compdef deckhand\n/);
  });

  it('has commands, options and values for fish, in lines that quote what has spaces', async () => {
    const lines = (await scriptOf('fish')).split('\n').filter((line) => line.startsWith('complete '));

    expect(lines).toContain(
      `complete -c deckhand -n '__deckhand_at boards' -a 'get list create update reorder delete restore'`,
    );
    expect(lines).toContain(`complete -c deckhand -n '__deckhand_in members set' -l role -x -a 'viewer member owner'`);
    for (const line of lines.slice(1)) {
      expect(line).toMatch(
        /^complete -c deckhand -n '__deckhand_(at|in)[a-z -]*'( -a '[a-z -]+'| -l [a-z-]+( -x( -a '[\w ./-]+')?)?)$/,
      );
    }
  });
});
