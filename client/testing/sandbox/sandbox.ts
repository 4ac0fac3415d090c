import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import { makeTurns } from '../../events/turns.ts';
import { VERSION } from '../../version.ts';
import { type Clock, makeClock } from '../clock.ts';
import { startThread } from '../thread.ts';
import { answerControl, hostProblem, isControl, refusal, send } from './control.ts';
import type { Call, Description, SandboxControl } from './description.ts';
import { FAULTS, makeFaults } from './faults.ts';
import { checkWhole, oneOf, readFields, SandboxMisuse, timestampOf } from './misuse.ts';
import { makeProxy } from './proxy.ts';
import { allowedReceivers } from './receivers.ts';
import { startRelay, unref } from './relay.ts';
import { type SandboxPerson, type SandboxState, STATES } from './states.ts';

export type SandboxOptions = {
  /** 127.0.0.1 if not given, which only this machine reaches. */
  host?: string | undefined;
  /** A free one if not given. */
  port?: number | undefined;
  state?: SandboxState | undefined;
  /** Hosts that webhooks may call, such as `app:8080` or `app:*`. With a host that only this machine reaches, also this machine. */
  receivers?: string[] | undefined;
};

/** A Deckhand whose state, clock and faults any program can set over HTTP. */
export type Sandbox = SandboxControl & {
  url: string;
  clock: Clock;
  stop: () => Promise<void>;
  [Symbol.asyncDispose]: () => Promise<void>;
};

const WARNING =
  'A sandbox for tests: it forgets everything when it ends, and its passwords and keys are public. Never use it for real data.';
const MOST_CALLS = 100;

/** Starts a sandbox. It takes the package `deckhand`. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', port = 0, receivers = [] } = options;
  let state = oneOf(options.state ?? 'demo', STATE_NAMES, 'state');
  checkWhole(port, 0, 65_535, 'port');
  const { clock: inner, memory } = makeClock();
  const faults = makeFaults();
  const calls: Call[] = [];
  const counts = { calls: 0, webhooks: 0 };
  // The address has to be known before the service starts: calls wait until then.
  const ready = Promise.withResolvers<RequestListener>();
  const server = createServer({ keepAliveTimeout: 0 }, async (...call) => (await ready.promise)(...call));
  await listen(server, host, port);
  const url = addressOf(host, (server.address() as AddressInfo).port);
  const relay = await startRelay(faults, () => counts.webhooks++);
  const stopListening = () => {
    relay.close();
    server.close();
    server.closeAllConnections();
  };
  const settings = { PUBLIC_URL: url, WEBHOOK_ALLOWED_HOSTS: allowedReceivers(host, receivers).join(',') };
  const thread = await startThread({ clock: memory, settings, sandbox: { state, relay: relay.url } }).catch((error) => {
    stopListening();
    const [, problem] = /^.*?WEBHOOK_ALLOWED_HOSTS:? (.*)$/m.exec(error.message) ?? [];
    throw problem ? new SandboxMisuse(`receivers ${problem}`) : error;
  });
  const people = peopleByRole(thread.started.people);
  /** The address of the service. Calls wait for a reset that is under way. */
  let service = Promise.resolve(thread.started.url);
  const proxy = makeProxy(
    () => service,
    faults,
    (call) => {
      counts.calls++;
      calls.push(call);
      calls.splice(0, calls.length - MOST_CALLS);
    },
  );

  const clearFaults = () => {
    faults.clear();
    relay.release();
  };
  const resetNow = async (input: object) => {
    const given = readFields(input, ['state', 'clock'], 'reset');
    const next = oneOf(given.state ?? state, STATE_NAMES, 'state');
    if (given.clock === undefined) inner.reset();
    else inner.set(timestampOf(given.clock, 'clock'));
    faults.clear();
    relay.drop();
    proxy.cut();
    service = thread.ask({ reset: next }).then((address = '') => address);
    await service.finally(relay.resume);
    state = next;
    calls.splice(0);
    Object.assign(counts, { calls: 0, webhooks: 0 });
  };
  // Two resets at once would insert the same rows; one under way would remove a fault, or its event alone.
  const inTurn = makeTurns();
  const control: SandboxControl = {
    reset: (input = {}) => inTurn('reset', () => resetNow(input)),
    addFault: (input) =>
      inTurn('reset', async () => {
        const { fault } = faults.add(input);
        if (fault === 'newer_version') await thread.ask({ writeLaterEvent: true });
      }),
    clearFaults,
    describe: () => ({
      ...{ warning: WARNING, url, version: VERSION, state, states: STATES, clock: { now: inner.now() }, project_id: 1 },
      ...{ people, faults: faults.list(), known_faults: FAULTS, counts, calls },
    }),
  };
  const clock = noticeSetBack(inner, () => thread.ask({ wakeWebhooks: true }).catch(() => undefined));
  const setClock = (input: unknown) => moveClock(clock, input);
  ready.resolve((received, response) => {
    const problem = hostProblem(received.headers, host);
    if (problem) send(response, 403, refusal(problem));
    else if (isControl(received)) void answerControl({ ...control, setClock }, received, response);
    else proxy.pass(received, response);
  });
  const stop = async () => {
    stopListening();
    proxy.cut();
    await thread.stop();
  };
  unref(server);
  return { url, clock, ...control, stop, [Symbol.asyncDispose]: stop };
}

/** The same clock, which tells when it was set back. */
function noticeSetBack(clock: Clock, tell: () => unknown): Clock {
  const noticing = (move: () => void) => {
    const before = clock.now();
    move();
    if (clock.now() < before) tell();
  };
  return {
    ...clock,
    set: (timestamp) => noticing(() => clock.set(timestamp)),
    advance: (by) => noticing(() => clock.advance(by)),
    reset: () => noticing(clock.reset),
  };
}

const STATE_NAMES = Object.keys(STATES) as SandboxState[];

const peopleByRole = (people: SandboxPerson[] = []) =>
  Object.fromEntries(people.map((person) => [person.role, person])) as Description['people'];

function moveClock(clock: Clock, input: unknown): void {
  const given = readFields(input, ['set', 'advance', 'reset'], 'clock');
  const { set, advance, reset } = given;
  if (Object.keys(given).length !== 1) throw new SandboxMisuse(CLOCK_FORM);
  if (set !== undefined) clock.set(timestampOf(set, 'set'));
  else if (typeof advance === 'object' && advance !== null) clock.advance(advance);
  else if (reset === true) clock.reset();
  else throw new SandboxMisuse(CLOCK_FORM);
}

const CLOCK_FORM = 'clock takes one of {"set": "2026-01-31T09:30:00Z"}, {"advance": {"days": 1}} and {"reset": true}.';

const addressOf = (host: string, port: number) => {
  if (['0.0.0.0', '::'].includes(host)) return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
};

const listen = (server: Server, host: string, port: number) =>
  new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
