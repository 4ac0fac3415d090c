import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../server/http/openapi.ts';
import { restProcedures } from '../../server/http/procedures.ts';

const document = openApiDocument('http://deckhand.test');
const operations = Object.entries(document.paths).map(([path, { post }]) => ({ path, ...post }));

/** Checks values against schemas of the document. */
function validatorOf() {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as typeof addFormats.default)(ajv);
  ajv.addSchema({ $id: 'document', ...document });
  return (reference: string, value: unknown) => {
    const validate = ajv.compile({ $ref: `document${reference}` });
    return validate(value) ? [] : validate.errors;
  };
}

describe('the OpenAPI document', () => {
  it('is of version 3.1, and describes each REST operation once, as a POST', () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(Object.keys(document.paths).sort()).toEqual(restProcedures.map(({ rest }) => rest.path).sort());
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  it('lists just the statuses of each operation, each with the rate-limit headers', () => {
    for (const { rest } of restProcedures) {
      const { responses } = document.paths[rest.path]!.post;
      expect(Object.keys(responses).map(Number).sort()).toEqual([rest.status, ...rest.errors].sort());
      for (const [status, { headers }] of Object.entries(responses)) {
        const names = [
          'X-RateLimit-Limit',
          'X-RateLimit-Remaining',
          'X-Request-Id',
          ...(status === '429' ? ['Retry-After'] : []),
        ];
        expect(Object.keys(headers ?? {})).toEqual(names);
      }
    }
  });

  it('says 201 where a thing is created, and shows the body of each error', () => {
    const { responses } = document.paths['/services/operations/v1/operations/cards/create']!.post;
    const schemaOf = (status: string) => responses[status]!.content!['application/json'].schema.$ref;

    expect(Object.keys(responses)).toEqual(['201', '400', '401', '403', '422', '429', '500']);
    expect(schemaOf('400')).toBe('#/components/schemas/Error');
    expect(schemaOf('401')).toBe('#/components/schemas/ErrorWithoutData');
    expect(schemaOf('422')).toBe('#/components/schemas/ValidationError');
  });

  it('protects every operation but signing in', () => {
    for (const { path, ...operation } of operations)
      expect('security' in operation && operation.security !== undefined, path).toBe(path !== '/v1/authenticate');
  });

  it('has examples that fit their schemas, for every request and answer', () => {
    const errorsOf = validatorOf();
    const contents = operations.flatMap(({ requestBody, responses }) => [requestBody, ...Object.values(responses)]);

    for (const body of contents) {
      if (!body?.content) continue;
      const { schema, example } = body.content['application/json'];
      expect(example).toBeDefined();
      expect(errorsOf(schema.$ref!, example), schema.$ref).toEqual([]);
    }
  });

  it('describes each field of each schema', () => {
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      for (const [field, property] of Object.entries(schema.properties ?? {})) {
        const isDescribed = property.description !== undefined || property.$ref !== undefined || field === 'data';
        expect(isDescribed, `${name}.${field}`).toBe(true);
      }
    }
  });

  it('keeps nothing of the words of the tools that made it', () => {
    expect(JSON.stringify(document)).not.toMatch(/x-sent-as-text|error\.(BAD|INTERNAL)/);
  });
});
