import { startService } from '../harness/process.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';
import { findViolations } from './check.ts';
import { deliveryViolations, register } from './deliveries.ts';
import { startLoad } from './load.ts';
import { type Outcome, type Place, stopNode, withRemoval } from './outcome.ts';
import { makeWorld } from './world.ts';

/** `kill -9` of the service under load, followed by a restart on the same data. A receiver gets the events of all that. */
export const killService = async (place: Place, rounds: number): Promise<Outcome> =>
  withRemoval(await givenWebhookReceiver(), (receiver) => killServing(place, rounds, receiver));

async function killServing(place: Place, rounds: number, receiver: WebhookReceiver): Promise<Outcome> {
  const settings = { ...place.settings, WEBHOOK_ALLOWED_HOSTS: receiver.host };
  const world = await makeWorld(settings);
  let service = await startService(settings);
  const expected = await register(receiver, service.url, world.superadmin);
  const target = { urls: [service.url] };
  const load = startLoad(world, target, { clients: 8, hasTemplates: true });
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    // At a different moment each time.
    await load.acknowledged(50 + ((round * 37) % 100));
    await service.stop('SIGKILL');

    const begun = performance.now();
    service = await startService(settings);
    target.urls = [service.url];
    await load.acknowledged(1);
    times.push(performance.now() - begun);
  }
  const sent = await load.stop();
  const undelivered = await deliveryViolations(service.url, world.superadmin, receiver, expected);
  const { violations } = await stopNode(service);
  return {
    fault: `kill -9 of the service, ${place.name}`,
    rounds,
    sent,
    violations: [...violations, ...undelivered, ...(await findViolations(settings, sent))],
    times,
  };
}

/** SIGTERM while every client is using a connection: no request is cut off or answered with 5xx. */
export async function stopService(place: Place, rounds: number, clients: number): Promise<Outcome> {
  const world = await makeWorld(place.settings);
  const outcome: Outcome = {
    fault: `SIGTERM under ${clients} clients, ${place.name}`,
    rounds,
    sent: [],
    violations: [],
    times: [],
  };
  for (let round = 0; round < rounds; round++) {
    const service = await startService(place.settings);
    const load = startLoad(world, { urls: [service.url] }, { clients, endsWhenRefused: true });
    await load.acknowledged(3 * clients + round);
    const asked = performance.now();

    const { milliseconds, violations } = await stopNode(service);
    const sent = await load.stop();
    outcome.times.push(milliseconds);
    outcome.sent.push(...sent);
    outcome.violations.push(...violations, ...cutRequests(sent, asked));
  }
  outcome.violations.push(...(await findViolations(place.settings, outcome.sent)));
  return outcome;
}

const cutRequests = (sent: Awaited<ReturnType<ReturnType<typeof startLoad>['stop']>>, asked: number) =>
  sent
    .filter(({ outcome, status = 0 }) => status >= 500 || outcome === 'lost')
    .map(
      ({ surface, operation, status, code, sentAt, milliseconds }) =>
        `${surface} ${operation} sent ${Math.round(sentAt - asked)} ms after SIGTERM: ${status ?? code} after ${Math.round(milliseconds)} ms`,
    );
