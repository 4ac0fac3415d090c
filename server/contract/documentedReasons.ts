import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const page = readFileSync(join(import.meta.dirname, '../../docs/errors.md'), 'utf8');

type DocumentedReason = { statuses: number[]; meaning: string; advice: string };

/** The reasons in the table of docs/errors.md. */
export const documentedReasons = new Map<string, DocumentedReason>(
  [...page.matchAll(/^\| `(\w+)` +\| ([\d, ]+) \| (.+?) +\| (.+?) +\|$/gm)].map(
    ([, name, statuses, meaning, advice]) => [
      name!,
      { statuses: statuses!.split(',').map(Number), meaning: meaning!, advice: advice! },
    ],
  ),
);
