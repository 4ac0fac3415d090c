import { describe, expect, it } from 'vitest';
import { operationsOf } from '../../server/api/openapi/document.ts';
import { document } from '../../server/contract/violations.ts';
import { areasOf } from '../../server/web/pages/api/apiDocument.js';
import { findOperations, searchIndex } from '../../server/web/pages/api/searchIndex.js';

const index = searchIndex(document);
const find = (...words: string[]) =>
  findOperations(index, words).map(({ operation, why }) => `${operation.operationId}${why && `: ${why}`}`);

describe('the list of the API page', () => {
  it('has every operation once, by area and noun, the specified ones among the others', () => {
    const nouns = areasOf(document).flatMap((area) => area.nouns.map((noun) => ({ area: area.name, ...noun })));
    const listed = nouns.flatMap(({ operations }) => operations.map(({ path }) => path));
    const cards = nouns.find(({ name }) => name === 'Cards');

    expect(listed.toSorted()).toEqual(
      operationsOf(document)
        .map(({ path }) => path)
        .toSorted(),
    );
    expect(areasOf(document).map(({ name }) => name)).toEqual(document.tags.slice(0, 5).map(({ name }) => name));
    expect(cards?.area).toBe('Operations');
    expect(cards?.operations.map(({ operationId }) => operationId)).toEqual(
      expect.arrayContaining(['cardsCreate', 'cardsMove']),
    );
    expect(nouns.length).toBe(new Set(nouns.map(({ name }) => name)).size);
  });
});

describe('its search', () => {
  it('finds operations by what they say about themselves first', () => {
    expect(find('snooze', 'card')[0]).toBe('cardsSnooze');
    expect(find('cards/move')).toEqual(['cardsMove']);
  });

  it('finds them by fields, headers and reasons, and says by which', () => {
    expect(find('due_date')).toEqual(
      expect.arrayContaining(['cardsCreate: field due_date', 'boardsGet: answer field due_date']),
    );
    expect(find('retry-after')).toHaveLength(operationsOf(document).length);
    expect(find('retry-after')[0]).toMatch(/: header Retry-After$/);
    expect(find('code_required')).toContain('authAuthenticate: reason code_required');
    expect(find('over_rate_limit')).toHaveLength(operationsOf(document).length);
    expect(find('create', 'tag', 'idempotency-key')).toContain('tagsCreate: header Idempotency-Key');
    expect(find('due_date', 'nowhere')).toEqual([]);
  });

  it.each([
    ['archive', 'boardsDelete'],
    ['assign', 'cardsUpdate: field owner_id'],
    ['bulk', 'cardsCreateMany'],
    ['422', 'cardsCreate: status 422'],
    ['snoze', 'cardsSnooze'],
    ['webhok', 'webhooksCreate'],
    ['coment', 'commentsCreate'],
    ['craete', 'boardsCreate'],
  ])('finds “%s”', (word, operation) => {
    expect(find(word)).toContain(operation);
  });

  it('finds by a misspelling what the word finds; a word of three letters is none', () => {
    expect(find('snoozee')).toEqual(find('snooze'));
    expect(find('xyz')).toEqual([]);
  });
});
