import { callAll, withAllReplies, withCalls } from './calls.ts';
import type { Call, Command, Given, Outcome } from './command.ts';
import { COMMANDS } from './commands.ts';
import { type Shell, scriptFor } from './completion.ts';
import { confirmErasure, isDeletion, isErasure, runDeletion } from './deletion.ts';
import { commandName } from './options.ts';
import { isRollout, runRollout } from './rollout.ts';
import { isTemplateRun, runTemplate } from './templateRun.ts';

/** Runs a command. */
export async function perform(name: string, { procedure }: Command, given: Given): Promise<Outcome> {
  if (procedure) return withCalls(given, isQuery, (call) => callProcedure(call, procedure.name, given));
  const [noun, shell] = name.split(' ');
  if (noun === 'completion') {
    const script = scriptFor(shell as Shell, COMMANDS);
    return { result: { script }, message: script };
  }
  const { BUILT_IN } = await import('./builtIn.ts');
  return BUILT_IN[name]!.run(given);
}

const isQuery = (procedure: string) => COMMANDS.get(commandName(procedure))?.procedure?.type === 'query';

async function callProcedure(call: Call, name: string, given: Given): Promise<Outcome> {
  if (isTemplateRun(name)) return runTemplate(call, name, given);
  if (isDeletion(name)) return runDeletion(call, name, given);
  if (isErasure(name)) await confirmErasure(given);
  if (isRollout(name)) return runRollout(call, name, given);
  const result = await (given.chosen.all ? resultOfAll(call, name, given.input) : call(name, given.input));
  return { result, ...(name in MESSAGES && { message: MESSAGES[name] }) };
}

async function resultOfAll(call: Call, name: string, input: unknown): Promise<unknown> {
  const result = await callAll(call, name, input);
  return name === 'comments.list' ? withAllReplies(call, result) : result;
}

/** Tokens aren't printed; with --url, the new one is stored. */
const MESSAGES: Record<string, string> = {
  'account.changePassword': 'The password is changed. Other sessions have ended.',
};
