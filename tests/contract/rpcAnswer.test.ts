import superjson from 'superjson';
import { describe, expect, it } from 'vitest';
import { rpcViolations } from '../../server/contract/rpcAnswer.ts';

const errorWith = (data: object) => ({
  error: superjson.serialize({ message: 'Too many.', code: -32029, data: { code: 'TOO_MANY_REQUESTS', ...data } }),
});
const LIMITED = errorWith({ httpStatus: 429, reason: 'over_rate_limit', retryAfterSeconds: 7 });
const violationsOf = (answer: unknown) =>
  rpcViolations('boards.list,tags.list', JSON.stringify(answer), { status: 429 });

describe('the answer to a batch', () => {
  it('may be one error for all calls', () => {
    expect(violationsOf(LIMITED)).toEqual([]);
    expect(violationsOf(errorWith({ httpStatus: 400, reason: 'over_rate_limit' }))).toContain('httpStatus is 400.');
  });

  it('has an outcome for each call if it is a list', () => {
    expect(violationsOf([LIMITED])).toEqual(['tags.list: there is neither a result nor an error.']);
  });
});
