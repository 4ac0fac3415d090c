import { sql } from 'kysely';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { connect } from '../../server/database/connect.ts';
import { migrate } from '../../server/database/migrate.ts';
import { type Db, query } from '../../server/database/query.ts';
import { openReplicas, type Replicas } from '../../server/database/replicas.ts';
import { type Written, writtenBy } from '../../server/database/writePosition.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { givenCluster, givenReplica } from '../faults/privateServer.ts';
import { TEST_SECRET } from '../harness/service.ts';

/** On servers of its own, which it kills. */
const primary = (await givenCluster())!;
const replica = await givenReplica(primary);
const diverged = await givenReplica(primary);
afterAll(() => Promise.all([primary.remove(), replica.remove(), diverged.remove()]));

const USER = 7;
const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };

/** A node that follows a fail-over from the one to the other. */
async function givenNode() {
  const hosts = [primary, replica].map(({ url }) => new URL(url).host);
  const settings = readSettings({
    DATABASE_URL: `postgresql://postgres@${hosts}/postgres`,
    DATABASE_REPLICA_URLS: `${replica.url},${diverged.url}`,
    JWT_SECRET: TEST_SECRET,
  });
  const database = await connect(settings);
  await migrate(database);
  const replicas = (await openReplicas(settings, database, log))!;
  return { db: database.db, replicas };
}

/** What the look-up of a caller reads. */
async function written(db: Db): Promise<Written> {
  const [{ write_epoch: epoch, write_position: position }] = (await query(
    db,
    sql`select ${writtenBy(sql`${USER}::int`)} 1 as one`,
  )) as [{ write_epoch: string | null; write_position: number }];
  return { epoch, position };
}

const usesReplica = (db: Db, replicas: Replicas) =>
  vi.waitFor(async () => expect(await replicas.choose(USER, await written(db))).toBeDefined());

describe('positions that a server loses', { timeout: 60_000 }, () => {
  it('begin a new epoch: after a crash of the primary, and after the promotion of a replica, which no other one follows', async () => {
    const { db, replicas } = await givenNode();
    await usesReplica(db, replicas);
    await replicas.noteWrite(USER);
    const before = await written(db);
    expect(before.position).toBeGreaterThan(0);

    await primary.kill();
    await primary.start();
    const after = await vi.waitFor(() => written(db));
    expect(after.position).toBe(0);
    expect(after.epoch).not.toBe(before.epoch);
    await usesReplica(db, replicas);
    const { epoch } = await written(db);

    await primary.kill();
    log.warn.mockClear();
    await replica.promote();
    const promoted = await vi.waitFor(async () => {
      const found = await written(db);
      expect(found.epoch).not.toBeNull();
      return found;
    });
    expect(promoted.epoch).not.toBe(epoch);
    for (const reason of [/it is a primary itself/, /follows another primary/])
      await vi.waitFor(() => expect(log.warn.mock.calls.flat().join()).toMatch(reason));
    expect(await replicas.choose(USER, promoted)).toBeUndefined();
    await replicas.close();
  });
});
