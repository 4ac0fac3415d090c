import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  type ChangeEvent,
  type EventStore,
  fetchRow,
  followEvents,
  type HandlerContext,
  memoryStore,
  type PostgresClient,
  postgresStore,
  receiveWebhooks,
} from '../../client/events/events.ts';
import { anEvent } from '../../client/testing/rows.ts';
import { makeWebhookSecret, messageOf, signedHeaders } from '../../server/domain/event/webhookMessage.ts';
import { feedComplete } from '../harness/events.ts';
import { lostCursor } from '../harness/mirror.ts';
import { givenServerDatabase } from '../harness/server.ts';
import { databaseUrl } from '../harness/service.ts';
import { givenWorld } from '../harness/world.ts';

type Pool = Parameters<typeof postgresStore>[0];

/** The database of a receiver: on the server, or an embedded one with a single connection. */
let pool: Pool;
let close: () => Promise<unknown>;
beforeAll(async () => {
  if (databaseUrl) {
    const database = await givenServerDatabase(databaseUrl, 'marks');
    const connections = new pg.Pool({ connectionString: database.url });
    // The removal of the database may end a connection that is just closing.
    connections.on('error', () => undefined);
    pool = connections;
    close = () => connections.end().then(database.remove);
  } else {
    const database = await PGlite.create();
    pool = singleConnection(database);
    close = () => database.close();
  }
  const client = await pool.connect();
  await client.query('create table effects (event text)');
  client.release();
});
afterAll(() => close());

async function marksOf(name: string) {
  const client = await pool.connect();
  const { rows } = await client.query('select mark from deckhand_marks where store = $1', [name]);
  client.release();
  return rows.map(({ mark }) => mark);
}

function singleConnection(database: PGlite): Pool {
  let last = Promise.resolve();
  return {
    connect: async () => {
      const { promise, resolve: release } = Promise.withResolvers<void>();
      const before = last;
      last = promise;
      await before;
      return { query: (text, values) => database.query(text, values), release: () => release() };
    },
  };
}

/** A store that no other test uses. */
const givenStore = (name: string = randomUUID()) => postgresStore(pool, { name });

const note = ({ id }: ChangeEvent, { transaction }: HandlerContext<PostgresClient>) =>
  transaction.query('insert into effects values ($1)', [id]);

async function effectsOf(...events: ChangeEvent[]): Promise<unknown[]> {
  const client = await pool.connect();
  const text = 'select event from effects where event = any($1::text[])';
  const { rows } = await client.query(text, [events.map(({ id }) => id)]);
  client.release();
  return rows.map(({ event }) => event);
}

const moved = (fields: Partial<ChangeEvent> = {}) =>
  anEvent({ id: randomUUID(), type: 'card.moved', subject_id: 7, ...fields });

const SECRET = makeWebhookSecret();
function givenReceiver(store: EventStore<PostgresClient>, handler: typeof note = note) {
  const receive = receiveWebhooks({ secret: SECRET, store, on: { 'card.moved': handler }, onError: () => undefined });
  return async (event: ChangeEvent) => {
    const body = messageOf(event);
    const headers = signedHeaders(event.id, new Date(), body, [SECRET]);
    return (await receive(new Request('http://receiver.test/', { method: 'POST', headers, body }))).status;
  };
}

describe('events with marks in PostgreSQL', () => {
  it('take effect once, however many receivers get them at once', async () => {
    const name = randomUUID();
    const receivers = [1, 2, 3].map(() => givenReceiver(givenStore(name)));
    const event = moved();

    const statuses = await Promise.all(receivers.flatMap((send) => [send(event), send(event)]));

    expect(statuses).toEqual(Array(6).fill(204));
    expect(await effectsOf(event)).toEqual([event.id]);
  });

  it('500 if the handler throws after it wrote: nothing is written, and the event is handled when it comes again', async () => {
    let calls = 0;
    const send = givenReceiver(givenStore(), async (event, context) => {
      const written = await note(event, context);
      if (++calls === 1) throw new Error('Not now.');
      return written;
    });
    const event = moved();

    expect(await send(event)).toBe(500);
    expect(await effectsOf(event)).toEqual([]);
    expect(await send(event)).toBe(204);
    expect(await effectsOf(event)).toEqual([event.id]);
  });

  it('500 if the handler catches an SQL error: its transaction can not be saved, and the event comes again', async () => {
    let calls = 0;
    const send = givenReceiver(givenStore(), async (event, context) => {
      if (++calls === 2) await context.transaction.query('select 1 / 0').catch(() => undefined);
      return calls === 2 ? { rows: [] } : note(event, context);
    });
    const event = moved({ subject_id: null });

    expect(await send(moved())).toBe(204);
    expect(await send(event)).toBe(500);
    expect(await send(event)).toBe(204);
    expect(await effectsOf(event)).toEqual([event.id]);
  });

  it('need no right to create tables if the table is there', async () => {
    await givenStore().readCursor();
    const sent: string[] = [];
    const watched: Pool = {
      connect: async () => {
        const client = await pool.connect();
        const query: PostgresClient['query'] = (text, values) => {
          sent.push(text);
          return client.query(text, values);
        };
        return { query, release: () => client.release() };
      },
    };
    await postgresStore(watched, { name: randomUUID() }).handleOnce({ id: '1' }, async () => undefined);

    expect(sent).toContain('commit');
    expect(sent.filter((text) => /create|advisory_lock/.test(text))).toEqual([]);
  });

  it('of one row are handled one after the other, by several receivers, and say if they are outdated', async () => {
    const name = randomUUID();
    const seen: string[] = [];
    const handler: typeof note = async (event, { transaction, isOutdated }) => {
      seen.push(`begin ${event.data.version} ${isOutdated}`);
      await setTimeout(20);
      seen.push(`end ${event.data.version}`);
      return transaction.query('select');
    };
    const receivers = [1, 2].map(() => givenReceiver(givenStore(name), handler));
    await receivers[0]!(moved({ data: { version: 5 } }));
    await Promise.all(receivers.map((send, at) => send(moved({ data: { version: at + 3 } }))));

    expect(seen.slice(0, 2)).toEqual(['begin 5 false', 'end 5']);
    for (const at of [2, 4]) expect(seen[at + 1]).toBe(seen[at]!.replace(/begin (.) true/, 'end $1'));
  });

  it('are forgotten when they are older than they are kept', async () => {
    const name = randomUUID();
    const handle = (keptDays: number, id: string) =>
      postgresStore(pool, { name, keptDays }).handleOnce({ id, row: `card ${id}`, version: 1 }, async () => undefined);
    await handle(1, 'the event');
    await handle(1, 'another');
    expect(await handle(1, 'the event')).toBe(false);
    await postgresStore(pool, { name }).writeCursor('a place');

    await handle(0, 'a third');

    const kept = await marksOf(name);
    expect(['event the event', 'card the event', 'cursor'].filter((mark) => kept.includes(mark))).toEqual(['cursor']);
    expect(await handle(1, 'the event')).toBe(true);
  });

  it('stay handled if the old ones can not be forgotten', async () => {
    const name = randomUUID();
    let failed = 0;
    const connect = async () => {
      const client = await pool.connect();
      const query = (text: string, values?: unknown[]) =>
        text.includes('delete from') ? Promise.reject(new Error(`No. ${++failed}`)) : client.query(text, values);
      return { query, release: () => client.release() } as never;
    };
    const handle = () => postgresStore({ connect }, { name }).handleOnce({ id: 'the event' }, async () => undefined);

    expect([await handle(), await handle(), failed]).toEqual([true, false, 2]);
  });
});

