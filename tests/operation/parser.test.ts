import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { inputParser, outputParser, returnedSchema } from '../../server/api/parser.ts';
import { procedures } from '../../server/api/procedures.ts';
import { inputSchemaOf } from '../../server/contract/input.ts';
import { asJsonText } from '../../server/runtime/jsonText.ts';
import { manyRows } from '../../shared/rows.ts';
import { changed, validValue, wrongChange } from '../harness/arbitrary.ts';
import { seed } from '../harness/sample.ts';

/** The parsed value as text, since the order of fields counts, too, or the issues. */
const outcomeOf = (parsed: Promise<unknown>) =>
  parsed.then(
    (value) => JSON.stringify(value),
    (error) => (error.cause ?? error).issues,
  );

describe('the schemas of every procedure', () => {
  it('can be compiled, so none has an asynchronous check', () => {
    for (const { name, input, output } of procedures)
      for (const schema of [input ?? z.void(), returnedSchema(output)])
        expect(() => z.compile(schema, { strict: true }), name).not.toThrow();
  });

  it('accept, change and refuse the same values as Zod does', async () => {
    for (const procedure of procedures) {
      const { name, input } = procedure;
      if (!input) continue;
      const schema = inputSchemaOf(procedure);
      const valid = validValue(schema);
      const wrong = fc.tuple(valid, wrongChange(schema)).map(([value, change]) => changed(value, change));
      const parse = inputParser(input);
      const options = { seed, numRuns: 5 };

      for (const value of [undefined, null, [], ...fc.sample(valid, options), ...fc.sample(wrong, options)]) {
        // The rows of this mode are parsed one by one: tests/board/manyCards.test.ts.
        if (manyRows.has(input) && (value as { mode?: unknown } | null | undefined)?.mode === 'each') continue;
        const found = await outcomeOf((async () => parse(value, false))());
        expect(found, `${name} ${JSON.stringify(value)?.slice(0, 200)}`).toEqual(
          await outcomeOf(input.parseAsync(value)),
        );
      }
    }
  });
});

describe('a parser', () => {
  it('throws for an asynchronous check instead of skipping it', () => {
    const isFree = (name: string) => Promise.resolve(name === 'free');

    for (const check of [isFree, async (name: string) => isFree(name)])
      expect(() => inputParser(z.object({ name: z.string().refine(check) }))({ name: 'free' }, false)).toThrow();
  });

  it('leaves out fields that the schema does not have, and keeps dates as they are', () => {
    const created_at = new Date();

    const parsed = outputParser(z.object({ created_at: z.date() }))({ created_at, hidden: 1 }) as { created_at: Date };

    expect(parsed).toEqual({ created_at });
    expect(parsed.created_at).toBe(created_at);
  });
});

describe('a response with JSON from PostgreSQL', () => {
  const Board = z.object({ id: z.int(), cards: z.array(z.object({ id: z.int() })) });
  const Documented = z.object({ board: Board, boards: z.array(Board), count: z.int() });
  const boards = asJsonText('[]', { own: [] });
  const board = asJsonText('{"id":1,"cards":[]}', { own: [] });
  const parse = outputParser(Documented);

  it('passes it as it is, for an object and for a list', () => {
    const parsed = parse({ board, boards, count: 1 }) as Record<string, unknown>;

    expect(parsed.board).toBe(board);
    expect(parsed.boards).toBe(boards);
  });

  it.each([
    ['a scalar field is JSON', { board, boards, count: asJsonText('1', { own: [] }) }],
    ['the JSON is deeper', { board: { id: 1, cards: asJsonText('[]', { own: [] }) }, boards, count: 1 }],
    ['the JSON is an element', { board, boards: [board], count: 1 }],
    ['another field is wrong', { board, boards, count: '1' }],
    ['another field is missing', { board, boards }],
    ['the object itself is wrong', { board: { id: '1', cards: [] }, boards, count: 1 }],
    ['a list itself is wrong', { board, boards: [{ id: '1', cards: [] }], count: 1 }],
    ['an object is null', { board: null, boards, count: 1 }],
  ])('is refused if %s', (_, response) => {
    expect(() => parse(response)).toThrow('Output validation failed');
  });

  it('is documented without it', () => {
    expect(Documented.safeParse({ board, boards, count: 1 }).success).toBe(false);
    expect(procedures.find(({ name }) => name === 'boards.get')!.output.safeParse({ board }).success).toBe(false);
  });
});
