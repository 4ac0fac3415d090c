import { z } from 'zod';

/**
 * The messages of Zod's built-in checks, as the end of a sentence whose subject is the field: "title is required".
 * Custom checks have their own messages.
 */
z.config({ customError: (issue) => wording(issue) });

type Issue = z.core.$ZodRawIssue;

function wording(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return issue.input === undefined ? 'is required' : `must be one of ${issue.values.join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string') return 'is required';
      return issue.origin === 'array'
        ? `must have at least ${issue.minimum} elements`
        : `must be at least ${issue.minimum}`;
    case 'too_big':
      if (issue.origin === 'string') return `must be at most ${issue.maximum} characters`;
      return issue.origin === 'array'
        ? `must have at most ${issue.maximum} elements`
        : `must be at most ${issue.maximum}`;
    case 'invalid_format':
      return issue.format === 'email' ? 'must be an e-mail address' : `must be a valid ${issue.format}`;
    default:
      return 'is not valid';
  }
}

const KINDS: Record<string, string> = {
  string: 'text',
  number: 'a whole number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
};
