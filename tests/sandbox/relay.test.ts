import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { makeFaults } from '../../client/testing/sandbox/faults.ts';
import { startRelay } from '../../client/testing/sandbox/relay.ts';

const opened: { close: () => void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

async function givenRelay(answer: RequestListener, timeoutMilliseconds?: number) {
  const receiver = createServer(answer);
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const faults = makeFaults();
  const relay = await startRelay(faults, () => undefined, timeoutMilliseconds);
  opened.push(relay, { close: () => receiver.close().closeAllConnections() });
  const send = (id = '1') =>
    fetch(relay.url, {
      method: 'POST',
      headers: { 'x-sandbox-receiver': address, 'webhook-id': id },
      body: JSON.stringify({ type: 'card.created' }),
    });
  return { relay, faults, send };
}

it('half a message ends its connection alone', async () => {
  const rejected: unknown[] = [];
  const note = (reason: unknown) => rejected.push(reason);
  process.on('unhandledRejection', note);
  opened.push({ close: () => process.off('unhandledRejection', note) });
  const { relay, send } = await givenRelay((_, response) => response.writeHead(204).end());
  const socket = connect(Number(new URL(relay.url).port), '127.0.0.1');

  await new Promise<void>((resolve) =>
    socket.write('POST / HTTP/1.1\r\nHost: relay\r\nContent-Length: 100\r\n\r\nhalf', () => resolve()),
  );
  socket.end();
  await new Promise((resolve) => socket.once('close', resolve).resume());

  expect((await send()).status).toBe(204);
  expect(rejected).toEqual([]);
});

it('gives up a receiver that does not answer', async () => {
  const { send } = await givenRelay(() => undefined, 50);

  await expect(send()).rejects.toThrow('fetch failed');
});

it('ends calls of receivers when it is closed', async () => {
  const called = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const { relay, send } = await givenRelay((received) => {
    received.socket.once('close', ended.resolve);
    called.resolve();
  });
  const sent = send().catch(() => 'refused');
  await called.promise;

  relay.close();

  expect(await sent).toBe('refused');
  await ended.promise;
});

it('sends no late message after it is closed', async () => {
  const received: unknown[] = [];
  const { relay, faults, send } = await givenRelay((message, response) => {
    received.push(message.headers['webhook-id']);
    response.writeHead(204).end();
  });
  const other = await givenRelay((_, response) => response.writeHead(204).end());
  for (const { add } of [faults, other.faults]) add({ fault: 'late_webhook', seconds: 2 });
  const sent = send().catch(() => 'refused');
  await expect.poll(() => faults.list()[0]?.hits).toBe(1);

  relay.close();

  expect(await sent).toBe('refused');
  // As late, and sent later.
  expect((await other.send()).status).toBe(204);
  expect(received).toEqual([]);
});

it('drops the messages that are late, held or on their way, and takes new ones when it resumes', async () => {
  const received: string[] = [];
  const { relay, faults, send } = await givenRelay((message, response) => {
    received.push(String(message.headers['webhook-id']));
    if (message.headers['webhook-id'] !== 'slow') response.writeHead(204).end();
  });
  faults.add({ fault: 'late_webhook', seconds: 10 });
  const late = send('late').catch(() => 'refused');
  await expect.poll(() => faults.list()[0]?.hits).toBe(1);
  faults.add({ fault: 'unordered_webhook' });
  await send('held');
  faults.add({ fault: 'doubled_webhook' });
  const slow = send('slow').catch(() => 'refused');
  await expect.poll(() => received).toEqual(['slow']);

  relay.drop();

  expect([await late, await slow, await send('repeated').catch(() => 'refused')]).toEqual(Array(3).fill('refused'));
  relay.resume();
  expect((await send('new')).status).toBe(204);
  expect(received).toEqual(['slow', 'new']);
});

it('a message that is held arrives when the faults are removed', async () => {
  const received: string[] = [];
  const { relay, faults, send } = await givenRelay((message, response) => {
    received.push(String(message.headers['webhook-id']));
    response.writeHead(204).end();
  });
  faults.add({ fault: 'unordered_webhook' });
  await send('held');
  expect(received).toEqual([]);

  relay.release();

  await expect.poll(() => received).toEqual(['held']);
  await send('next');
  expect(received).toEqual(['held', 'next']);
});
