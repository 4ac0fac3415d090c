import { KEPT_BY_NULL } from '../../shared/changes.ts';
import { type Command, type Commands, nounOf, verbOf } from './command.ts';
import { isAlone, type Option } from './options.ts';
import { wrapped } from './width.ts';

/** The built-in commands, and the nouns with their verbs. */
export function overallHelp(commands: Commands, width: number): string {
  const alone = [...commands].filter(([name]) => !name.includes(' '));
  const nouns = [...Map.groupBy(commands.keys(), nounOf)].filter(([noun]) => !commands.has(noun));
  const lines: Line[] = [
    ...alone.map(([name, { does }]): Line => [name, does]),
    ['', ''],
    ...nouns.map(([noun, names]): Line => [noun, names.map(verbOf).join(', ')]),
  ];
  return `Usage: npx deckhand COMMAND [OPTIONS]

${inColumns(lines, width)}

${wrapped(EXAMPLES, width)}

${wrapped(PLACES, width)}

npx deckhand --version prints the version. Exit codes: 0 success, 1 error, 2 wrong usage.`;
}

export function nounHelp(commands: Commands, width: number): string {
  const lines = [...commands].map(([name, { does }]): Line => [name, does]);
  return `Usage: npx deckhand COMMAND [OPTIONS]

${inColumns(lines, width)}

npx deckhand COMMAND --help shows the options of a command.`;
}

const EXAMPLES = `For example, boards list: npx deckhand boards --help describes the commands of boards, \
npx deckhand boards list --help the options of one, with an example. An empty value clears a field: --description ''.`;

const PLACES = `Commands act on the database of the settings (DATABASE_URL, or the embedded one in DATA_DIR) as its operator, with \
--as EMAIL as that user; with --url URL, or DECKHAND_URL, on a service, as the user who signed in with login, or with the API \
key in DECKHAND_KEY.`;

export function commandHelp(name: string, command: Command, width: number): string {
  const { does, explains, operands, options, exampleLine } = command;
  const needed = options
    .filter(({ isRequired, kind }) => isRequired && kind !== 'secret')
    .map((option) =>
      operands.includes(option.flag) ? option.flag.toUpperCase() : asWords({ ...option, short: undefined }),
    );
  const optional = options
    .filter(({ flag, isRequired }) => operands.includes(flag) && !isRequired)
    .map(({ flag }) => `[${flag.toUpperCase()}]`);
  const lines = options.map((option): Line => [asWords(option), explain(option)]);
  const about = explains === undefined ? does : `${does}\n\n${wrapped(explains, width)}`;
  return `${about}\n\nUsage: ${['npx deckhand', name, ...needed, ...optional, '[OPTIONS]'].join(' ')}

${inColumns(lines, width)}${exampleLine}`;
}

function asWords({ flag, short, kind, choices, value = choices?.join('|') }: Option): string {
  if (kind === 'yes-no') return `--[no-]${flag}`;
  const name = short === undefined ? `--${flag}` : `-${short}, --${flag}`;
  return isAlone(kind) ? name : `${name} ${value ?? VALUES[kind] ?? 'TEXT'}`;
}
const VALUES: Partial<Record<Option['kind'], string>> = {
  number: 'N',
  list: 'A,B',
  positions: 'ID:POSITION,…',
  rows: 'FILE',
  object: 'FILE',
};

function explain({ description, kind, isRequired, exceptWith }: Option): string {
  if (kind === 'rows' || kind === 'object') {
    const json = kind === 'rows' ? 'list' : 'object';
    return `${inWordsOfOptions(description)} A JSON ${json}; - reads it from standard input.`;
  }
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

type Line = [left: string, right: string];

/** Long texts on the right continue on the next line; without room for them, they are below. */
function inColumns(lines: Line[], widest: number): string {
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
