import { type Procedure, procedures } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { BUILT_IN } from './builtIn.ts';
import { callAll, withAllReplies, withCalls } from './calls.ts';
import type { Call, Command, Commands } from './command.ts';
import { INSTALL, SHELLS, scriptFor } from './completion.ts';
import { isDeletion, runDeletion } from './deletion.ts';
import { exampleFor } from './example.ts';
import { type Common, hasPages, kebab } from './options.ts';
import { isTemplateRun, runTemplate } from './templateRun.ts';

/** The command is `login`. */
const NO_COMMAND = 'auth.authenticate';

/** Every procedure is a command with the same input and checks: `users.signOut` is `users sign-out`. */
export const COMMANDS: Commands = new Map([
  ...SHELLS.map((shell): [string, Command] => [`completion ${shell}`, completionFor(shell)]),
  ...Object.entries(BUILT_IN),
  ...procedures
    .filter(({ name }) => name !== NO_COMMAND)
    .map((procedure): [string, Command] => [kebab(procedure.name).replace('.', ' '), commandOf(procedure)]),
]);

function completionFor(shell: (typeof SHELLS)[number]): Command {
  return {
    does: `Print a script that completes commands, options and values in ${shell}.`,
    explains: INSTALL[shell],
    run: async () => {
      const script = scriptFor(shell, COMMANDS);
      return { result: { script }, message: script };
    },
  };
}

function commandOf(procedure: Procedure): Command {
  const { name, type, input, summary, description, access } = procedure;
  const common: Record<string, boolean> = {
    project: 'role' in ACCESS[access],
    as: true,
    url: true,
    all: hasPages(input),
    columns: type === 'query',
    yes: isTemplateRun(name) || isDeletion(name),
  };
  return {
    does: `${summary}.`,
    explains: `${description} ${ACCESS[access].callers}`,
    input,
    example: () => exampleFor(procedure),
    common: Object.keys(common).filter((option) => common[option]) as Common[],
    run: (given) =>
      withCalls(given, async (call) => {
        if (isTemplateRun(name)) return runTemplate(call, name, given);
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
