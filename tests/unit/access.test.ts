import { describe, expect, it } from 'vitest';
import { decideAccess, mustHaveAccess } from '../../server/domain/access/access.ts';

const list = { name: 'boards.list', type: 'query', access: 'viewer' } as const;
const create = { name: 'cards.create', type: 'mutation', access: 'member' } as const;

describe('mustHaveAccess', () => {
  it('throws what was decided', () => {
    const access = decideAccess(undefined, [list]);

    expect(() => mustHaveAccess({ caller: undefined, access }, list)).toThrow(access.get('boards.list'));
  });

  it.each([
    ['without any decision', undefined],
    ['with a decision about another procedure', new Map([[list.name, undefined]])],
  ])('401 for a procedure that nothing was decided about, %s', (_, access) => {
    expect(() => mustHaveAccess({ caller: undefined, access }, create)).toThrow('Sign in first');
  });
});