/** A follower of new cards: `handled` has their ids. */
async function givenFollower(store: EventStore<PostgresClient>) {
  const world = await givenWorld();
  const handled: number[] = [];
  const create = async () => (await world.asMember.rpc.cards.create.mutate({ title: 'A card' })).card.id;
  const on = { 'card.created': ({ subject_id }: ChangeEvent) => void handled.push(subject_id!) };
  const follow = async (more: Partial<Parameters<typeof followEvents<PostgresClient>>[1]> = {}) => {
    await feedComplete();
    await followEvents(world.asMember.rpc, { store, on, isOnce: true, ...more });
  };
  return { world, handled, create, follow };
}

describe('followEvents', () => {
  it.each<[string, () => EventStore<PostgresClient>]>([
    ['in PostgreSQL', () => givenStore()],
    ['in memory', () => memoryStore() as unknown as EventStore<PostgresClient>],
  ])('handles what happens after its first start, each event once, with its cursor %s', async (_, storeOf) => {
    const { handled, create, follow } = await givenFollower(storeOf());
    await create();
    await follow();
    const created = [await create(), await create()];

    await follow();
    await follow();

    expect(handled).toEqual(created);
  });

  it('handles events as they happen, until its signal', async () => {
    const { handled, create, follow } = await givenFollower(givenStore());
    await follow();
    const ending = new AbortController();
    const ended = follow({ isOnce: false, signal: ending.signal });
    const created = [await create(), await create()];

    await vi.waitFor(() => expect(handled).toEqual(created));
    ending.abort();
    await ended;
  });

  it('repeats an event whose handler throws, before the next one', async () => {
    const { create, follow } = await givenFollower(givenStore());
    await follow();
    const created = [await create(), await create()];
    const calls: unknown[] = [];
    const fail = ({ subject_id }: ChangeEvent) => {
      if (calls.push(subject_id) === 1) throw new Error('Not now.');
    };
    await follow({ on: { 'card.created': fail }, onError: () => undefined });

    expect(calls).toEqual([created[0], ...created]);
  });

  it.each([
    ['cursor_too_old', lostCursor()],
    ['cursor_invalid', 'a file that somebody has edited'],
  ])('begins anew after a lost cursor, or throws %s', async (reason, cursor) => {
    const store = givenStore();
    const { handled, create, follow } = await givenFollower(store);
    const begun: string[] = [];
    await store.writeCursor(cursor);

    await expect(follow()).rejects.toMatchObject({ reason });
    await follow({ begin: (why) => void begun.push(why) });
    const card = await create();
    await follow({ begin: (why) => void begun.push(why) });

    expect(begun).toEqual(['lost']);
    expect(handled).toEqual([card]);
  });

  it('stores no cursor unless begin succeeds', async () => {
    const store = givenStore();
    const { follow } = await givenFollower(store);

    await expect(follow({ begin: () => Promise.reject(new Error('Not now.')) })).rejects.toThrow('Not now.');
    expect(await store.readCursor()).toBeUndefined();
  });
});

describe('fetchRow', () => {
  it('returns the card with the version of its event, or undefined after a deletion', async () => {
    const { asMember } = await givenWorld();
    const { card } = await asMember.rpc.cards.create.mutate({ title: 'A card' });
    await asMember.rpc.cards.update.mutate({ id: card.id, title: 'Another title' });
    await feedComplete();
    const { events } = await asMember.rpc.events.list.query({ card_id: card.id });
    const updated = { ...events[1]!, type: 'card.updated' } as const;

    expect(await fetchRow(asMember.rpc, updated)).toMatchObject({
      card: { title: 'Another title' },
      version: expect.stringMatching(`^${updated.data.version}-`),
    });
    await asMember.rpc.cards.delete.mutate({ id: card.id });
    expect(await fetchRow(asMember.rpc, { ...updated, type: 'card.deleted' })).toBeUndefined();
  });
});
