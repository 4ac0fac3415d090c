import type { Command } from './commands.ts';
import { type Option, optionsOf } from './options.ts';

export function overallHelp(commands: ReadonlyMap<string, Command>): string {
  return `Usage: npm run deckhand -- COMMAND [OPTIONS]

${inColumns([...commands].map(([name, { does }]) => [name, does]))}

${inColumns([
  ['--help', 'After a command: show its options.'],
  ['--json', 'Print the result as JSON.'],
])}

The database is that of the settings: DATABASE_URL, or the embedded one in DATA_DIR.
Exit codes: 0 success, 1 refused or failed, 2 wrong usage.`;
}

export function commandHelp(name: string, { does, input }: Command): string {
  const options = optionsOf(input);
  const needed = options.filter(({ isRequired, kind }) => isRequired && kind !== 'secret').map(asWords);
  const usage = ['npm run deckhand --', name, ...needed, ...(options.length > needed.length ? ['[OPTIONS]'] : [])];
  const lines = options.map((option): [string, string] => [asWords(option), explain(option)]);
  return `${does}

Usage: ${usage.join(' ')}

${inColumns([...lines, ['--json', 'Print the result as JSON.']])}`;
}

function asWords({ flag, kind, choices }: Option): string {
  if (kind === 'secret') return `--${flag}`;
  if (kind === 'yes-no') return `--[no-]${flag}`;
  return `--${flag} ${choices?.join('|') ?? { number: 'N', list: 'A,B', text: 'TEXT' }[kind]}`;
}

function explain({ description, kind, isRequired }: Option): string {
  if (kind !== 'secret') return description;
  return `${description} ${isRequired ? 'Always prompted for' : 'Prompted for if given'}; hidden while typing.`;
}

function inColumns(lines: [string, string][]): string {
  const width = Math.max(...lines.map(([left]) => left.length)) + 2;
  return lines.map(([left, right]) => `  ${left.padEnd(width)}${right}`.trimEnd()).join('\n');
}
