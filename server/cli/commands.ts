import type { Commands } from './command.ts';
import { DEFINITIONS, describeCommand } from './definitions.ts';

/** The bundle has these as data: help, and a command on a service, then need none of the procedures (`serviceBundle.ts`). */
export const COMMANDS: Commands = new Map(
  [...DEFINITIONS].map(([name, definition]) => [name, describeCommand(name, definition)]),
);
