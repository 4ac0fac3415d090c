import { expect, it } from 'vitest';
import { findProcedure, type RestProcedure } from '../../server/api/procedures.ts';
import { restOutcome } from '../../server/contract/outcome.ts';

it('an answer with fields of a later version is read with them', () => {
  const event = { id: '7', type: 'card.archived', data: { version: 3, later: { deep: 1 } }, later: true };
  const body = { error: false, message: 'Events.', data: { events: [event], cursor: 'c', has_more: false, later: 1 } };

  const { data } = restOutcome(findProcedure('events.list') as RestProcedure, {
    ...{ status: 200, headers: new Headers(), body },
  });

  expect(data).toEqual(body.data);
});
