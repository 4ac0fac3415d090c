import { beforeAll, describe, expect, it } from 'vitest';
import { makeCalls, pretty, type Recording, readRecording } from '../recording/answers.ts';
import { calls } from '../recording/calls.ts';

const recorded = readRecording();
let answers: Recording;

beforeAll(async () => {
  answers = await makeCalls();
});

describe('the recording', () => {
  it('has one answer for each call, in the same order', () => {
    expect(Object.keys(recorded)).toEqual(calls.map(({ name }) => name));
  });

  // As text, since the order of fields counts, too.
  it.each(Object.keys(recorded))('%s', (name) => {
    expect(pretty(answers[name])).toBe(pretty(recorded[name]));
  });
});
