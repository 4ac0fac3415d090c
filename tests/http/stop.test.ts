import { once } from 'node:events';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { givenService } from '../harness/service.ts';
import { givenTrial, givenWorld } from '../harness/world.ts';

const LIST = '/api/services/operations/v1/operations/boards/list';
const UPGRADE = '/api/services/platforms/v1/subscriptions/upgrade-trial';

async function givenStoppableService() {
  const service = await givenService();
  const world = await givenWorld(service);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const begin = (path: string, token = world.asOwner.token) =>
    request(service.url + path, {
      agent,
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
  return { ...service, world, begin };
}

async function runCommandLine(call: ClientRequest) {
  const [response] = (await once(call, 'response')) as [IncomingMessage];
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { status: response.statusCode, connection: response.headers.connection, body: JSON.parse(text) };
}

const isRefused = async (url: string) => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  return once(socket, 'connect').then(
    () => {
      socket.destroy();
      return false;
    },
    () => true,
  );
};

describe('a service that stops', () => {
  it('completes requests in flight, then closes the connection and refuses new ones', async () => {
    const { app, url, world, begin } = await givenStoppableService();
    const { product } = await givenTrial(world.project);
    const call = begin(UPGRADE);
    call.write('{"plan": ');
    await once(app.server, 'request');

    const drained = app.drain(10_000);
    call.end(`"pro", "period": "month", "product": "${product}"}`);
    const answer = await runCommandLine(call);
    await drained;

    expect(answer).toMatchObject({ status: 200, connection: 'close' });
    expect(answer.body.data.checkout_url).toMatch(new RegExp(`^${url}/checkout/`));
    expect(await isRefused(url)).toBe(true);
  });

  it('serves a request on a keep-alive connection, and closes it after the answer', async () => {
    const { app, url, begin } = await givenStoppableService();
    const first = begin(LIST);
    first.end();
    expect(await runCommandLine(first)).toMatchObject({ status: 200, connection: 'keep-alive' });

    const drained = app.drain(10_000);
    const second = begin(LIST);
    second.end();

    expect(await runCommandLine(second)).toMatchObject({ status: 200, connection: 'close' });
    expect(second.reusedSocket).toBe(true);
    await drained;
    expect(await isRefused(url)).toBe(true);
  });

  it('is not held up by a connection that is kept alive', async () => {
    const { app, begin } = await givenStoppableService();
    const call = begin(LIST);
    call.end();
    expect(await runCommandLine(call)).toMatchObject({ status: 200, connection: 'keep-alive' });

    // Longer than the test may take.
    expect(await app.drain(600_000)).toBe(true);
  });

  it('cuts off unfinished requests at the time limit, and logs how many', async () => {
    const { app, begin, logged } = await givenStoppableService();
    const call = begin(LIST);
    call.write('{');
    await once(app.server, 'request');
    call.on('error', () => undefined).on('response', (response) => response.resume());

    await app.drain(200);

    await expect.poll(() => call.destroyed).toBe(true);
    expect(logged.filter(({ level }) => level === 40)).toMatchObject([
      { requests: 1, msg: 'Unfinished requests were cut off.' },
    ]);
  });
});
