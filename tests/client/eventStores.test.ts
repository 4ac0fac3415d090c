import { mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type ChangeEvent,
  fetchRow,
  fileStorage,
  followEvents,
  type MirrorChange,
  memoryStore,
  openMirror,
  postgresStore,
} from '../../client/events/events.ts';
import { fakeClient } from '../../client/testing/fake.ts';
import { refusalOf } from '../../client/testing/refusal.ts';
import { aBoard, aCard, aGroup, anEvent } from '../../client/testing/rows.ts';
import { givenDirectory } from '../harness/process.ts';
import { realSetTimeout, replaceTimers } from '../harness/timers.ts';

const withoutPauses = () => replaceTimers((end) => realSetTimeout(end, 0));

const NOTHING = { boards: [], groups: [], cards: [] };
const saved = (id: number): MirrorChange => ({
  board: { id: 2, project_id: 1 },
  cursor: `c${id}`,
  lastEvent: String(id),
  put: { ...NOTHING, cards: [aCard({ id })] },
  removed: NOTHING,
});

describe('a file of a mirror', () => {
  const givenPath = async () => join(await givenDirectory(), 'board.jsonl');
  const idsIn = async (path: string) => [...((await fileStorage(path).load())?.rows.cards.keys() ?? [])];

  it('is written anew if its only line was cut off', async () => {
    const path = await givenPath();
    await writeFile(path, '{"cursor":"c1","put":{"boa');
    const storage = fileStorage(path);

    expect(await storage.load()).toBeUndefined();
    for (const id of [1, 2]) await storage.save(saved(id));

    expect(await idsIn(path)).toEqual([1, 2]);
  });

  it('is written anew after a save that failed, without that change', async () => {
    const path = await givenPath();
    const storage = fileStorage(path);
    for (const id of [1, 2]) await storage.save(saved(id));
    const before = await readFile(path, 'utf8');
    await rm(path);
    await mkdir(path);

    await expect(storage.save(saved(3))).rejects.toThrow('EISDIR');
    await rmdir(path);
    await writeFile(path, `${before}{"cursor":"c3","pu`);
    await storage.save(saved(4));

    expect(await idsIn(path)).toEqual([1, 2, 4]);
  });

  it('has no rows of before once it was deleted, since it could not be read', async () => {
    const path = await givenPath();
    const storage = fileStorage(path);
    await writeFile(path, `${JSON.stringify(saved(1))}\n?\n`);
    await expect(storage.load()).rejects.toThrow('Delete the file');
    await rm(path);

    expect(await storage.load()).toBeUndefined();
    await storage.save(saved(2));

    expect(await idsIn(path)).toEqual([2]);
  });
});

describe('a file that two mirrors share', () => {
  const ofOther = { ...saved(1), board: { id: 3, project_id: 1 } };

  it('is refused by the storage that has another board', async () => {
    const storage = fileStorage(join(await givenDirectory(), 'board.jsonl'));
    await storage.save(saved(1));

    await expect(storage.save(ofOther)).rejects.toThrow('has board 2, and also 3. Delete it, and give each board');
  });

  it('is refused when it is read, if both have written to it', async () => {
    const path = join(await givenDirectory(), 'board.jsonl');
    await writeFile(path, `${JSON.stringify(saved(1))}\n${JSON.stringify(ofOther)}\n`);

    await expect(fileStorage(path).load()).rejects.toThrow('has board 2, and also 3. Delete it, and give each board');
  });
});

