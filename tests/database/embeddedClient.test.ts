import { join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { EmbeddedClient, openEmbedded } from '../../server/database/embedded/embeddedClient.ts';
import { openInThread } from '../../server/database/embedded/engine.ts';
import { embeddedDirectory } from '../../server/database/embedded/location.ts';
import { exchange } from '../../server/database/embedded/pglite.js';
import { givenMigratedDirectory } from '../harness/process.ts';
import { isWhole } from '../harness/sample.ts';

let client: EmbeddedClient;
let isFull = false;

beforeAll(async () => {
  const beforeWrite = () => {
    if (isFull) throw new Error('the disk is full');
  };
  client = await openEmbedded(await openInThread(embeddedDirectory(await givenMigratedDirectory())), { beforeWrite });
  await client.query('create table words (id int generated always as identity, word text)');
});
beforeEach(async () => {
  isFull = false;
  await client.query('truncate words');
});
afterAll(() => client.close());

/** Not prepared the first time, prepared the second time, found prepared the third time. */
const THREE_TIMES = [1, 2, 3];

describe('a refused write', () => {
  const add = (word: string) => client.query('insert into words (word) values ($1)', [word]);
  const words = async () => (await client.query<{ word: string }>('select word from words order by id')).rows;

  it('does not reach the database, prepared or not, while reads do', async () => {
    isFull = true;
    for (const _ of THREE_TIMES) await expect(add('no')).rejects.toThrow('the disk is full');
    expect(await words()).toEqual([]);

    isFull = false;
    for (const _ of THREE_TIMES) await add('yes');
    isFull = true;
    await expect(add('no')).rejects.toThrow('the disk is full');
    await expect(client.query('truncate words')).rejects.toThrow('the disk is full');
    expect(await words()).toEqual([{ word: 'yes' }, { word: 'yes' }, { word: 'yes' }]);
  });

  it('rolls back its transaction', async () => {
    const work = client.transaction(async (transaction) => {
      await transaction.query('insert into words (word) values ($1)', ['first']);
      isFull = true;
      await transaction.query('insert into words (word) values ($1)', ['second']);
    });

    await expect(work).rejects.toThrow('the disk is full');
    expect(await words()).toEqual([]);
  });
});

describe('a database that fails with', () => {
  it.each(['PANIC', 'FATAL'])('%s gets no further messages', async (severity) => {
    const received: string[] = [];
    const givenUp: string[] = [];
    const execProtocolRawStream: PGlite['execProtocolRawStream'] = async (message, options) => {
      received.push(String.fromCharCode(message[0]!));
      options!.onRawData(errorMessage({ S: severity, C: 'XX000', M: 'could not write to file "pg_wal/xlogtemp.42"' }));
    };
    const failing = {
      exchange: (messages: Uint8Array) => exchange({ execProtocolRawStream }, messages),
      close: async () => {},
    };
    const client = new EmbeddedClient(failing, { giveUp: (reason) => givenUp.push(reason) });

    await expect(client.query('select 1')).rejects.toMatchObject({ severity, code: 'XX000' });

    expect(givenUp).toEqual(['could not write to file "pg_wal/xlogtemp.42"']);
    expect(received).toEqual(['P']);
  });
});

describe('a database in a thread', () => {
  it('fails all that is asked of it once its thread has ended, and says why', async () => {
    const givenUp: string[] = [];
    const engine = await openInThread(embeddedDirectory(await givenMigratedDirectory()));
    const ended = await openEmbedded(engine, { giveUp: (reason) => givenUp.push(reason) });

    const waiting = ended.query('select pg_sleep(60)').catch(({ message }) => message);
    await engine.terminate();

    expect(await waiting).toBe('its thread has ended');
    await expect(ended.query('select 1')).rejects.toThrow('its thread has ended');
    expect(givenUp).toEqual(['its thread has ended', 'its thread has ended']);
  });

  it('leaves the event loop free while a statement runs', async () => {
    const turns = vi.fn();
    const timer = setInterval(turns, 10);

    await client.query('select pg_sleep(0.5)');
    clearInterval(timer);

    expect(turns.mock.calls.length).toBeGreaterThan(5);
  });

  it.runIf(isWhole)('can not be opened where there is none', async () => {
    const file = join(embeddedDirectory(await givenMigratedDirectory()), 'PG_VERSION');

    await expect(openInThread(file)).rejects.toThrow();
  });
});

/** An ErrorResponse message of the PostgreSQL protocol. */
function errorMessage(fields: Record<string, string>): Buffer {
  const content = Object.entries(fields).map(([type, text]) => `${type}${text}\0`);
  const message = Buffer.from(`E\0\0\0\0${content.join('')}\0`);
  message.writeInt32BE(message.length - 1, 1);
  return message;
}
