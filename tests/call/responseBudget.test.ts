import { describe, expect, it } from 'vitest';
import { makeResponseBudget, makeUnsentResponses } from '../../server/limits/unsentResponses.ts';
import { asJsonText } from '../../server/runtime/jsonText.ts';

const MIB = 1024 * 1024;
const BATCH_TOO_LARGE = 'The answers of this batch are too large. Retry the remaining calls.';
const UNREAD = 'You have too many unread answers. Read them first.';

describe('the budget of a batch', () => {
  it.each([
    ['plain text', { texts: ['x'.repeat(8 * MIB)] }],
    ['text in three bytes', ['漢'.repeat(3 * MIB)]],
    ['escaped characters', { text: '"'.repeat(4 * MIB) }],
    ['control characters', { text: '\u0001'.repeat(2 * MIB) }],
    ['JSON of the database', { board: asJsonText('漢'.repeat(3 * MIB), { own: [] }) }],
    ['many fields', Array.from({ length: 500_000 }, () => null)],
  ])('429 after 8 MiB of %s', (_, answer) => {
    const budget = makeResponseBudget(undefined, 2);

    budget.mustNotBeSpent();
    budget.spend(answer);

    expect(() => budget.mustNotBeSpent()).toThrow(BATCH_TOO_LARGE);
  });

  it('is not that of a single call', () => {
    const budget = makeResponseBudget(undefined, 1);

    budget.spend('x'.repeat(9 * MIB));

    budget.mustNotBeSpent();
  });
});

describe('unsent answers', () => {
  it('429 above the limit of a caller, until one is released', () => {
    const answers = makeUnsentResponses(MIB);
    const [first, second] = [answers.open('user:1'), answers.open('user:1')];
    makeResponseBudget(first, 1).spend('x'.repeat(MIB / 2));
    second.setBytes(MIB);

    expect(() => answers.mustBeFew('user:1')).toThrow(UNREAD);
    expect(() => makeResponseBudget(answers.open('user:1'), 1).mustNotBeSpent()).toThrow(UNREAD);
    answers.mustBeFew('user:2');
    first.release();
    answers.mustBeFew('user:1');
  });

  it('count with their last size, and no more once released', () => {
    const answers = makeUnsentResponses(MIB);
    const answer = answers.open('user:1');

    answer.setBytes(5 * MIB);
    answer.setBytes(MIB);
    answers.mustBeFew('user:1');
    answer.release();
    answer.setBytes(5 * MIB);
    answers.mustBeFew('user:1');
  });

  it('below 64 KiB are not counted', () => {
    const answers = makeUnsentResponses(MIB);

    for (let at = 0; at < 100; at++) answers.open('user:1').setBytes(64 * 1024 - 1);

    answers.mustBeFew('user:1');
  });
});
