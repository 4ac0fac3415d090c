import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { startFailure } from '../runtime/startFailure.ts';
import { visible } from './visible.ts';

/** The person at the command line. Questions and progress go to standard error: standard output has only the result. */
export type Terminal = {
  /** Whether a person can reply to questions; otherwise each reply is the next line of standard input. */
  canReply: boolean;
  /** Whether somebody sees progress while a command runs. */
  canSee: boolean;
  /** How many columns the result may take; infinite if it is not for a terminal. */
  width: number;
  ask: (question: string, isHidden?: boolean) => Promise<string>;
  write: (text: string) => void;
  /** Shows progress in the place of the last one, if somebody sees it; an empty text removes it. */
  update: (line: string) => void;
  /** Prints a line of a result that has no end. Rejects with `EPIPE` when nobody reads it any more, as behind `| head`. */
  print: (line: string) => Promise<void>;
  /** Calls `stop` at Ctrl-C, which then does not end the process; the returned function undoes that. */
  onInterrupt: (stop: () => void) => () => void;
};

export const processTerminal: Terminal = {
  canReply: process.stdin.isTTY === true,
  canSee: process.stderr.isTTY === true,
  width: (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY,
  ask: (question, isHidden = false) => (process.stdin.isTTY ? ask(visible(question), isHidden) : nextLine()),
  write: (text) => void process.stderr.write(visible(text)),
  update: (line) => void (process.stderr.isTTY && process.stderr.write(`\r${visible(line)}${ERASE_REST}`)),
  print: (line) =>
    new Promise((resolve, reject) => {
      // Otherwise the event would end the process.
      if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
      process.stdout.write(`${visible(line)}\n`, (error) => (error ? reject(error) : resolve()));
    }),
  onInterrupt: (stop) => {
    for (const signal of SIGNALS) process.once(signal, stop);
    return () => SIGNALS.forEach((signal) => void process.off(signal, stop));
  },
};

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Erases what an earlier, longer line left. */
const ERASE_REST = '\x1b[K';

/** Whether a person is asked before a change; programs, and people who give --yes, are not. */
export const isAsked = ({ terminal, chosen }: { terminal: Terminal; chosen: { yes?: boolean } }) =>
  terminal.canReply && terminal.canSee && !chosen.yes;

/** Throws unless the reply is yes. */
export async function confirm(terminal: Terminal, question: string, refusal: string): Promise<void> {
  const reply = await terminal.ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(reply.trim())) throw startFailure(refusal);
}

export function progressBar(done: number, total: number): string {
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  return `[${'#'.repeat(filled).padEnd(BAR_WIDTH, '-')}]`;
}
const BAR_WIDTH = 30;

/** Secrets are not options, since other users can see command lines. A new one is asked for twice. */
export async function askSecret(terminal: Terminal, name: string, isNew: boolean): Promise<string> {
  for (;;) {
    const first = await terminal.ask(`${name}: `, true);
    if (!isNew || !terminal.canReply) return first;
    if (first === (await terminal.ask(`${name}, again: `, true))) return first;
    terminal.write('They differ. Try again:\n');
  }
}

let lines: Promise<string[]> | undefined;

async function nextLine(): Promise<string> {
  lines ??= text(process.stdin).then((all) => all.split(/\r?\n/));
  return (await lines).shift() ?? '';
}

async function ask(question: string, isHidden: boolean): Promise<string> {
  const reader = createInterface({
    input: process.stdin,
    output: isHidden ? NOWHERE : process.stderr,
    terminal: true,
  });
  reader.on('SIGINT', () => {
    console.error();
    process.exit(130);
  });
  if (isHidden) process.stderr.write(question);
  try {
    return await reader.question(isHidden ? '' : question);
  } finally {
    reader.close();
    if (isHidden) console.error();
  }
}

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() });
