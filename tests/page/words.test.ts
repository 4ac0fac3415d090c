import { describe, expect, it } from 'vitest';
import { counted } from '../../server/web/app/parts/counted.ts';

describe('counted', () => {
  it.each([
    [0, 'card', '0 cards'],
    [1, 'delivery', '1 delivery'],
    [2, 'delivery', '2 deliveries'],
    [1, 'API key', '1 API key'],
    [3, 'entry', '3 entries'],
    [2, 'day', '2 days'],
    [1000, 'group', '1,000 groups'],
  ])('%i %s', (count, noun, text) => {
    expect(counted(count, noun)).toBe(text);
  });
});
