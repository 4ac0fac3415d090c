import type { ErrorBody, ErrorStatus } from '../restOperation.ts';
import type { Schema } from './example.ts';

/** What the document says of refusals and faults. */

export const MEANINGS: Record<ErrorStatus, string> = {
  400: 'The body cannot be read, or a rule forbids the step.',
  401: 'The token, or what was sent to sign in with, is missing or wrong.',
  403: 'The caller may not do this, or not here.',
  404: 'What the operation acts on does not exist, or no longer.',
  422: 'A field was refused.',
  429: 'Too many requests: wait for as long as `Retry-After` says.',
  500: 'A fault on our side.',
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
const MESSAGE = {
  type: 'string',
  description: 'What went wrong, for people.',
  example: 'What went wrong, in a sentence.',
};
const FIELD_ERRORS = {
  type: 'object',
  description: 'For each field that was refused, why; a field within another is named with dots: `groups.0.id`.',
  additionalProperties: { type: 'array', items: { type: 'string' } },
  example: { title: ['title is required.'] },
};

export const ERROR_SCHEMAS: Record<ErrorBody, { name: string; schema: Schema }> = {
  full: {
    name: 'Error',
    schema: objectOf('A refusal or a fault.', { error: ERROR, message: MESSAGE, data: EMPTY_LIST }),
  },
  bare: {
    name: 'ErrorWithoutData',
    schema: objectOf('A refusal or a fault.', { error: ERROR, message: MESSAGE }),
  },
  message: { name: 'ErrorMessage', schema: objectOf('A refusal.', { message: MESSAGE }) },
  fields: {
    name: 'ValidationError',
    schema: objectOf('Fields that were refused.', {
      message: {
        ...MESSAGE,
        description: 'The first reason, and how many more there are.',
        example: 'title is required.',
      },
      errors: FIELD_ERRORS,
    }),
  },
};
