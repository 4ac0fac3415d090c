import { existsSync } from 'node:fs';

/** Folders of tests with another name than that of their sources. */
const TESTED_IN: Record<string, string> = {
  api: 'operation',
  web: 'page',
  runtime: 'boot',
  limits: 'call',
  payments: 'billing',
  package: 'contract',
  testing: 'sandbox',
};

/**
 * The folders of tests for `npx vitest related server/domain/board/card.ts`: `tests/board`, by the innermost folder with tests.
 * Nearly all suites call a whole service, which imports every file. Undefined for other commands, and for files of no folder.
 */
export function relatedFolders([command, ...words]: string[]): string[] | undefined {
  if (command !== 'related') return undefined;
  const folders = words.filter((word) => !word.startsWith('-')).map(folderOf);
  return folders.includes(undefined) ? undefined : [...new Set(folders as string[])];
}

const folderOf = (file: string) =>
  file
    .split('/')
    .slice(0, -1)
    .map((segment) => TESTED_IN[segment] ?? segment)
    .findLast((folder) => existsSync(`tests/${folder}`));
