import { once } from 'node:events';
import { request as call, type IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { sendInPieces } from '../../server/http/largeAnswer.ts';
import { cut } from '../../server/runtime/jsonText.ts';
import { Leaving } from '../../server/runtime/leaving.ts';

const PIECE = 'x'.repeat(20_000);

let app: FastifyInstance;
afterEach(() => app?.close());

/** A service with answers of some pieces, or of more and more of them until `release`. */
async function givenService() {
  const arrived: string[] = [];
  const written: string[] = [];
  const closed: string[] = [];
  let isReleased = false;
  app = fastify();
  app.decorateRequest('exchange', undefined);
  app.get('/:name/:pieces', (request, reply) => {
    const { name, pieces } = request.params as { name: string; pieces: string };
    const leaving = new Leaving();
    Object.assign(request, { exchange: { caller: { id: name[0] }, leaving } });
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) leaving.leave();
      closed.push(name);
    });
    arrived.push(name);
    function* write() {
      for (let piece = 0; pieces === 'endless' ? !isReleased : piece < Number(pieces); piece++) {
        written.push(name);
        yield PIECE;
      }
    }
    return sendInPieces(request, reply, [write()]);
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });

  /** The work `a1` belongs to the user `a`. */
  const start = async (name: string, pieces: number | 'endless') => {
    const request = call(`${url}/${name}/${pieces}`, { agent: false }).end();
    const response = once(request, 'response').then(([response]) => response as IncomingMessage);
    response.catch(() => undefined);
    await until(() => arrived.includes(name));
    const bytes = response.then(async (response) => Buffer.concat(await response.toArray()).length);
    bytes.catch(() => undefined);
    return { response, bytes, disconnect: () => request.destroy() };
  };
  const until = async (isTrue: () => boolean) => {
    while (!isTrue()) await setImmediate();
  };
  const release = () => {
    isReleased = true;
  };
  return { written, closed, start, until, release };
}

describe('large answers', () => {
  it('are built one at a time, and users take turns', async () => {
    const { written, start, release } = await givenService();
    const [first, ...others] = [
      await start('a1', 'endless'),
      await start('a2', 3),
      await start('a3', 3),
      await start('b1', 3),
    ];

    release();

    expect(await Promise.all(others.map(({ bytes }) => bytes))).toEqual([1, 2, 3].map(() => 3 * PIECE.length));
    expect(await first!.bytes).toBe(written.filter((name) => name === 'a1').length * PIECE.length);
    const turns = written.filter((name, at) => name !== written[at - 1]);
    expect(turns).toEqual(['a1', 'b1', 'a2', 'a3']);
  });

  it('of callers who disconnect are not built, or not to the end, and the next one is', async () => {
    const { written, closed, start, until } = await givenService();
    const first = await start('a1', 'endless');
    const waiting = await start('a2', 3);
    const next = await start('a3', 3);

    waiting.disconnect();
    await until(() => closed.includes('a2'));
    first.disconnect();

    expect(await next.bytes).toBe(3 * PIECE.length);
    expect(written).not.toContain('a2');
  });

  it('that nobody reads hold up no others, and end when their caller disconnects', async () => {
    const { closed, start, until } = await givenService();
    const unread = await start('a1', 2000);
    const response = (await unread.response).pause();

    const next = await start('a2', 3);

    expect(await next.bytes).toBe(3 * PIECE.length);
    expect(closed).not.toContain('a1');
    response.destroy();
    await until(() => closed.includes('a1'));
  });
});

describe('a long text', () => {
  it.each(['', 'x', 'x'.repeat(200_000), '😀'.repeat(100_000), `x${'😀'.repeat(100_000)}`])(
    'is cut into whole characters (%#)',
    (text) => {
      const pieces = [...cut(text)];

      expect(pieces.join('')).toBe(text);
      expect(pieces.every((piece) => piece.isWellFormed() && piece.length <= 65_536 && piece !== '')).toBe(true);
    },
  );
});
