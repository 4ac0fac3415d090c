import { KEPT_BY_NULL } from '../../shared/changes.ts';
import type { Command } from './command.ts';
import { exampleLine } from './example.ts';
import { COMMON, type Option, optionsOf } from './options.ts';
import { wrapped } from './width.ts';

type Commands = ReadonlyMap<string, Command>;

/** The built-in commands, and the nouns with their verbs. */
export function overallHelp(commands: Commands, width: number): string {
  const names = [...commands.keys()];
  const alone = [...commands].filter(([name]) => !name.includes(' '));
  const nouns = Map.groupBy(
    names.filter((name) => name.includes(' ')),
    (name) => name.replace(/ .*/, ''),
  );
  const verbs = [...nouns].map(([noun, names]): [string, string] => [
    noun,
    names.map((name) => name.split(' ')[1]).join(', '),
  ]);
  return `Usage: npx deckhand COMMAND [OPTIONS]

${inColumns([...alone.map(([name, { does }]): [string, string] => [name, does]), ['', ''], ...verbs], width)}

${wrapped(EXAMPLES, width)}

${wrapped(PLACES, width)}

npx deckhand --version prints the version. Exit codes: 0 success, 1 error, 2 wrong usage.`;
}

export function nounHelp(commands: Commands, width: number): string {
  return `Usage: npx deckhand COMMAND [OPTIONS]

${inColumns(
  [...commands].map(([name, { does }]) => [name, does]),
  width,
)}

npx deckhand COMMAND --help shows the options of a command.`;
}

const EXAMPLES = `For example, boards list: npx deckhand boards --help describes the commands of boards, \
npx deckhand boards list --help the options of one, with an example. An empty value clears a field: --description ''.`;

const PLACES = `Commands act on the database of the settings (DATABASE_URL, or the embedded one in DATA_DIR) as its operator, with \
--as EMAIL as that user; with --url URL, or DECKHAND_URL, on a service, as the user who signed in with login, or with the API \
key in DECKHAND_KEY.`;

export function commandHelp(name: string, command: Command, width: number): string {
  const { does, explains, input, common, operands = [] } = command;
  const options = optionsOf(input);
  const needed = options
    .filter(({ isRequired, kind }) => isRequired && kind !== 'secret')
    .map((option) => (operands.includes(option.flag) ? option.flag.toUpperCase() : asWords(option)));
  const lines = options.map((option): [string, string] => [asWords(option), explain(option)]);
  const others = [...common, 'json' as const].map((name): [string, string] => [
    COMMON[name].words,
    COMMON[name].explains,
  ]);
  const about = explains === undefined ? does : `${does}\n\n${wrapped(explains, width)}`;
  return `${about}\n\nUsage: ${['npx deckhand', name, ...needed, '[OPTIONS]'].join(' ')}

${inColumns([...lines, ...others], width)}${exampleLine(name, command)}`;
}

function asWords({ flag, kind, choices }: Option): string {
  if (kind === 'secret') return `--${flag}`;
  if (kind === 'yes-no') return `--[no-]${flag}`;
  return `--${flag} ${choices?.join('|') ?? { number: 'N', list: 'A,B', positions: 'ID:POSITION,…', rows: 'FILE', text: 'TEXT' }[kind]}`;
}

function explain({ description, kind, isRequired, exceptWith }: Option): string {
  if (kind === 'rows') return `${inWordsOfOptions(description)} A JSON list; - reads it from standard input.`;
  if (kind !== 'secret') return inWordsOfOptions(description);
  const [[flag, value] = []] = Object.entries(exceptWith ?? {});
  const always = flag ? `Prompted for, except with --${flag} ${value}` : 'Always prompted for';
  return `${inWordsOfOptions(description)} ${isRequired ? always : 'Prompted for if given'}; hidden while typing.`;
}

/** Options are given, not sent, and an empty value is null. */
function inWordsOfOptions(description: string): string {
  return description
    .replace(KEPT_BY_NULL, 'Not changed if not given.')
    .replaceAll('if not sent', 'if not given')
    .replaceAll(/\bnull\b/g, "''");
}

export const WIDEST_LINE = 120;
const NARROWEST_TEXT = 30;

/** Long texts on the right continue on the next line; without room for them, they are below. */
function inColumns(lines: [string, string][], widest: number): string {
  const width = Math.max(...lines.map(([left]) => left.length)) + 2;
  const room = widest - width - 2;
  const isBelow = room < NARROWEST_TEXT;
  return lines
    .map(([left, right]) =>
      isBelow && right
        ? `  ${left}\n      ${wrapped(right, widest - 6, 6)}`
        : `  ${left.padEnd(width)}${wrapped(right, room, width + 2)}`.trimEnd(),
    )
    .join('\n');
}
