import { createConfig, lintFromString } from '@redocly/openapi-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openApiDocument, operationsOf, responsesOf } from '../../server/api/openapi/document.ts';
import { findProcedure } from '../../server/api/procedures.ts';
import { document, violations } from '../../server/contract/violations.ts';
import { schemasIn } from '../harness/schemas.ts';

/** What the recommended rules of Redocly say, but for the licence: it is not a public one, and has no address or identifier. */
async function lintOf(checked: object, rules: Record<string, 'off'> = {}): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'], rules: { 'info-license-strict': 'off', ...rules } });
  const problems = await lintFromString({ source: JSON.stringify(checked), absoluteRef: '/openapi.json', config });
  return problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer} ${message}`);
}

describe('the OpenAPI document', () => {
  it('passes the recommended rules of Redocly without errors or warnings', async () => {
    expect(await lintOf(document)).toEqual([]);
  });

  it('passes them with a deprecated operation, too', async () => {
    const deprecated = findProcedure('tags.list')!;
    deprecated.deprecated = { since: '2026-11-16', sunset: '2027-06-01', use: 'tags.create' };
    onTestFinished(() => {
      deprecated.deprecated = undefined;
    });
    const { paths, ...others } = openApiDocument();
    const noticed = Object.entries(paths).filter(([, { post }]) => post?.deprecated);

    expect(noticed).toHaveLength(1);
    expect(await lintOf({ ...others, paths: Object.fromEntries(noticed) }, { 'no-unused-components': 'off' })).toEqual(
      [],
    );
  });

  it('has valid examples for every request and answer', () => {
    const contents = operationsOf(document).flatMap((operation) => [
      operation.requestBody,
      ...Object.values(responsesOf(document, operation)),
    ]);

    for (const body of contents) {
      if (!body?.content) continue;
      const { schema, example } = body.content['application/json'];
      expect(example).toBeDefined();
      expect(violations(schema, example), schema.$ref).toEqual([]);
    }
  });

  it('has valid examples of fields', () => {
    const withExamples = schemasIn(document.components.schemas, '').filter(
      ({ schema }) => schema.examples !== undefined,
    );

    expect(withExamples.length).toBeGreaterThan(100);
    for (const { place, schema } of withExamples)
      for (const example of schema.examples as unknown[]) expect(violations(schema, example), place).toEqual([]);
  });
});
