import type { ErrorBody, ErrorStatus } from '../restOperation.ts';
import type { Schema } from './example.ts';

/** The descriptions of errors in the document. */

export const MEANINGS: Record<ErrorStatus, string> = {
  400: 'The body is invalid, or a rule forbids the step.',
  401: 'The token, the API key or the credentials are missing or wrong.',
  403: 'The role or the scope is not sufficient, or the row belongs to another project.',
  404: 'The row does not exist or was deleted.',
  412: 'The row does not have the version of `If-Match` any more: read it again, then repeat the change.',
  422: 'A field is invalid.',
  429: 'Too many requests: retry after the seconds in `Retry-After`.',
  500: 'An error in the service.',
};

export const objectOf = (description: string, properties: Record<string, Schema>): Schema => ({
  type: 'object',
  description,
  properties,
  required: Object.keys(properties),
});

export const EMPTY_LIST = {
  type: 'array',
  items: { type: 'string' },
  maxItems: 0,
  example: [],
  description: 'Always empty.',
};

const ERROR = { type: 'boolean', const: true, description: 'Whether it failed.' };
const MESSAGE = { type: 'string', description: 'What went wrong, for people.' };
const FIELD_ERRORS = {
  type: 'object',
  description: 'The reasons for each invalid field; nested field names have dots: `groups.0.id`.',
  additionalProperties: { type: 'array', items: { type: 'string' } },
  example: { title: ['title is required.'] },
};

export const ERROR_SCHEMAS: Record<ErrorBody, { name: string; schema: Schema }> = {
  full: {
    name: 'Refusal',
    schema: objectOf('An error.', { error: ERROR, message: MESSAGE, data: EMPTY_LIST }),
  },
  bare: {
    name: 'RefusalWithoutData',
    schema: objectOf('An error.', { error: ERROR, message: MESSAGE }),
  },
  message: { name: 'RefusalMessage', schema: objectOf('An error without data.', { message: MESSAGE }) },
  fields: {
    name: 'ValidationError',
    schema: objectOf('A validation error.', {
      message: { ...MESSAGE, description: 'The first reason, and the number of others.' },
      errors: FIELD_ERRORS,
    }),
  },
};
