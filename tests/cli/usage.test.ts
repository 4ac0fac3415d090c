import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { COMMANDS } from '../../server/cli/commands.ts';
import { DEFINITIONS } from '../../server/cli/definitions.ts';
import { exampleWords } from '../../server/cli/example.ts';
import { kebab } from '../../server/cli/options.ts';
import { parseOptions } from '../../server/cli/parse.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { toFailure } from '../../shared/errors.ts';
import { givenDirectory } from '../harness/process.ts';
import { programOptions } from '../harness/programOptions.ts';
import { givenTerminal } from '../harness/terminal.ts';

/** For commands that must not open a database: reading the settings throws. */
const noSettings = () => {
  throw new Error('The settings were read.');
};
const helpOf = async (name = '') =>
  (await runCommandLine([...name.split(' ').filter(Boolean), '--help'], noSettings)).printed!;

describe('npx deckhand', () => {
  it('--help lists every procedure by its noun, and NOUN --help what its commands do', async () => {
    const printed = await helpOf();

    expect(printed).toMatch(/^Usage: .*\n {2}migrate +Run .*\n {2}demo .*\n {2}login .*\n {2}boards +get, list/s);
    expect(await runCommandLine([], noSettings)).toEqual({ exitCode: 0, printed });
    for (const [noun, verbs] of Map.groupBy(procedures, ({ name }) => kebab(name.split('.')[0]!))) {
      if (noun === 'auth') continue;
      const help = await helpOf(noun);
      expect(printed).toContain(`\n  ${noun} `);
      for (const { name, summary } of verbs) {
        expect(help).toMatch(new RegExp(`\\n  ${noun} ${kebab(name.split('.')[1]!)} +${summary}`));
      }
    }
    expect(Math.max(...printed.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it('COMMAND --help speaks of options and empty values, none of which means two things', async () => {
    for (const [name, command] of COMMANDS) {
      const flags = command.options.map(({ flag }) => flag);
      expect((await helpOf(name)).split('Usage:')[1], name).not.toMatch(/not\s+sent|\bnull\b|X-Project-Id/);
      expect(flags, name).toEqual([...new Set(flags)]);
    }
  });

  it.each([
    ['users update', /--name TEXT +Their name\. Not changed if not given\.\n/],
    ['users update', /--language TEXT +Their language\. Not changed if not given; '' clears it\.\n/],
    ['tags list', /--limit N +The maximum number of rows, 1 to 200; 50 if not given\./],
    ['users create', /Usage: npx deckhand users create --name TEXT --email TEXT \[OPTIONS\]/],
    ['users create', /--\[no-\]superadmin +Whether they/],
    ['users create', /--password +Their password; .*Prompted for, except with --kind\s+service/],
    ['users create', /^Create a user\.\n\nCreates a person with a password[\s\S]* For\s+superadmins\.\n\nUsage: /],
    ['account change-password', /Always prompted for/],
    ['master-boards push', /Like a sync, but without cards/],
    ['members set', /--role viewer\|member\|owner/],
    ['groups create', /\n {2}npx deckhand groups create .* --color '#8a4baf' --url http:\/\/127\.0\.0\.1:3000$/],
  ])('%s --help has %s', async (command, part) => {
    expect(await helpOf(command)).toMatch(part);
  });

  it.each([
    ['remove', 'There is no command remove.\n'],
    ['bords', 'There is no command bords. Did you mean boards?\n'],
    ['board lsit', 'There is no command board lsit. Did you mean boards list?\n'],
    ['lgoin --email x', 'There is no command lgoin. Did you mean login?\n'],
    ['toString', 'There is no command toString.'],
    ['users remove', 'There is no command users remove.'],
    ['demo twice', "Unexpected argument 'twice'"],
    ['completion zhs', 'Did you mean completion zsh?'],
    ['users list --frobnicate', 'There is no option --frobnicate.\n'],
    ['users list --serach x', 'There is no option --serach. Did you mean --search?\n'],
    ['boards get 2', "Unexpected argument '2'. Did you mean --id 2?\n"],
    ['boards get --id', '--id needs a value'],
    ['boards get --id -1', '--id needs a value; one that begins with a dash is written as --id=-1.'],
    ['cards list --all=yes', '--all takes no value.'],
    ['users create --name x', '--email is missing.'],
    ['users create --password secret', "Unexpected argument 'secret': --password is prompted for, or read from"],
    ['boards list --project x', '--project must be the id of a project.'],
    ['users list --project 1', 'There is no option --project.'],
    ['groups reorder --groups 7', '--groups must be ids with their positions, such as 7:2,8:1.'],
    ['groups reorder --groups 7:1:2', '--groups must be ids with their positions, such as 7:2,8:1.'],
    ['boards get --id 1 --all', 'There is no option --all.'],
    ['boards list --key dkh_x', 'There is no option --key.'],
  ])('2 for %j, before the database is opened', async (words, message) => {
    const { exitCode, complaint } = await runCommandLine(words.split(' '), noSettings);

    expect(exitCode).toBe(2);
    expect(complaint).toContain(message);
    expect(complaint).toMatch(/\nSee npx deckhand (\w+ \w+ |demo |users |completion )?--help$/);
  });

  it('1 for a setting with a wrong value', async () => {
    const { exitCode, complaint } = await runCommandLine(['migrate', '--json'], () => ({ LOG_LEVEL: 'loud' }));

    expect(exitCode).toBe(1);
    expect(JSON.parse(complaint!)).toEqual({ error: { message: expect.stringMatching(/^LOG_LEVEL: /) } });
  });

  describe('an option for many rows', () => {
    const givenFile = async (text: string) => {
      const path = join(await givenDirectory(), 'cards.json');
      await writeFile(path, text);
      return path;
    };
    const rowsOf = async (value: string) =>
      (await parseOptions(COMMANDS.get('cards create-many')!, ['--cards', value], givenTerminal())).input?.cards;

    it('takes a JSON list, or the name of a file with one', async () => {
      expect(await rowsOf('[{"title": "Here"}]')).toEqual([{ title: 'Here' }]);
      expect(await rowsOf(await givenFile('[{"title": "From a file"}]'))).toEqual([{ title: 'From a file' }]);
    });

    it.each([
      ['a broken list', async () => '[{'],
      ['a missing file', async () => '/nonexistent/cards.json'],
      ['a file without a list', () => givenFile('{}')],
    ])('422 for %s', async (_, value) => {
      expect(await rowsOf(await value()).catch(toFailure)).toMatchObject({
        status: 422,
        message: '--cards must be a file with a JSON list, - for standard input, or the list itself.',
      });
    });
  });

  it.each([...DEFINITIONS].filter(([, { example }]) => example?.()))(
    'the example of %s sends its fields',
    async (name, definition) => {
      const { fields } = definition.example!() as { fields: Record<string, unknown> };
      const command = COMMANDS.get(name)!;
      const secrets = command.options.filter(({ kind, field = '' }) => kind === 'secret' && field in fields);
      const answers = secrets.flatMap(({ field = '', isNew }) => Array(isNew ? 2 : 1).fill(fields[field]));

      const { input } = await parseOptions(command, exampleWords(definition), givenTerminal(answers));

      // An empty text clears a field, as null does.
      const sent = Object.entries(input ?? {}).map(([field, value]) => [field, value === '' ? null : value]);
      expect(Object.fromEntries(sent)).toEqual(fields);
    },
  );
});

describe('a program that is started by hand', () => {
  it.each([
    ['--help', 0, 'Usage: npm run test:night -- fuzz [--seed 1] [--only TEXT]'],
    ['--frobnicate', 2, "Unknown option '--frobnicate'.\nUsage: npm run test:night -- fuzz [--seed 1] [--only TEXT]"],
  ])('prints its usage for %s', (option, exitCode, usage) => {
    const [{ argv }, printed] = [process, vi.fn()];
    process.argv = ['node', 'run.ts', option];
    const exit = vi.spyOn(process, 'exit').mockImplementation(vi.fn<() => never>());
    for (const output of ['log', 'error'] as const) vi.spyOn(console, output).mockImplementation(printed);

    programOptions('npm run test:night -- fuzz', { seed: '1', only: '' });
    process.argv = argv;

    expect(exit.mock.lastCall).toEqual([exitCode]);
    expect(printed.mock.lastCall).toEqual([usage]);
    vi.restoreAllMocks();
  });
});
