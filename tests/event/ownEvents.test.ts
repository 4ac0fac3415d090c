import { describe, expect, it } from 'vitest';
import type { SentEvent } from '../../server/contract/event.ts';
import { type OwnCall, type Way, wayProblems } from '../../server/contract/ownEvents.ts';

const event = (id: string, type: string, data: Record<string, unknown>, more: object = {}): SentEvent => ({
  ...{ id, type, created_at: '2026-01-31T09:30:00.000Z', platform_id: 1, project_id: 1, user_id: 1, key_id: 1 },
  ...{ surface: 'rest', request_id: `request ${id}`, subject_id: 5, data, ...more },
});

const EVENTS = [
  event('1', 'card.created', { group_id: null, version: 1 }),
  event('2', 'card.updated', { fields: ['title'], version: 2 }),
  event('3', 'card.deleted', { version: 3 }),
];
const CALLS: OwnCall[] = [
  { name: 'cards.create', requestId: 'request 1', answeredAt: 1000, id: 5, version: 1 },
  { name: 'cards.update', requestId: 'request 2', answeredAt: 2000, id: 5, version: 2 },
  { name: 'cards.delete', requestId: 'request 3', answeredAt: 3000 },
];

const wayOf = (events: SentEvent[], name = 'feed'): Way => ({
  name,
  hasBegun: true,
  seen: events.map((event) => ({ event, at: 3500, limitedUntil: 0 })),
  problems: [],
});

const lateWay = (limitedUntil: number): Way => ({
  ...wayOf([]),
  seen: EVENTS.map((event) => ({ event, at: 13_500, limitedUntil })),
});

const STREAM = wayOf(EVENTS, 'REST: stream');
const problemsOf = (events: SentEvent[], calls = CALLS) => {
  const way = wayOf(events);
  return wayProblems(way, [way, STREAM], calls);
};
const [created, updated, deleted] = EVENTS as [SentEvent, SentEvent, SentEvent];

describe('the events of own calls', () => {
  it('are right', () => {
    expect(problemsOf(EVENTS)).toEqual([]);
  });

  it('are right beside those of others, and after a call that changed nothing', () => {
    const others = event('4', 'card.created', {}, { request_id: 'another one' });
    const again: OwnCall = { name: 'cards.update', requestId: 'request 9', answeredAt: 2500, id: 5, version: 2 };
    const [first, second, last] = CALLS as [OwnCall, OwnCall, OwnCall];

    expect(problemsOf([others, ...EVENTS], [first, second, again, last])).toEqual([]);
  });

  it('are right after a call that changed nothing, and whose answer lost its version', () => {
    const again: OwnCall = { name: 'cards.update', requestId: 'request 9', answeredAt: 2500, id: 5 };

    expect(problemsOf(EVENTS, [...CALLS, again])).toEqual([]);
  });

  it.each([
    [
      'lack a field',
      [{ ...created, data: { group_id: null } }, updated, deleted],
      /card.created: \/data must have version/,
    ],
    [
      'have a field of another type',
      [created, { ...updated, data: { fields: 'x', version: 2 } }, deleted],
      /card.updated: \/data\/fields must be array/,
    ],
    ['have another order', [created, deleted, updated], /another order/],
    ['arrive twice', [created, updated, updated, deleted], /card.updated arrives twice/],
    ['are lost', [created, deleted], /card.updated does not arrive/],
    [
      'have a wrong version',
      [created, { ...updated, data: { ...updated.data, version: 7 } }, deleted],
      /card.updated has version 7, the answer to its call 2/,
    ],
  ])('%s', (_, events, problem) => {
    expect(problemsOf(events).join('\n')).toMatch(problem);
  });

  it('are lost on every way', () => {
    const ways = [wayOf([created, updated]), wayOf([created, updated], 'REST: stream')] as const;

    expect(wayProblems(ways[0], [...ways], CALLS)).toEqual(['feed: cards.delete has no event.']);
  });

  it('may be unknown if an answer does not tell the id of its request', () => {
    const untold = CALLS.map((call) => ({ ...call, requestId: `sent with ${call.requestId}`, isIdUncertain: true }));

    expect(problemsOf(EVENTS, untold)).toEqual([]);
  });

  it('arrive more than ten seconds after the answer', () => {
    const way = lateWay(0);

    expect(wayProblems(way, [way], CALLS)).toEqual([
      'feed: card.created arrives 12 seconds after its change.',
      'feed: card.updated arrives 11 seconds after its change.',
    ]);
  });

  it('are late only if they arrive more than ten seconds after the end of a wait, too', () => {
    const [waited, late] = [lateWay(3500), lateWay(2400)];

    expect(wayProblems(waited, [waited], CALLS)).toEqual([]);
    expect(wayProblems(late, [late], CALLS)).toEqual([
      'feed: card.created arrives 11 seconds after its change.',
      'feed: card.updated arrives 11 seconds after its change.',
    ]);
  });
});
