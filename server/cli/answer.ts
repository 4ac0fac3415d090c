import type { Reason } from '../../shared/reasons.ts';
import { readSettings } from '../env.ts';
import { toFailure } from '../errors.ts';
import { isStartFailure } from '../startFailure.ts';
import { COMMANDS, type Command } from './commands.ts';
import { commandHelp, overallHelp } from './help.ts';
import { parseOptions } from './options.ts';
import { asTable } from './table.ts';

/** The output and exit code of a command: 0 for success, 1 if refused or failed, 2 for wrong usage. */
type CommandAnswer = { exitCode: 0 | 1 | 2; printed?: string; complaint?: unknown };

type ReadEnvironment = () => NodeJS.ProcessEnv;

export async function answerTo(words: string[], environment: ReadEnvironment): Promise<CommandAnswer> {
  const [first = 'help', second] = words;
  if (first === 'help' || first === '--help') return done(overallHelp(COMMANDS));
  const ofNoun = new Map([...COMMANDS].filter(([name]) => name.startsWith(`${first} `)));
  if (ofNoun.size > 0 && (second === undefined || second === '--help')) return done(overallHelp(ofNoun));

  const name = [`${first} ${second}`, first].find((name) => COMMANDS.has(name));
  const command = name === undefined ? undefined : COMMANDS.get(name);
  if (!name || !command) return misused(`There is no command ${first}${second?.match(/^\w/) ? ` ${second}` : ''}.`);
  if (words.includes('--help')) return done(commandHelp(name, command));

  const isJson = words.includes('--json');
  try {
    const options = words.slice(name.split(' ').length).filter((word) => word !== '--json');
    const input = await parseOptions(command.input, options);
    const result = await run(command, input, environment);
    return done(isJson ? JSON.stringify(result ?? {}, null, 2) : (command.tell ?? asTable)(result));
  } catch (error) {
    return failed(error, name, isJson);
  }
}

async function run(command: Command, input: unknown, environment: ReadEnvironment): Promise<unknown> {
  // A placeholder: commands sign no tokens, so they need no secret.
  const settings = readSettings({ ...environment(), JWT_SECRET: 'x'.repeat(32) });
  const { connect } = await import('../database/connect.ts');
  const database = await connect(settings);
  try {
    return await command.run(database, settings, input);
  } finally {
    await database.close();
  }
}

const done = (printed: string): CommandAnswer => ({ exitCode: 0, printed });

const misused = (message: string, name?: string): CommandAnswer => ({
  exitCode: 2,
  complaint: `${message}\nSee npm run deckhand -- ${name ? `${name} ` : ''}--help`,
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
  status?: number;
  reason?: Reason;
  errors?: object | undefined;
};

function failureOf(error: unknown): CommandFailure {
  if (isStartFailure(error)) return { exitCode: 1, message: error.message };
  if (isUnknownOption(error)) return { exitCode: 2, message: error.message };

  const { status, reason, message, errors } = toFailure(error);
  if (errors) return { exitCode: 2, status, reason, message: Object.values(errors).flat().join('\n'), errors };
  return { exitCode: 1, status, reason, message: status === 500 ? faultOf(error) : message };
}

/** Whether it is an error of Node's `parseArgs`. */
function isUnknownOption(error: unknown): error is Error {
  return String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS');
}

/** Operators see the original error, unlike callers. */
function faultOf(error: unknown): unknown {
  const { cause = error } = error as { cause?: unknown };
  const isWithoutTables = (cause as { code?: string }).code === '42P01';
  return isWithoutTables ? 'The tables do not exist yet: create them with npm run deckhand -- migrate.' : cause;
}
