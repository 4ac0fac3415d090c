import type { DeckhandError } from '../../client/client.ts';
import type { Reason } from '../../shared/reasons.ts';
import { toFailure } from '../errors.ts';
import { isStartFailure } from '../startFailure.ts';
import type { ReadEnvironment } from './command.ts';
import { COMMANDS } from './commands.ts';
import { commandHelp, nounHelp, overallHelp } from './help.ts';
import { parseOptions } from './options.ts';
import { asText } from './table.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** The output and exit code of a command: 0 for success, 1 if refused or failed, 2 for wrong usage. */
type CommandAnswer = { exitCode: 0 | 1 | 2; printed?: string; complaint?: unknown };

export async function answerTo(
  words: string[],
  environment: ReadEnvironment,
  terminal: Terminal = processTerminal,
): Promise<CommandAnswer> {
  const [first = 'help', second] = words;
  if (first === 'help' || first === '--help') return done(overallHelp(COMMANDS));
  const ofNoun = new Map([...COMMANDS].filter(([name]) => name.startsWith(`${first} `)));
  if (ofNoun.size > 0 && (second === undefined || second === '--help')) return done(nounHelp(ofNoun));

  const name = [`${first} ${second}`, first].find((name) => COMMANDS.has(name));
  const command = name === undefined ? undefined : COMMANDS.get(name);
  if (!name || !command) {
    const isOfNoun = ofNoun.size > 0;
    return misused(`There is no command ${first}${second?.match(/^\w/) ? ` ${second}` : ''}.`, isOfNoun ? first : '');
  }
  if (words.includes('--help')) return done(commandHelp(name, command));

  const isJson = words.includes('--json');
  try {
    const options = words.slice(name.split(' ').length).filter((word) => word !== '--json');
    const given = await parseOptions(command, options, terminal);
    const { result, told } = await command.run({ ...given, environment, terminal });
    return done(isJson ? JSON.stringify(result ?? {}, null, 2) : (told ?? asText(result)));
  } catch (error) {
    return failed(error, name, isJson);
  }
}

const done = (printed: string): CommandAnswer => ({ exitCode: 0, printed });

const misused = (message: string, name: string): CommandAnswer => ({
  exitCode: 2,
  complaint: `${message}\nSee npx deckhand ${name ? `${name} ` : ''}--help`,
});

function failed(error: unknown, name: string, isJson: boolean): CommandAnswer {
  const { exitCode, message, ...details } = failureOf(error);
  if (isJson)
    return { exitCode, complaint: JSON.stringify({ error: { message: String(message), ...details } }, null, 2) };
  return exitCode === 2 ? misused(String(message), name) : { exitCode, complaint: message };
}

type CommandFailure = {
  exitCode: 1 | 2;
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

/** Whether it is an error of Node's `parseArgs`, or one like it. */
function isMisuse(error: unknown): error is Error {
  return String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS');
}

/** Names options instead of headers. */
const inOptions = (message: string, reason: Reason | undefined) =>
  reason === 'no_project_access'
    ? 'No project is selected, or you have no access to it. Choose one with --project ID: projects list-own lists yours, projects list all.'
    : message;

/** Operators see the original error, unlike callers. */
function faultOf(error: unknown): unknown {
  const { cause = error } = error as { cause?: unknown };
  const isWithoutTables = (cause as { code?: string }).code === '42P01';
  return isWithoutTables ? 'The tables do not exist yet: create them with npx deckhand migrate.' : cause;
}
