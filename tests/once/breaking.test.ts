import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import type { OpenApiDocument } from '../../server/openapi/document.ts';
import { breakingChanges } from '../harness/breaking.ts';
import { document } from '../harness/document.ts';

const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8');
const released: OpenApiDocument = JSON.parse(read('docs/openapi.json'));
const changelog = read('docs/changelog.md');

/** The list items of the changelog's section "Unreleased". */
function namedIn(changelog: string): string[] {
  const unreleased = changelog.split(/^## /m).find((part) => part.startsWith('Unreleased')) ?? '';
  return [...unreleased.matchAll(/^- (.+)$/gm)].map(([, line]) => line!);
}

describe('the document', () => {
  it('has no breaking change since the last release that the changelog does not list', () => {
    const named = namedIn(changelog);

    const unnamed = breakingChanges(released, document).filter((line) => !named.includes(line));

    expect(unnamed, 'List these in docs/changelog.md under "Unreleased", or undo them.').toEqual([]);
  });

  it('was saved to docs/openapi.json when this version was released', () => {
    expect(released.info.version).toBe(packageJson.version);
    expect(changelog).toContain(`\n## ${packageJson.version}\n`);
  });

  it('is reported when it loses a path or a field', () => {
    const path = '/services/operations/v1/operations/cards/create';
    const { [path]: lost, ...paths } = document.paths;
    const { CreatedCard, ...schemas } = document.components.schemas;
    const { title, ...properties } = CreatedCard!.properties!;
    const required = CreatedCard!.required!.filter((field) => field !== 'title');
    const components = {
      ...document.components,
      schemas: { ...schemas, CreatedCard: { ...CreatedCard, properties, required } },
    };

    expect(lost && title).toBeDefined();
    expect(breakingChanges(document, { ...document, paths })).toEqual([`${path} is gone`]);
    expect(breakingChanges(document, { ...document, components })).toEqual([`${path} 201.data.card.title is gone`]);
  });
});

describe('the list of breaking changes', () => {
  it('is read from the section "Unreleased" only', () => {
    const released = '## 0.1.0\n\n- /b is gone\n';

    expect(namedIn(`# C\n\n## Unreleased\n\n- /a is gone\n\nAnd so on.\n\n${released}`)).toEqual(['/a is gone']);
    expect(namedIn(`# C\n\n## Unreleased\n\n${released}`)).toEqual([]);
    expect(namedIn(`# C\n\n${released}`)).toEqual([]);
  });
});
