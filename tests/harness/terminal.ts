import type { Terminal } from '../../server/cli/terminal.ts';

export type FakeTerminal = Terminal & {
  /** What was written to it, and the questions. */
  shown: string[];
};

type Kind = { isPerson?: boolean; width?: number };

/** A person who gives these answers, one after the other; without `isPerson`, lines of standard input. */
export function givenTerminal(answers: string[] = [], { isPerson = true, width }: Kind = {}): FakeTerminal {
  const left = [...answers];
  const shown: string[] = [];
  return {
    canReply: isPerson,
    canSee: isPerson,
    width,
    ask: async (question) => {
      shown.push(question);
      return left.shift() ?? '';
    },
    write: (text) => void shown.push(text),
    update: (line) => void shown.push(`progress: ${line}`),
    shown,
  };
}
