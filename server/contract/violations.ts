import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { email } from '../../shared/fields.ts';
import { openApiDocument } from '../api/openapi/document.ts';
import type { Schema } from '../api/openapi/example.ts';

/** The document that callers get at `/openapi.json`. */
export const document = openApiDocument();

export const documentedHeaders = document.components.headers as Record<string, { schema: Schema; required?: false }>;

/** How a value violates a schema of the document. Stricter than JSON Schema: see `closed`. */
export function violations(schema: Schema, value: unknown): string[] {
  const validate = compile(schema);
  if (validate(value)) return [];
  return validate.errors!.map(
    ({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`,
  );
}

const compiled = new WeakMap<Schema, ValidateFunction>();
/** By the schema as JSON: nearly all operations have the same errors and headers, which are compiled once. */
const compiledTexts = new Map<string, ValidateFunction>();

function compile(schema: Schema): ValidateFunction {
  const known = compiled.get(schema);
  if (known) return known;
  const text = JSON.stringify(schema);
  const validate = compiledTexts.get(text) ?? ajv.compile(closed(schema) as Schema);
  compiledTexts.set(text, validate);
  compiled.set(schema, validate);
  return validate;
}

const JSON_TEXT = 'jsonText';

/** The same schema, without additional properties where they are not documented, and with the content of JSON text checked. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed);
  if (typeof node !== 'object' || node === null) return node;
  const { contentSchema, ...rest } = node as Schema;
  const parts = Object.fromEntries(Object.entries(rest).map(([key, part]) => [key, closed(part)]));
  return {
    ...parts,
    ...(rest.properties && rest.type === 'object' && !rest.additionalProperties && { additionalProperties: false }),
    ...(typeof rest.$ref === 'string' && { $ref: `document${rest.$ref}` }),
    ...(contentSchema !== undefined && { [JSON_TEXT]: closed(contentSchema) }),
  };
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
(addFormats as unknown as typeof addFormats.default)(ajv);
ajv.addFormat('email', (address) => email.safeParse(address).success);
ajv.addKeyword({
  keyword: JSON_TEXT,
  compile: (schema: Schema) => {
    const validate = ajv.compile(schema);
    return function isJsonText(text: string) {
      const isRight = validate(JSON.parse(text));
      Object.assign(isJsonText, { errors: validate.errors });
      return isRight;
    };
  },
});
ajv.addSchema({ $id: 'document', components: closed(document.components) });
