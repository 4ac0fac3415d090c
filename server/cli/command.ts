import type { z } from 'zod';
import type { Procedure } from '../api/procedures.ts';
import type { Chosen, Common, Option } from './options.ts';
import type { Terminal } from './terminal.ts';

/** What a command does and takes, as data. */
export type Command = {
  does: string;
  /** Shown in its help: effects, and who may run it. */
  explains?: string | undefined;
  options: Option[];
  hasInput: boolean;
  /** The options whose values can be given without their names, in this order. */
  operands: readonly string[];
  /** At the end of its help. */
  exampleLine: string;
  /** What it calls; undefined for built-in commands. */
  procedure?: Pick<Procedure, 'name' | 'type'> | undefined;
};

/** What a command is made from. */
export type Definition = Pick<Command, 'does' | 'explains' | 'procedure'> & {
  input?: z.ZodType | undefined;
  operands?: readonly string[];
  example?: () => Example | undefined;
  /** The options that it has besides those of its input. */
  common?: readonly Common[];
};
export type BuiltIn = Definition & { run: (given: Given) => Promise<Outcome> };

/** The fields of a request that works on the demo data, and who may send it. */
export type Example = { fields: object; email: string };

export type Given = Where & { input: unknown };

/** What decides where a command runs and as whom, and who can be asked. */
export type Where = { chosen: Chosen; environment: ReadEnvironment; terminal: Terminal };

export type ReadEnvironment = () => NodeJS.ProcessEnv;

/**
 * `message` is printed instead of the result, except with `--json`; nothing is with `isPrinted`, when the command has done so. The
 * exit code is 0, or 1 with `hasFailed`, unless given.
 */
export type Outcome = {
  result: unknown;
  message?: string;
  isPrinted?: boolean;
  hasFailed?: boolean;
  exitCode?: number;
};

/** Calls a procedure by its name. */
export type Call = (procedure: string, input: unknown) => Promise<unknown>;

/** The commands by their names, such as `boards list` and `login`. */
export type Commands = ReadonlyMap<string, Command>;

export const nounOf = (command: string) => command.split(' ', 1)[0]!;
export const verbOf = (command: string) => command.split(' ')[1] ?? '';
