import { afterAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../server/cli/commands.ts';
import { exampleWords } from '../../server/cli/example.ts';
import { optionsOf } from '../../server/cli/options.ts';
import { parseOptions } from '../../server/cli/parse.ts';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDirectory, removeProcesses } from '../harness/process.ts';
import { givenTerminal } from '../harness/terminal.ts';

/** The examples at the end of a command's help. */

afterAll(removeProcesses);

const examples = [...COMMANDS].filter(([, { example }]) => example);

describe('the example of a command', () => {
  it.each(examples)('%s sends the fields of the request', async (_name, command) => {
    const { fields } = command.example!() as { fields: Record<string, unknown> };
    const secrets = optionsOf(command.input).filter(({ kind, field }) => kind === 'secret' && field in fields);
    const answers = secrets.flatMap(({ field, isNew }) => Array(isNew ? 2 : 1).fill(fields[field]));

    const { input } = await parseOptions(command, exampleWords(command), givenTerminal(answers));

    // An empty text clears a field, as null does.
    const sent = Object.entries(input ?? {}).map(([field, value]) => [field, value === '' ? null : value]);
    expect(Object.fromEntries(sent)).toEqual(fields);
  });

  it('is quoted for a shell', async () => {
    const { printed } = await runCommandLine(['groups', 'create', '--help'], () => ({}));

    expect(printed).toMatch(
      /\n {2}npx deckhand groups create --board-id 2 --title Waiting --color '#8a4baf' --as member@demo\.test$/,
    );
  });

  it('works on the demo data if it only reads', async () => {
    const DATA_DIR = await givenDirectory();
    const command = (...words: string[]) => runCommandLine(words, () => ({ DATA_DIR }), givenTerminal());
    await command('demo');

    for (const name of [
      'boards list',
      'boards get',
      'cards list',
      'comments list',
      'users list',
      'projects list-own',
    ]) {
      const words = exampleWords(COMMANDS.get(name)!);
      expect(await command(...name.split(' '), ...words), name).toMatchObject({ exitCode: 0 });
    }
  });
});
