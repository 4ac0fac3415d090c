import { enableCompileCache } from 'node:module';
import { environment, readSettings } from '../env.ts';
import { describe } from '../errors.ts';
import { isStartFailure } from '../startFailure.ts';
import { COMMANDS, type Command } from './commands.ts';
import { commandHelp, overallHelp } from './help.ts';
import { parseOptions } from './options.ts';
import { asTable } from './table.ts';

enableCompileCache();

/** Done, refused or failed, called in a wrong way. */
const EXIT = { done: 0, failed: 1, misused: 2 } as const;

process.exitCode = await main(process.argv.slice(2));

async function main(words: string[]): Promise<number> {
  const [first = 'help', second] = words;
  if (first === 'help' || first === '--help') return print(overallHelp(COMMANDS));

  const isHelp = words.includes('--help');
  const ofNoun = new Map([...COMMANDS].filter(([name]) => name.startsWith(`${first} `)));
  if (ofNoun.size > 0 && (second === undefined || second === '--help')) return print(overallHelp(ofNoun));

  const name = [`${first} ${second}`, first].find((name) => COMMANDS.has(name));
  const command = name === undefined ? undefined : COMMANDS.get(name);
  if (!name || !command) return complain(`There is no command ${first}${second?.match(/^\w/) ? ` ${second}` : ''}.`);
  if (isHelp) return print(commandHelp(name, command));

  const json = words.includes('--json');
  try {
    const options = words.slice(name.split(' ').length).filter((word) => word !== '--json');
    const input = await parseOptions(command.input, options);
    const result = await run(command, input);
    return print(json ? JSON.stringify(result ?? {}, null, 2) : (command.tell ?? asTable)(result));
  } catch (error) {
    return fail(error, name, json);
  }
}

async function run(command: Command, input: unknown): Promise<unknown> {
  // No token is signed here: whoever may use the database needs no secret for that.
  const settings = readSettings({ JWT_SECRET: 'x'.repeat(32), ...environment() });
  const { connect } = await import('../database/connect.ts');
  const database = await connect(settings);
  try {
    return await command.run(database, settings, input);
  } finally {
    await database.close();
  }
}

function print(text: string): number {
  console.log(text);
  return EXIT.done;
}

function complain(message: string, name?: string): number {
  const help = `npm run deckhand -- ${name ? `${name} ` : ''}--help`;
  console.error(`${message}\nSee ${help}`);
  return EXIT.misused;
}

function fail(error: unknown, name: string, json: boolean): number {
  if (isStartFailure(error)) return report(error.message);
  if (isUnknownOption(error)) return complain(error.message, name);

  const { status, message, errors } = describe(error);
  if (json) console.error(JSON.stringify({ error: { status, message, errors } }, null, 2));
  else if (errors) return complain(Object.values(errors).flat().join('\n'), name);
  else report(status === 500 ? faultOf(error) : message);
  return status === 422 ? EXIT.misused : EXIT.failed;
}

function report(message: unknown): number {
  console.error(message);
  return EXIT.failed;
}

/** Node's own complaint about options. */
function isUnknownOption(error: unknown): error is Error {
  return String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS');
}

/** Whoever runs the command runs the service: nothing is kept from them. */
function faultOf(error: unknown): unknown {
  const { cause = error } = error as { cause?: unknown };
  const isWithoutTables = (cause as { code?: string }).code === '42P01';
  return isWithoutTables ? 'The tables are not there yet: npm run deckhand -- migrate makes them.' : cause;
}
