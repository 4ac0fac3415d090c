import { type Procedure, procedures } from '../api/procedures.ts';
import { ACCESS } from '../domain/access/access.ts';
import { BUILT_IN } from './builtIn.ts';
import type { Command, Definition } from './command.ts';
import { INSTALL, SHELLS } from './completion.ts';
import { isDeletion, isErasure } from './deletion.ts';
import { exampleFor, exampleLine } from './example.ts';
import { optionsOf } from './inputOptions.ts';
import { type Common, commandName } from './options.ts';
import { isRollout } from './rollout.ts';
import { isTemplateRun } from './templateRun.ts';

/** The command is `login`. */
const NO_COMMANDS = ['auth.authenticate', 'auth.startSso', 'auth.finishSso'];

/** Every procedure is a command with the same input and checks: `users.signOut` is `users sign-out`. */
export const DEFINITIONS: ReadonlyMap<string, Definition> = new Map([
  ...SHELLS.map((shell): [string, Definition] => [`completion ${shell}`, completionFor(shell)]),
  ...Object.entries(BUILT_IN),
  ...procedures
    .filter(({ name }) => !NO_COMMANDS.includes(name))
    .map((procedure): [string, Definition] => [commandName(procedure.name), definitionOf(procedure)]),
]);

export const describeCommand = (name: string, definition: Definition): Command => ({
  does: definition.does,
  explains: definition.explains,
  options: optionsOf(definition),
  hasInput: definition.input !== undefined,
  operands: definition.operands ?? [],
  exampleLine: exampleLine(name, definition),
  procedure: definition.procedure,
});

function completionFor(shell: (typeof SHELLS)[number]): Definition {
  return {
    does: `Print a script that completes commands, options and values in ${shell}.`,
    explains: INSTALL[shell],
  };
}

function definitionOf(procedure: Procedure): Definition {
  const { name, type, input, summary, description, access, isPaged } = procedure;
  const common: Record<string, boolean> = {
    project: 'role' in ACCESS[access],
    as: true,
    url: true,
    all: isPaged,
    columns: type === 'query',
    yes: isTemplateRun(name) || isDeletion(name) || isErasure(name) || isRollout(name),
  };
  return {
    does: `${summary}.`,
    explains: `${description} ${ACCESS[access].callers}`,
    input,
    example: () => exampleFor(procedure),
    common: Object.keys(common).filter((option) => common[option]) as Common[],
    procedure: { name, type },
  };
}
