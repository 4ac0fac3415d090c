import { beforeAll, describe, expect, it } from 'vitest';
import { procedures } from '../../server/api/procedures.ts';
import { EVENT_TYPES, type EventType } from '../../shared/event.ts';
import { sampled } from '../harness/sample.ts';
import { withOwnDatabase } from '../harness/service.ts';
import { startStates } from '../harness/startStates.ts';
import { mutations } from './fullCalls.ts';
import { type OperationRecord, recordOperation } from './record.ts';
import { declaredBy, isMailOnly, RULES } from './rules.ts';

/** What holds for every operation. A new operation needs a row in the table of start states, and nothing here. */

withOwnDatabase();

describe.each(sampled(procedures).map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  let record: OperationRecord;
  beforeAll(async () => {
    record = await recordOperation(procedure);
  });

  it.each(Object.entries(RULES))('%s', (_, rule) => rule(record));
});

describe('the operations', () => {
  it('have start states with their access and status', () => {
    const expected = procedures.map(({ name, access, rest }) => `${name}: ${access} ${rest!.status}`);

    const stated = [...startStates].map(
      ([name, { access, success }]) => `${name}: ${access} ${success === 201 ? 201 : 200}`,
    );
    expect(stated.sort()).toEqual(expected.sort());
  });

  it('name the events of each mutation, all of known types, and none of a query', () => {
    const isKnown = (type: EventType) => type in EVENT_TYPES;

    expect(mutations.filter((procedure) => declaredBy(procedure).length === 0)).toEqual(mutations.filter(isMailOnly));
    expect(mutations.flatMap(declaredBy).filter((type) => !isKnown(type))).toEqual([]);
    expect(procedures.filter(({ type }) => type === 'query').flatMap(declaredBy)).toEqual([]);
  });

  it('name each type of event, apart from what payments and the work on rollouts cause', () => {
    const declared = new Set(mutations.flatMap(declaredBy));
    const others = (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => !declared.has(type));

    expect(others).toEqual([
      ...['rollout.stage_finished', 'rollout.finished', 'rollout.rolled_back'],
      ...['template.rolled_out', 'template.rolled_back'],
      'subscription.changed',
      'identity.linked',
    ]);
  });
});
