import { createServer, type IncomingHttpHeaders, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { makeFaults } from '../../client/testing/sandbox/faults.ts';
import { makeProxy } from '../../client/testing/sandbox/proxy.ts';
import { uncheckedFetch } from '../harness/checkAnswers.ts';

const opened: { close: () => void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push({ close: () => server.close().closeAllConnections() });
  return (server.address() as AddressInfo).port;
}

async function givenProxy(answer: RequestListener) {
  const service = `http://127.0.0.1:${await listen(answer)}`;
  const faults = makeFaults();
  const proxy = makeProxy(
    async () => service,
    faults,
    () => undefined,
  );
  const port = await listen(proxy.pass);
  return { faults, port, cut: proxy.cut, fetch: () => uncheckedFetch()(`http://127.0.0.1:${port}/`) };
}

const send = (port: number, method: string, path: string) =>
  new Promise<{ status: number | undefined; headers: IncomingHttpHeaders }>((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, method, path }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode, headers: answer.headers });
    });
    call.on('error', reject).end();
  });

it('all calls go to the service, also if the path looks like a name and another host', async () => {
  const elsewhere: (string | undefined)[] = [];
  const other = await listen(({ url }, response) => {
    elsewhere.push(url);
    response.end();
  });
  const paths: (string | undefined)[] = [];
  const { port } = await givenProxy(({ url }, response) => {
    paths.push(url);
    response.writeHead(404).end();
  });

  const { status } = await send(port, 'GET', `*@127.0.0.1:${other}/x.txt`);

  expect([status, paths, elsewhere]).toEqual([404, [`*@127.0.0.1:${other}/x.txt`], []]);
});

describe('of a stream', () => {
  const givenStream = () =>
    givenProxy((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
    });

  it('lost_answer closes the connection before the headers', async () => {
    const { faults, fetch } = await givenStream();
    faults.add({ fault: 'lost_answer' });

    await expect(fetch()).rejects.toThrow('fetch failed');
  });

  it('cut_answer closes the connection after the first data', async () => {
    const { faults, fetch } = await givenStream();
    faults.add({ fault: 'cut_answer' });

    const { status, body } = await fetch();
    const reader = body!.getReader();

    expect([status, Buffer.from((await reader.read()).value!).toString()]).toEqual([200, 'data: 1\n\n']);
    await expect(reader.read()).rejects.toThrow('terminated');
  });

  it('late_answer sends the headers after the time', async () => {
    const { faults, fetch } = await givenStream();
    faults.add({ fault: 'late_answer', seconds: 0.3 });
    const begun = performance.now();

    const { status, body } = await fetch();

    expect(status).toBe(200);
    expect(performance.now() - begun).toBeGreaterThan(290);
    await body!.cancel();
  });
});

it.each(['late_answer', undefined] as const)(
  '502 that names the reset, for a call with %s when it begins',
  async (fault) => {
    const arrived = Promise.withResolvers<void>();
    const { faults, cut, fetch } = await givenProxy((_, response) => {
      if (fault) response.end('done');
      arrived.resolve();
    });
    if (fault) faults.add({ fault, seconds: 10 });

    const answer = fetch();
    await arrived.promise;
    cut();

    expect([(await answer).status, await (await answer).json()]).toEqual([
      502,
      {
        error: true,
        message:
          'The sandbox has no answer: a reset ended this call. Wait for the answer of the reset before you call.',
      },
    ]);
  },
);

it('newer_version counts its hits, and keeps the length of an answer to HEAD', async () => {
  const { faults, port, fetch } = await givenProxy((_, response) =>
    response.writeHead(200, { 'content-length': 5 }).end('12345'),
  );
  faults.add({ fault: 'newer_version' });

  const { headers } = await send(port, 'HEAD', '/');

  expect(headers['content-length']).toBe('5');
  expect(await (await fetch()).text()).toBe('12345');
  expect(faults.list()).toMatchObject([{ hits: 2 }]);
});

it('has at most 1,000 faults, since every description lists them', () => {
  const faults = makeFaults();
  for (let count = 0; count < 1000; count++) faults.add({ fault: 'lost_answer' });

  expect(() => faults.add({ fault: 'lost_answer' })).toThrow('There are 1000 faults. Remove them first.');
});
