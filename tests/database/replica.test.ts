import { afterEach, describe, expect, it, vi } from 'vitest';
import { readOnReplica } from '../../server/call/replica.ts';
import { Replica } from '../../server/database/replica.ts';

afterEach(() => void vi.restoreAllMocks());

const STATUS = { isReplica: true, position: 100, epoch: 'an epoch', server: 'a server' };

/** A replica that has just told this about itself, without a connection. */
const givenReplica = (more: object = {}) =>
  Object.assign(Object.create(Replica.prototype), {
    leftOut: undefined,
    latest: { ...STATUS, at: performance.now() },
    ...more,
  });

describe('a replica has what was written', () => {
  it.each<[string, boolean, object, object?]>([
    ['up to its position', true, { position: 100 }],
    ['not in another epoch', false, { epoch: 'another epoch' }],
    ['not while there is no epoch', false, { epoch: null }],
    ['not while it is left out', false, {}, { leftOut: 'it is too far behind' }],
    ['not while nothing is known about it', false, {}, { latest: undefined }],
  ])('%s', async (_, expected, written, more) => {
    expect(await givenReplica(more).reaches({ epoch: STATUS.epoch, position: 1, ...written })).toBe(expected);
  });

  it('not if it has not answered for half a second: it may be frozen', async () => {
    const replica = givenReplica();
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 500);

    expect(await replica.reaches({ epoch: STATUS.epoch, position: 1 })).toBe(false);
  });

  it('past its position, if it gets there in a moment', async () => {
    // However long a busy machine takes.
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now);
    const replica = givenReplica();
    replica.ask = async () => {
      replica.latest = { ...replica.latest, position: replica.latest.position + 1, at: performance.now() };
    };

    expect(await replica.reaches({ epoch: STATUS.epoch, position: 103 })).toBe(true);
  });

  it.each<[string, object]>([
    ['does not answer', { ask: () => new Promise(() => undefined) }],
    ['stays where it is', { ask: async () => undefined }],
    ['is far behind, which takes no time', { lastLag: 101, milestone: { at: performance.now() }, ask: undefined }],
  ])('not past its position, if it %s', async (_, more) => {
    expect(await givenReplica(more).reaches({ epoch: STATUS.epoch, position: 101 })).toBe(false);
  });
});

describe('a new connection for reads', () => {
  it.each<[string, boolean, object, object?]>([
    ['leads to the server that was asked', true, {}],
    ['may find it further', true, { position: 101 }],
    ['is refused if another server answers, or it was restarted', false, { server: 'another server' }],
    ['is refused if it leads to an earlier state', false, { position: 99 }],
    ['is refused while nothing is known about the replica', false, {}, { latest: undefined }],
  ])('%s', async (_, expected, status, more) => {
    const client = { query: async () => ({ rows: [{ ...STATUS, ...status }] }) };
    const verified = givenReplica(more).verify(client);

    if (expected) await verified;
    else await expect(verified).rejects.toThrow('another server answers');
  });
});

describe('what the primary tells a user', () => {
  const [primary, replica] = [{ name: 'the primary' }, { name: 'a replica' }];
  it.each<[string, object | undefined]>([
    ['because no replica has what they wrote', undefined],
    ['after a replica failed', { db: replica }],
  ])('is noted %s, a refusal included: a replica may still have a deleted row', async (_, chosen) => {
    const replicas = { choose: async () => chosen, noteRead: vi.fn(async () => undefined), noteRetry: vi.fn() };
    const context = { db: primary, caller: { id: 7, written: { epoch: 'an epoch', position: 1 } } };
    const refuse = async ({ db }: { db: unknown }) => Promise.reject(new Error(db === primary ? '404' : 'gone'));

    await expect(readOnReplica(replicas as never, context as never, refuse as never)).rejects.toThrow('404');

    expect(replicas.noteRead.mock.calls).toEqual([[7]]);
  });
});
