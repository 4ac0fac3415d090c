import { describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import type { OpenApiDocument } from '../../server/api/openapi/document.ts';
import { namedIn, readBaseline, readChangelog, unnamedBreaks } from '../harness/baseline.ts';
import { breakingChanges } from '../harness/breaking.ts';
import { document } from '../harness/document.ts';

const baseline = readBaseline();

/** The document with another schema of this name. */
function withSchema(name: string, change: (schema: Schema) => Schema): OpenApiDocument {
  const { schemas } = document.components;
  return {
    ...document,
    components: { ...document.components, schemas: { ...schemas, [name]: change(schemas[name]!) } },
  };
}
type Schema = OpenApiDocument['components']['schemas'][string];

describe('the document', () => {
  it('has no breaking change since the last release that the changelog does not list', () => {
    expect(unnamedBreaks(document), 'List these in docs/changelog.md under "Unreleased", or undo them.').toEqual([]);
  });

  it('is compared in every operation', () => {
    const paths = Object.keys(document.paths);
    const renamed = paths.map((path) => [path, { post: { ...document.paths[path]!.post, operationId: 'renamed' } }]);
    const planted = { ...document, paths: Object.fromEntries(renamed) };

    expect(
      paths.filter((path) => !(path in baseline.paths)),
      'Save them with npm run document:release.',
    ).toEqual([]);
    expect(unnamedBreaks(planted)).toHaveLength(paths.length);
    expect(unnamedBreaks({ ...document, paths: {} })).toHaveLength(paths.length);
  });

  it('is reported when an operation beyond the specification needs a new field or loses one', () => {
    const path = '/services/operations/v1/operations/cards/move';
    const needy = withSchema('CardsMoveRequest', ({ properties, required, ...schema }) => ({
      ...schema,
      properties: { ...properties, reason: { type: 'string' } },
      required: [...required!, 'reason'],
    }));
    const poorer = withSchema('Comment', ({ properties, ...schema }) => {
      const { is_read, ...others } = properties!;
      return { ...schema, properties: others };
    });

    expect(document.paths[path]!.post['x-beyond-specification']).toBe(true);
    expect(unnamedBreaks(needy)).toEqual([`${path} request.reason is required now`]);
    expect(unnamedBreaks(poorer)).toContain(
      '/services/operations/v1/operations/comments/mark-read 200.data.comment.is_read is gone',
    );
  });

  it('was saved to docs/openapi.json when this version was released', () => {
    expect(baseline.info.version).toBe(packageJson.version);
    expect(readChangelog()).toContain(`\n## ${packageJson.version}\n`);
  });

  it('is reported when it loses a path or a field', () => {
    const path = '/services/operations/v1/operations/cards/create';
    const { [path]: lost, ...paths } = document.paths;
    const untitled = withSchema('CreatedCard', ({ properties, required, ...schema }) => {
      const { title, ...others } = properties!;
      return { ...schema, properties: others, required: required!.filter((field) => field !== 'title') };
    });

    expect(lost).toBeDefined();
    expect(breakingChanges(document, { ...document, paths })).toEqual([`${path} is gone`]);
    expect(breakingChanges(document, untitled)).toEqual([`${path} 201.data.card.title is gone`]);
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
