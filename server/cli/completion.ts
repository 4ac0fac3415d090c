import { type Command, type Commands, nounOf, verbOf } from './command.ts';
import { isAlone } from './options.ts';

/** Scripts that complete commands, options and their values in a shell. They are static: Tab doesn't start Node. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** What to do with the scripts. */
export const INSTALL: Record<Shell, string> = {
  bash: 'Put into ~/.bashrc: source <(deckhand completion bash). docs/commands.md shows how to get the command deckhand.',
  zsh: 'Put into ~/.zshrc, after compinit: source <(deckhand completion zsh). docs/commands.md shows how to get the command deckhand.',
  fish: 'Write it to ~/.config/fish/completions/deckhand.fish. docs/commands.md shows how to get the command deckhand.',
};

export function scriptFor(shell: Shell, commands: Commands): string {
  const continuations = continuationsIn(commands);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](continuations);
}

/** What can follow the words `after`: names, and options with their values (undefined: none, empty: any). */
type Continuation = { after: string; names: string[]; options: { flag: string; values?: string[] | undefined }[] };

function continuationsIn(commands: Commands): Continuation[] {
  const nouns = Map.groupBy(commands.keys(), nounOf);
  return [
    { after: '', names: [...nouns.keys()], options: [{ flag: 'help' }, { flag: 'version' }] },
    ...[...nouns]
      .filter(([noun]) => !commands.has(noun))
      .map(([after, names]) => ({ after, names: names.map(verbOf), options: [{ flag: 'help' }] })),
    ...[...commands].flatMap(([name, command]) => {
      const options = flagsOf(command);
      const names = operandsOf(command);
      return ['', ...names].map((given) => ({
        after: `${name} ${given}`.trim(),
        names: given === '' ? names : [],
        options,
      }));
    }),
  ];
}

/** What the first value without a name can be. */
const operandsOf = ({ operands: [first], options }: Command) =>
  options.find(({ flag }) => flag === first)?.choices ?? [];

function flagsOf({ options }: Command): Continuation['options'] {
  const flags = options.flatMap(({ flag, kind, choices = [] }) => {
    if (kind === 'yes-no') return [{ flag }, { flag: `no-${flag}` }];
    return [isAlone(kind) ? { flag } : { flag, values: choices }];
  });
  return [...flags, { flag: 'help' }];
}

const bashScript = (continuations: Continuation[]) => `# Completion of deckhand in bash.
_deckhand() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" first= second= choices=
  (( COMP_CWORD > 1 )) && first="\${COMP_WORDS[1]}"
  (( COMP_CWORD > 2 )) && second="\${COMP_WORDS[2]}"
${choicesIn(continuations)}
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -F _deckhand deckhand`;

const zshScript = (continuations: Continuation[]) => `#compdef deckhand
# Completion of deckhand in zsh.
_deckhand() {
  local previous="\${words[CURRENT-1]}" first= second= choices=
  (( CURRENT > 2 )) && first="\${words[2]}"
  (( CURRENT > 3 )) && second="\${words[3]}"
${choicesIn(continuations)}
  compadd -- \${=choices}
}
if [[ "\${zsh_eval_context[-1]}" == loadautofunc ]]; then _deckhand; else compdef _deckhand deckhand; fi`;

/** In a form that bash and zsh understand: from `first`, `second` and `previous` to `choices`. */
function choicesIn(continuations: Continuation[]): string {
  const cases = continuations.map(({ after, names, options }) => {
    const flags = options.map(({ flag }) => `--${flag}`);
    const values = options.flatMap(({ flag, values }) =>
      values ? [`--${flag}) choices='${values.join(' ')}' ;;`] : [],
    );
    const ofOptions = values.length === 0 ? '' : `\n      case "$previous" in ${values.join(' ')} esac`;
    return `    '${after}')\n      choices='${[...names, ...flags].join(' ')}'${ofOptions} ;;`;
  });
  return `  [[ "$second" == -* ]] && second=
  case "$first\${second:+ $second}" in
${cases.join('\n')}
  esac`;
}

function fishScript(continuations: Continuation[]): string {
  const lines = continuations.flatMap(({ after, names, options }) => {
    const when = `complete -c deckhand -n '${names.length > 0 ? '__deckhand_at' : '__deckhand_in'} ${after}'`;
    const ofNames = names.length === 0 ? [] : [`${when} -a '${names.join(' ')}'`];
    const ofOptions = options.map(({ flag, values }) => {
      const takes = values === undefined ? '' : values.length > 0 ? ` -x -a '${values.join(' ')}'` : ' -x';
      return `${when} -l ${flag}${takes}`;
    });
    return [...ofNames, ...ofOptions];
  });
  return `# Completion of deckhand in fish.
function __deckhand_at
  set -l words (commandline -opc)
  test "$words[2..-1]" = "$argv"
end
function __deckhand_in
  set -l words (commandline -opc)
  set -l last (math (count $argv) + 1)
  test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end
complete -c deckhand -f
${lines.join('\n')}`;
}
