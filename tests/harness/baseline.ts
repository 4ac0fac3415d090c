import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OpenApiDocument } from '../../server/api/openapi/document.ts';
import { breakingChanges } from '../../server/contract/documentChanges.ts';

const ROOT = join(import.meta.dirname, '../..');

/** The document that later ones are compared with; it has every operation. */
export const BASELINE = join(ROOT, 'docs/openapi.json');
export const readBaseline = (): OpenApiDocument => JSON.parse(readFileSync(BASELINE, 'utf8'));

export const readChangelog = () => readFileSync(join(ROOT, 'docs/changelog.md'), 'utf8');

/** The breaking changes since the baseline that the changelog does not list. */
export function unnamedBreaks(current: OpenApiDocument): string[] {
  const named = namedIn(readChangelog());
  return breakingChanges(readBaseline(), current).filter((line) => !named.some((one) => isNamedBy(one, line)));
}

/** In a line of the changelog, `…` stands for any text: a change of all operations is one line. */
export function isNamedBy(named: string, line: string): boolean {
  const parts = named.split('…').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`).test(line);
}

/** The list items of the changelog's section "Unreleased". */
export function namedIn(changelog: string): string[] {
  const unreleased = changelog.split(/^## /m).find((part) => part.startsWith('Unreleased')) ?? '';
  return [...unreleased.matchAll(/^- (.+)$/gm)].map(([, line]) => line!);
}