describe('a row that a replica does not have yet', () => {
  const givenCard = (answers: (string | undefined)[]) =>
    fakeClient({
      cards: {
        get: async () => {
          const version = answers.shift();
          if (version === undefined) throw refusalOf({ status: 404, reason: 'not_found' });
          return { card: aCard({ id: 7 }), version };
        },
      },
    });
  const event = (type: 'card.created' | 'card.deleted', version?: number, created_at = new Date()) =>
    ({ ...anEvent({ subject_id: 7, created_at, data: version ? { version } : {} }), type }) as const;

  it('is read again after a 404, and after an earlier version', async () => {
    withoutPauses();
    const client = givenCard([undefined, undefined, '2-1769851800000', '3-1769851800001']);

    expect((await fetchRow(client, event('card.created', 3)))?.version).toBe('3-1769851800001');
  });

  it('counts as deleted after several 404', async () => {
    withoutPauses();
    const client = givenCard([]);

    expect(await fetchRow(client, event('card.created', 1))).toBeUndefined();
    expect(client.calls).toHaveLength(6);
  });

  it('counts as deleted at once if the event says so, or has no version', async () => {
    const client = givenCard([]);

    expect(await fetchRow(client, event('card.deleted', 2))).toBeUndefined();
    expect(await fetchRow(client, event('card.created'))).toBeUndefined();
    expect(client.calls).toHaveLength(2);
  });

  it('counts as deleted at once if the event is older than any replica', async () => {
    const client = givenCard([]);

    expect(await fetchRow(client, event('card.created', 1, new Date(Date.now() - 61_000)))).toBeUndefined();
    expect(client.calls).toHaveLength(1);
  });

  it('is read by a mirror until it is there, without the loss of others', async () => {
    withoutPauses();
    const [board, group] = [aBoard({ id: 2 }), aGroup({ id: 3, board_id: 2 })];
    const changed = (id: number) => anEvent({ type: 'card.updated', subject_id: id, data: { version: 3 } });
    let reads = 0;
    const client = fakeClient({
      events: { list: listOf(changed(6), changed(7)) },
      boards: { list: async () => ({ boards: [{ ...board, groups_count: 1, cards_count: 0 }] }) as never },
      groups: { list: async () => ({ groups: [group], next_cursor: null }) as never },
      cards: {
        list: async () => ({ cards: [], next_cursor: null }) as never,
        get: async ({ id }) => {
          const isBehind = id === 7 && ++reads < 20;
          return { card: aCard({ id, group_id: 3 }), version: isBehind ? '2-1' : '3-2' };
        },
      },
    });
    const mirror = await openMirror(client, { boardId: 2, storage: fileStorage(join(await givenDirectory(), 'b')) });
    await mirror.refresh();

    expect([...mirror.rows.cards.keys()]).toEqual([6, 7]);
    expect(reads).toBe(20);
  });
});

it('the documentation has the table of marks as postgresStore creates it', async () => {
  const sent: string[] = [];
  const query = async (text: string) => {
    sent.push(text.replace(/\s+/g, ' '));
    return { rows: [] };
  };
  const store = postgresStore({ connect: async () => ({ query, release: () => undefined }) });
  await store.readCursor();
  const text = (await readFile('docs/client.md', 'utf8')).replace(/\s+/g, ' ');

  const [created = ''] = sent.filter((statement) => statement.startsWith('create table'));
  expect(text).toContain(created.replace('if not exists ', ''));
});

/** `latest` is c0, and c1 is behind the events. */
const nextOf = (after: string | null | undefined) => (after === 'latest' ? 'c0' : 'c1');
const listOf =
  (...events: ChangeEvent[]) =>
  async ({ after }: { after?: string | null | undefined }) => ({
    events: after === 'c0' ? events : [],
    cursor: nextOf(after),
    has_more: false,
  });
const givenFeed = (event: ChangeEvent) => fakeClient({ events: { list: listOf(event) } });

describe('followEvents', () => {
  it('stores the cursor after an event without a handler', async () => {
    const store = memoryStore();
    const client = givenFeed(anEvent({ type: 'card.painted' }));
    await followEvents(client, { store, on: { 'card.moved': () => undefined }, isOnce: true });

    expect(await store.readCursor()).toBe('c1');
  });

  it('begins anew if a handler fails until the service, which was restored, refuses the cursor', async () => {
    withoutPauses();
    const begun: string[] = [];
    let failures = 0;
    const client = fakeClient({
      events: {
        list: async ({ after }) => {
          if (after === 'c0' && failures === 3) throw refusalOf({ status: 400, reason: 'cursor_too_old' });
          return { events: after === 'c0' ? [anEvent({ type: 'card.moved' })] : [], cursor: 'c9', has_more: false };
        },
      },
    });
    const store = memoryStore();
    await store.writeCursor('c0');
    const fail = () => {
      failures++;
      throw new Error('The row is older than its event.');
    };
    const how = { store, isOnce: true, onError: () => undefined, begin: (why: string) => void begun.push(why) };
    await followEvents(client, { on: { 'card.moved': fail }, ...how });

    expect([begun, failures]).toEqual([['lost'], 3]);
  });

  it('goes on after a store and a gateway that fail for a while', async () => {
    withoutPauses();
    const store = memoryStore();
    const { readCursor, writeCursor } = store;
    const failures = ['begin', 'an empty page'];
    let isUp = false;
    store.readCursor = async () => {
      if (isUp) return readCursor();
      isUp = true;
      throw new Error('The database can not be reached.');
    };
    store.writeCursor = async (cursor) => {
      if (failures.shift()) throw new Error('The database can not be reached.');
      return writeCursor(cursor);
    };
    const maintenance = [refusalOf({ status: 500, reason: 'fault', retryAfterSeconds: 120 })];
    const list = async ({ after }: { after?: string | null | undefined }) => {
      const failure = after === 'latest' ? undefined : maintenance.shift();
      if (failure) throw failure;
      return { events: [], cursor: nextOf(after), has_more: false };
    };
    await followEvents(fakeClient({ events: { list } }), {
      store,
      on: { 'card.moved': () => undefined },
      isOnce: true,
    });

    expect([await store.readCursor(), failures, maintenance]).toEqual(['c1', [], []]);
  });

  it('takes a store that is an object of a class', async () => {
    class Store {
      cursor: string | undefined;
      handleOnce = memoryStore().handleOnce;
      async readCursor() {
        return this.cursor;
      }
      async writeCursor(cursor: string) {
        this.cursor = cursor;
      }
    }
    const store = new Store();
    await followEvents(givenFeed(anEvent()), { store, on: { 'card.moved': () => undefined }, isOnce: true });

    expect(store.cursor).toBe('c1');
  });

  it('says what to do if the cursor is refused, without begin', async () => {
    const client = fakeClient({
      events: {
        list: async () => {
          throw refusalOf({ status: 422, reason: 'cursor_too_old' });
        },
      },
    });
    const store = memoryStore();
    await store.writeCursor('c0');

    const failed = followEvents(client, { store, on: { 'card.moved': () => undefined } });

    await expect(failed).rejects.toMatchObject({
      message: expect.stringContaining('Give begin, which reads your rows, or delete the stored cursor'),
      ...{ status: 422, reason: 'cursor_too_old' },
    });
  });

  it('is refused without a handler', async () => {
    const client = givenFeed(anEvent());

    await expect(followEvents(client, { on: {} })).rejects.toThrow('on is empty. Give it a handler, or set otherwise.');
    expect(client.calls).toEqual([]);
  });
});

