import { expect } from 'vitest';
import { processTerminal, type Terminal } from '../../server/cli/terminal.ts';

export type FakeTerminal = Terminal & {
  /** What was written to it, and the questions. */
  shown: string[];
};

type Kind = { isPerson?: boolean; width?: number };

/** A person who gives these answers, one after the other; without `isPerson`, lines of standard input. */
export function givenTerminal(
  answers: string[] = [],
  { isPerson = true, width = Number.POSITIVE_INFINITY }: Kind = {},
): FakeTerminal {
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
    update: (line) => void (isPerson && shown.push(`progress: ${line}`)),
    print: async (line) => void shown.push(`${line}\n`),
    onInterrupt: processTerminal.onInterrupt,
    shown,
  };
}

/** What a failed command returns: its complaint contains this text, or matches this pattern. */
export const failure = (exitCode: 1 | 2, complaint: string | RegExp) => ({
  exitCode,
  complaint: typeof complaint === 'string' ? expect.stringContaining(complaint) : expect.stringMatching(complaint),
});
