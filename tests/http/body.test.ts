import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { describe, expect, it, vi } from 'vitest';
import { readBody } from '../../server/http/body.ts';
import { toFailure } from '../../shared/errors.ts';
import { LARGEST_BODY_BYTES } from '../../shared/limits.ts';

const givenMessage = (sent: object = { length: '10' }) => {
  const raw = new IncomingMessage(new Socket());
  const sentBody = { type: 'application/json', ...sent };
  const reply = { header: vi.fn() } as unknown as FastifyReply;
  const read = () =>
    readBody({ raw, sentBody } as unknown as FastifyRequest, reply, 64).then(
      (text) => text,
      (error) => toFailure(error).reason,
    );
  return { raw, reply, read };
};

describe('readBody', () => {
  it('400 if the caller has left before the body is read, and closes the connection', async () => {
    const { raw, reply, read } = givenMessage();
    raw.destroy();

    expect(await read()).toBe('body_incomplete');
    expect(reply.header).toHaveBeenCalledWith('Connection', 'close');
  });

  it('400 if the caller leaves meanwhile', async () => {
    const { raw, read } = givenMessage();

    const reading = read();
    raw.push('{"a"');
    raw.destroy();

    expect(await reading).toBe('body_incomplete');
  });

  it('joins the pieces of a body, also if a character is cut', async () => {
    const { raw, read } = givenMessage();
    const bytes = Buffer.from('{"a":"ä"}');

    const reading = read();
    raw.push(bytes.subarray(0, 7));
    raw.push(bytes.subarray(7));
    raw.push(null);

    expect(await reading).toBe('{"a":"ä"}');
  });

  it.each([
    [LARGEST_BODY_BYTES, ' '.repeat(LARGEST_BODY_BYTES)],
    [LARGEST_BODY_BYTES + 1, 'body_too_large'],
  ])('reads at most 1 MiB of a body without a length: %i bytes', async (bytes, expected) => {
    const { raw, read } = givenMessage({ encoding: 'chunked' });

    const reading = read();
    raw.push(Buffer.alloc(1000, ' '));
    raw.push(Buffer.alloc(bytes - 1000, ' '));
    raw.push(null);

    expect(await reading).toBe(expected);
  });
});
