import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { invalid } from '../../shared/errors.ts';
import type { Command } from './command.ts';
import { misuse, suggestion } from './misuse.ts';
import { type Chosen, isAlone, type Option } from './options.ts';
import { askSecret, type Terminal } from './terminal.ts';

/** Parses words into an input and the common options; asks for secrets. */
export async function parseOptions(
  { options, operands, hasInput }: Pick<Command, 'options' | 'operands' | 'hasInput'>,
  words: string[],
  terminal: Terminal,
) {
  const given = parse(options, operands, words);
  const chosen = chosenOf(given);

  const isNeeded = ({ isRequired, exceptWith }: Option) =>
    isRequired && !(exceptWith && Object.entries(exceptWith).every(([flag, value]) => given[flag] === value));
  const missing = options.find((option) => isNeeded(option) && option.kind !== 'secret' && !(option.flag in given));
  if (missing) {
    const { flag } = missing;
    throw invalid({ [operands.includes(flag) ? flag.toUpperCase() : `--${flag}`]: 'is missing' });
  }
  const fields: Record<string, unknown> = {};
  for (const option of options) {
    const { field, flag, kind, isNew = false } = option;
    const value = given[flag];
    if (field === undefined) continue;
    if (kind === 'secret') {
      if (isNeeded(option) || value === true) fields[field] = await askSecret(terminal, field, isNew);
    } else if (value !== undefined) fields[field] = typedValue(kind, flag, value);
  }
  return { input: hasInput ? fields : undefined, chosen };
}

type Value = string | boolean | (string | boolean)[];

function parse(options: Option[], operands: readonly string[], words: string[]): Record<string, Value | undefined> {
  const typeOf = ({ kind }: Option) => (isAlone(kind) ? 'boolean' : 'string');
  try {
    const { values, positionals } = parseArgs({
      args: words,
      allowNegative: true,
      allowPositionals: operands.length > 0,
      options: Object.fromEntries(
        options.map((option) => [
          option.flag,
          { type: typeOf(option), ...(option.short !== undefined && { short: option.short }) },
        ]),
      ),
    });
    const free = operands.filter((flag) => !(flag in values));
    const [surplus] = positionals.slice(free.length);
    if (surplus !== undefined) throw misuse(`Unexpected argument '${surplus}'.`);
    return { ...values, ...Object.fromEntries(positionals.map((value, at) => [free[at], value])) };
  } catch (error) {
    throw misuse(explained(error as Error & { code: string }, options, words));
  }
}

/** Rewrites an error of `parseArgs`, with a hint at what was meant. */
function explained({ code, message }: Error & { code: string }, options: Option[], words: string[]): string {
  const [, named = ''] = /'([^' ]*)/.exec(message) ?? [];
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const flags = [...options.map(({ flag }) => `--${flag}`), '--help'];
    if (flags.includes(named)) return `${named} takes no value.`;
    return `There is no option ${named}.${suggestion(named, flags)}`;
  }
  if (code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') {
    const [flag = named] = named.split(/[,=]/);
    if (message.includes('does not take')) return `${flag} takes no value.`;
    return `${flag} needs a value; one that begins with a dash is written as ${flag}=-1.`;
  }
  if (code !== 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return message;

  const before = words[words.indexOf(named) - 1];
  if (options.some(({ flag, kind }) => kind === 'secret' && before === `--${flag}`)) {
    return `Unexpected argument '${named}': ${before} is prompted for, or read from standard input.`;
  }
  const meant = options.find(
    ({ flag, kind, isRequired }) =>
      isRequired && !words.includes(`--${flag}`) && kind === (/^\d+$/.test(named) ? 'number' : 'text'),
  );
  return `Unexpected argument '${named}'.${meant ? ` Did you mean --${meant.flag} ${named}?` : ''}`;
}

function chosenOf({ project, columns, ...given }: Record<string, Value | undefined>): Chosen {
  if (project !== undefined && !/^[1-9]\d{0,8}$/.test(String(project))) {
    throw misuse('--project must be the id of a project.');
  }
  return {
    ...given,
    ...(project !== undefined && { project: Number(project) }),
    ...(columns !== undefined && { columns: String(columns).split(',') }),
  };
}

/** Text that is not a number stays text, so that the input's own check reports it; an empty number becomes null. */
function typedValue(kind: Option['kind'], flag: string, value: Value): unknown {
  const text = String(value);
  if (kind === 'number') return text === '' ? null : numberOr(text);
  if (kind === 'list') return text === '' ? [] : text.split(',');
  if (kind === 'positions') return text === '' ? [] : text.split(',').map((pair) => placement(flag, pair));
  if (kind === 'rows' || kind === 'object') return jsonIn(kind, flag, text);
  return value;
}

/** A list or an object as JSON, or the file that it is in; `-` is standard input. */
function jsonIn(kind: 'rows' | 'object', flag: string, text: string): unknown {
  const isItself = text.startsWith(kind === 'rows' ? '[' : '{');
  const name = kind === 'rows' ? 'list' : 'object';
  try {
    const value = JSON.parse(isItself ? text : readFileSync(text === '-' ? STANDARD_INPUT : text, 'utf8'));
    if (Array.isArray(value) === (kind === 'rows') && typeof value === 'object' && value !== null) return value;
  } catch {}
  throw invalid({ [`--${flag}`]: `must be a file with a JSON ${name}, - for standard input, or the ${name} itself` });
}
const STANDARD_INPUT = 0;

const numberOr = (text: string) => (/^-?\d+$/.test(text) ? Number(text) : text);

function placement(flag: string, pair: string) {
  const [id, position, ...others] = pair.trim().split(':');
  if (!id || !position || others.length > 0) {
    throw invalid({ [`--${flag}`]: 'must be ids with their positions, such as 7:2,8:1' });
  }
  return { id: numberOr(id), position: numberOr(position) };
}