it('a handler is not waited for once PostgreSQL has ended its session', async () => {
  const listeners: ((error: Error) => void)[] = [];
  const released: unknown[] = [];
  let isEnded = false;
  const client = {
    query: async () => {
      if (isEnded) throw new Error('The connection is not usable.');
      return { rows: [{}] };
    },
    on: (_: 'error', listener: (error: Error) => void) => listeners.push(listener),
    off: (_: 'error', listener: (error: Error) => void) => listeners.splice(listeners.indexOf(listener), 1),
    release: (isBroken?: boolean) => released.push(isBroken),
  };
  const store = postgresStore({ connect: async () => client });
  await store.readCursor();
  const hangs = store.handleOnce({ id: '1' }, () => {
    isEnded = true;
    for (const listener of listeners) listener(new Error('terminating connection due to a time limit'));
    return new Promise(() => undefined);
  });

  await expect(hangs).rejects.toThrow('terminating connection due to a time limit');
  expect([released.at(-1), listeners]).toEqual([true, []]);
});

describe('events in memory', () => {
  it('are handled once by two followers that share the store', async () => {
    const store = memoryStore();
    let calls = 0;
    const handle = () => store.handleOnce({ id: '1', row: 'card 7' }, async () => void (await ++calls));

    expect(await Promise.all([handle(), handle()])).toEqual([true, false]);
    expect(calls).toBe(1);
  });

  it('are handled although a database that was made anew gives out the same ids', async () => {
    const handled: Date[] = [];
    const store = memoryStore();
    for (const created_at of [new Date('2026-01-31T09:30:00Z'), new Date('2026-02-01T09:30:00Z')]) {
      await store.writeCursor('c0');
      const event = anEvent({ id: '7', type: 'card.moved', created_at });
      const on = { 'card.moved': ({ created_at }: ChangeEvent) => void handled.push(created_at) };
      await followEvents(givenFeed(event), { store, on: on as never, isOnce: true });
    }

    expect(handled).toHaveLength(2);
  });

  it.each(['7', '1769851800000000'])(
    'are not outdated after a restore, which gave out ids from %s on',
    async (before) => {
      const flags: boolean[] = [];
      const moved = (id: number, version: number) =>
        anEvent({ id: String(id), type: 'card.moved', subject_id: 7, data: { version } });
      const restored = Number(before) + 1_000_000_000;
      const store = memoryStore();
      for (const event of [
        moved(Number(before), 9),
        moved(restored, 4),
        moved(restored + 2, 6),
        moved(restored + 1, 5),
      ]) {
        await store.writeCursor('c0');
        const on = {
          'card.moved': (_: unknown, { isOutdated }: { isOutdated: boolean }) => void flags.push(isOutdated),
        };
        await followEvents(givenFeed(event), { store, on, isOnce: true });
      }

      expect(flags).toEqual([false, false, false, true]);
    },
  );
});
