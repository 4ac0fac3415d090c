import { describe, expect, it } from 'vitest';
import { isStalePlan, StatementNames } from '../../server/database/preparedStatements.ts';

describe('the name of a statement', () => {
  it('is given to the first 500 statements only', () => {
    const names = new StatementNames();
    const texts = Array.from({ length: 2000 }, (_, number) => `select ${number}`);
    for (const text of texts) {
      names.of(text);
      names.of(text);
    }

    expect(texts.filter((text) => names.of(text) !== undefined)).toEqual(texts.slice(0, 500));
  });

  it('is not given to a statement that comes again after 1,000 others, which are all that is remembered', () => {
    const names = new StatementNames();
    names.of('select now()');
    for (let number = 0; number < 1000; number++) names.of(`select ${number}`);

    expect(names.of('select now()')).toBeUndefined();
    expect(names.of('select now()')).toBeDefined();
  });

  it('changes once, for all statements, when several of them report a changed table', () => {
    const names = new StatementNames();
    const nameOf = (text: string) => names.of(text) ?? names.of(text)!;
    const before = [nameOf('select 1'), nameOf('select 2')];

    for (const stale of before) names.forget(stale);

    expect([names.of('select 1'), names.of('select 2')]).toEqual(before.map((name) => name.replace('_0_', '_1_')));
  });
});

describe('a stale plan', () => {
  it('is recognised by code and message, since other unsupported features have the same code', () => {
    const stale = { code: '0A000', message: 'cached plan must not change result type' };

    expect(isStalePlan(stale)).toBe(true);
    expect(isStalePlan({ ...stale, message: 'cannot do this' })).toBe(false);
    expect(isStalePlan({ ...stale, code: '42P01' })).toBe(false);
  });
});
