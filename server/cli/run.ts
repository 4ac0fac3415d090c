import { inspect } from 'node:util';
import type { DeckhandError } from '../../client/client.ts';
import { toFailure } from '../../shared/errors.ts';
import type { Reason } from '../../shared/reasons.ts';
import { databaseFailure } from '../database/databaseFailure.ts';
import { isStartFailure } from '../runtime/startFailure.ts';
import { VERSION } from '../runtime/version.ts';
import { nounOf, type ReadEnvironment } from './command.ts';
import { COMMANDS } from './commands.ts';
import { commandHelp, nounHelp, overallHelp, WIDEST_LINE } from './help.ts';
import { exitCodeOf, isMisuse, suggestion } from './misuse.ts';
import { parseOptions } from './parse.ts';
import { processTerminal, type Terminal } from './terminal.ts';
import { asText } from './text.ts';
import { visible } from './visible.ts';

/** The output and exit code of a command: 0 for success, 1 for an error, 2 for wrong usage, others as its help says. */
type CommandResult = { exitCode: number; printed?: string; complaint?: string };

export async function runCommandLine(
  words: string[],
  environment: ReadEnvironment,
  terminal: Terminal = processTerminal,
): Promise<CommandResult> {
  const [first = 'help', second] = words;
  const width = Math.min(WIDEST_LINE, terminal.width);
  if (first === 'help' || first === '--help') return done(overallHelp(COMMANDS, width));
  if (first === '--version') return done(VERSION);
  const ofNoun = new Map([...COMMANDS].filter(([name]) => name.startsWith(`${first} `)));
  if (ofNoun.size > 0 && (second === undefined || second === '--help')) return done(nounHelp(ofNoun, width));

  const name = [`${first} ${second}`, first].find((name) => COMMANDS.has(name));
  if (name === undefined) {
    const given = `${first}${second?.match(/^\w/) ? ` ${second}` : ''}`;
    const known = [...COMMANDS.keys()];
    const message = `There is no command ${given}.${suggestion(given, [...known, ...known.map(nounOf)])}`;
    return misused(message, ofNoun.size > 0 ? first : '');
  }
  const command = COMMANDS.get(name)!;
  if (words.includes('--help')) return done(commandHelp(name, command, width));

  const isJson = words.includes('--json');
  try {
    const given = await parseOptions(command, words.slice(name.split(' ').length), terminal);
    const {
      result,
      message,
      isPrinted = false,
      hasFailed = false,
      exitCode = hasFailed ? 1 : 0,
    } = await (await import('./perform.ts')).perform(name, command, { ...given, environment, terminal });
    if (isPrinted) return { exitCode };
    const asPeopleRead = () => message ?? asText(result, { width: terminal.width, columns: given.chosen.columns });
    const printed = isJson ? JSON.stringify(result ?? {}, null, 2) : asPeopleRead();
    return { ...done(printed), exitCode };
  } catch (error) {
    return failed(error, name, isJson);
  }
}

const done = (printed: string): CommandResult => ({ exitCode: 0, printed: visible(printed) });

const misused = (message: string, name: string): CommandResult => ({
  exitCode: 2,
  complaint: visible(`${message}\nSee npx deckhand ${name ? `${name} ` : ''}--help`),
});

function failed(error: unknown, name: string, isJson: boolean): CommandResult {
  const { message, ...failure } = failureOf(error);
  const { exitCode, ...details } = { ...failure, exitCode: exitCodeOf(error) ?? failure.exitCode };
  if (!isJson && exitCode === 2) return misused(String(message), name);
  const complaint = isJson
    ? JSON.stringify({ error: { message: String(message), ...details } }, null, 2)
    : typeof message === 'string'
      ? message
      : inspect(message);
  return { exitCode, complaint: visible(complaint) };
}

type CommandFailure = {
  exitCode: number;
  message: unknown;
  status?: number | undefined;
  reason?: Reason | undefined;
  errors?: object | undefined;
};

function failureOf(error: unknown): CommandFailure {
  const { cause } = error as { cause?: unknown };
  const startFailure = [error, cause].find(isStartFailure);
  if (startFailure) return { exitCode: 1, message: startFailure.message };
  if (isMisuse(error)) return { exitCode: 2, message: error.message };

  const ofService = isOfService(error);
  const { status, reason, message, errors } = ofService
    ? { ...error, message: error.message, errors: error.data?.errors }
    : toFailure(error);
  if (errors) return { exitCode: 2, status, reason, message: Object.values(errors).flat().join('\n'), errors };
  const isFault = status === 500 && !ofService;
  return { exitCode: 1, status, reason, message: isFault ? faultOf(error) : inOptions(message, reason) };
}

/** By its name, since the client is loaded only when a command needs it. */
const isOfService = (error: unknown): error is DeckhandError => (error as Error).name === 'DeckhandError';

/** Names options instead of headers. */
const inOptions = (message: string, reason: Reason | undefined) =>
  reason === 'no_project_access'
    ? 'No project is selected, or you have no access to it. Choose one with --project ID: npx deckhand projects list-own lists yours, npx deckhand projects list all.'
    : message;

/** Operators see the original error, unlike callers. */
function faultOf(error: unknown): unknown {
  const { cause = error } = error as { cause?: unknown };
  const fault = databaseFailure(cause);
  return isStartFailure(fault) ? fault.message : fault;
}
