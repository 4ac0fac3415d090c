import { afterEach, describe, expect, it, vi } from 'vitest';
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
    ['not behind its position', false, { position: 101 }],
    ['not in another epoch', false, { epoch: 'another epoch' }],
    ['not while there is no epoch', false, { epoch: null }],
    ['not while it is left out', false, {}, { leftOut: 'it is too far behind' }],
    ['not while nothing is known about it', false, {}, { latest: undefined }],
  ])('%s', (_, expected, written, more) => {
    expect(givenReplica(more).has({ epoch: STATUS.epoch, position: 1, ...written })).toBe(expected);
  });

  it('not if it has not answered for half a second: it may be frozen', () => {
    const replica = givenReplica();
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + 500);

    expect(replica.has({ epoch: STATUS.epoch, position: 1 })).toBe(false);
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
