import { Authenticate } from '../../shared/user.ts';
import { type Procedure, procedures } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { callAll, withAllReplies, withCalls } from './calls.ts';
import type { Call, Command } from './command.ts';
import { INSTALL, SHELLS, scriptFor } from './completion.ts';
import { CONTRACT_COMMANDS } from './contractCommands.ts';
import { DATABASE_COMMANDS } from './databaseCommands.ts';
import { isDeletion, runDeletion } from './deletion.ts';
import { exampleFor } from './example.ts';
import { hasPages, kebab } from './options.ts';
import { isTemplateRun, runTemplate } from './templateRun.ts';

const BUILT_IN: Record<string, Command> = {
  migrate: {
    does: 'Run pending migrations.',
    input: undefined,
    common: [],
    run: async ({ environment, terminal }) => {
      const { withDatabase } = await import('./onDatabase.ts');
      const { migrate } = await import('../database/migrate.ts');
      const show = (line: string) => terminal.canSee && terminal.update(line);
      const applied = await withDatabase(environment, (database) =>
        migrate(database, {
          onMigration: (name) => show(`Runs ${name}`),
          onWait: (line) => terminal.write(`${line}\n`),
          onAdopted: (line) => terminal.write(`${line}\n`),
        }),
      ).finally(() => show(''));
      return {
        result: { applied },
        message: applied.length === 0 ? 'The tables are up to date.' : `Applied: ${applied.join(', ')}`,
      };
    },
  },
  demo: {
    does: 'Fill an empty database with the demo data.',
    input: undefined,
    common: [],
    run: async ({ environment }) => {
      const { withDatabase } = await import('./onDatabase.ts');
      const { migrate } = await import('../database/migrate.ts');
      const { fillWithDemoData } = await import('../database/seed/demo.ts');
      const filled = await withDatabase(environment, async (database) => {
        await migrate(database);
        return fillWithDemoData(database);
      });
      return {
        result: { filled },
        message: filled
          ? 'Filled with the demo data.'
          : 'Nothing changed: the database is not empty. For the demo data, choose another DATA_DIR or DATABASE_URL.',
      };
    },
  },
  login: {
    does: 'Sign in to a service, with a prompt for the password: commands with its --url then act as you.',
    input: Authenticate.pick({ email: true }),
    common: ['url', 'recovery'],
    run: async (given) => (await import('./login.ts')).login(given),
  },
  logout: {
    does: 'End the login to a service.',
    input: undefined,
    common: ['url'],
    run: async (given) => (await import('./login.ts')).logout(given),
  },
  ...Object.fromEntries(
    SHELLS.map((shell): [string, Command] => [
      `completion ${shell}`,
      {
        does: `Print a script that completes commands, options and values in ${shell}.`,
        explains: INSTALL[shell],
        input: undefined,
        common: [],
        run: async () => {
          const script = scriptFor(shell, COMMANDS);
          return { result: { script }, message: script };
        },
      },
    ]),
  ),
};

/** The command is `login`. */
const NO_COMMAND = 'auth.authenticate';

/** Every procedure is a command with the same input and checks: `users.signOut` is `users sign-out`. */
export const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ...Object.entries({ ...BUILT_IN, ...CONTRACT_COMMANDS, ...DATABASE_COMMANDS }),
  ...procedures
    .filter(({ name }) => name !== NO_COMMAND)
    .map((procedure): [string, Command] => [commandName(procedure.name), commandOf(procedure)]),
]);

function commandName(procedure: string): string {
  return kebab(procedure).replace('.', ' ');
}

function commandOf(procedure: Procedure): Command {
  const { name, type, input, summary, description, access } = procedure;
  const isRun = isTemplateRun(name);
  const isList = hasPages(input);
  return {
    does: `${summary}.`,
    explains: `${description} ${ACCESS[access].callers}`,
    input,
    example: () => exampleFor(procedure),
    common: [
      ...('role' in ACCESS[access] ? (['project'] as const) : []),
      'as',
      'url',
      ...(isList ? (['all'] as const) : []),
      ...(type === 'query' ? (['columns'] as const) : []),
      ...(isRun || isDeletion(name) ? (['yes'] as const) : []),
    ],
    run: (given) =>
      withCalls(given, async (call) => {
        if (isRun) return runTemplate(call, name, given);
        if (isDeletion(name)) return runDeletion(call, name, given);
        const result = await (given.chosen.all ? resultOfAll(call, name, given.input) : call(name, given.input));
        return { result, ...(name in MESSAGES && { message: MESSAGES[name] }) };
      }),
  };
}

async function resultOfAll(call: Call, name: string, input: unknown): Promise<unknown> {
  const result = await callAll(call, name, input);
  return name === 'comments.list' ? withAllReplies(call, result) : result;
}

/** Tokens aren't printed; with --url, the new one is stored. */
const MESSAGES: Record<string, string> = {
  'account.changePassword': 'The password is changed. Other sessions have ended.',
};
