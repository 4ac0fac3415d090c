import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createClient } from '../../client/client.ts';
import { traceStatement } from '../../server/database/statementSpan.ts';
import { continueIn, type Span, setTracer } from '../../server/runtime/tracing.ts';
import { errorOf, success } from '../harness/client.ts';
import { childrenOf, givenCollector } from '../harness/collector.ts';
import { givenDemoSettings, removeProcesses, signIn, startService } from '../harness/process.ts';

afterAll(removeProcesses);

let database: Record<string, string>;
beforeAll(async () => {
  database = await givenDemoSettings();
});
const start = (settings: Record<string, string>) => startService({ ...database, ...settings });

/** Prints who imports or requires OpenTelemetry. */
const WATCH = `import { registerHooks } from 'node:module';
registerHooks({ resolve: (name, context, next) => {
  if (name.startsWith('@opentelemetry/')) console.log('LOADED ' + name + ' BY ' + context.parentURL);
  return next(name, context);
} });`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(WATCH)}`;

describe('OpenTelemetry', () => {
  it.each<Record<string, string>>([
    {},
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', OTEL_TRACES_EXPORTER: 'none' },
  ])('is not loaded with %j', async (settings) => {
    const { url, stop } = await start({ ...settings, NODE_OPTIONS });
    await (await signIn(url)).rpc.boards.list.query();
    const { stdout } = await stop();

    // prom-client loads the interface by itself, without an implementation.
    const loaded = stdout.split('\n').filter((line) => line.startsWith('LOADED '));
    expect(loaded.filter((line) => !line.startsWith('LOADED @opentelemetry/api '))).toEqual([]);
  });

  it('sends spans with the settings of the environment, also those of the last calls before it stops', async () => {
    const collector = await givenCollector();
    const { url, stop } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=hunter2',
      OTEL_SERVICE_NAME: 'boards',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      NODE_OPTIONS,
    });
    await (await signIn(url)).rpc.boards.list.query();
    const { code, stdout } = await stop();
    await collector.close();

    expect(code).toBe(0);
    expect(stdout).toContain('LOADED @opentelemetry/sdk-trace ');
    expect(collector.received[0]).toMatchObject({ path: '/v1/traces', headers: { 'api-key': 'hunter2' } });
    expect(collector.resource()).toMatchObject({
      'service.name': 'boards',
      'service.version': expect.any(String),
      'deployment.environment.name': 'test',
    });
    const spans = collector.spans();
    const called = spans
      .filter(({ kind }) => kind === 'server')
      .map(({ attributes }) => attributes['deckhand.operation']);
    expect(called).toEqual(['auth.authenticate', 'boards.list']);
    const [call] = spans.filter(({ name }) => name === 'boards.list');
    expect(childrenOf(spans, call!).map(({ kind }) => kind)).toContain('client');
  });

  it('uses the address for traces as it is', async () => {
    const collector = await givenCollector();
    const { url, stop } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own`,
    });
    await signIn(url);
    await stop();
    await collector.close();

    expect(collector.received[0]!.path).toBe('/own');
    expect(collector.resource()).toMatchObject({ 'service.name': 'deckhand' });
  });

  it('stops in time with a collector that never answers', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await vi.waitFor(() => expect(silent.listening).toBe(true));
    const { port } = silent.address() as AddressInfo;
    const { url, stop } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` });
    const caller = await signIn(url);

    expect(await caller.rpc.boards.list.query()).toHaveProperty('boards');
    expect(await stop()).toMatchObject({ code: 0, stderr: '' });
    silent.closeAllConnections();
    silent.close();
  });

  it('loses spans without a collector, and says so once', async () => {
    const { url, printed, stop } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
    });
    const { rpc } = await signIn(url);

    expect(await rpc.boards.list.query()).toHaveProperty('boards');
    await vi.waitFor(() => expect(printed()).toContain('Traces are lost'));
    await rpc.boards.list.query();
    const { code, stdout, stderr } = await stop();

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.match(/Traces are lost: the collector can't be used \(ECONNREFUSED /g)).toHaveLength(1);
  });
});

describe('the span of a statement', () => {
  afterEach(() => setTracer(undefined));

  /** Its name, and its text. */
  async function describedBy(text: string) {
    const started: unknown[][] = [];
    const span: Span = { traceId: '1', isRecorded: true, set: () => {}, fail: () => {}, end: () => {} };
    setTracer({
      start: (name, { attributes }) => {
        started.push([name, attributes!['db.operation.name'], attributes!['db.query.text']]);
        return span;
      },
    });
    await new Promise<void>((resolve) => continueIn(span, () => void traceStatement(text, async () => resolve())));
    return started[0];
  }

  it.each([
    ['select 1', 'SELECT', 'SELECT', 'select ?'],
    [
      '/* short timeout */ select * from "users" where id = $1',
      'SELECT users',
      'SELECT',
      'select * from "users" where id = $1',
    ],
    [
      "update cards set title = 'it''s 12' where id = 4.5",
      'UPDATE cards',
      'UPDATE',
      'update cards set title = ? where id = ?',
    ],
    [
      'select id from cards where id = $12 for update',
      'SELECT cards',
      'SELECT',
      'select id from cards where id = $12 for update',
    ],
    [
      'insert into a (b1)\n  values ($1) on conflict (b1) do update set b1 = $2',
      'INSERT a',
      'INSERT',
      'insert into a (b1) values ($1) on conflict (b1) do update set b1 = $2',
    ],
    [
      'with gone as (delete from a returning id) update b set c = 1',
      'DELETE a UPDATE b',
      'DELETE',
      'with gone as (delete from a returning id) update b set c = ?',
    ],
    [
      'with found as (select id from cards) select * from found',
      'SELECT cards',
      'SELECT',
      'with found as (select id from cards) select * from found',
    ],
    ['select (select count(*) from b) from a', 'SELECT a', 'SELECT', 'select (select count(*) from b) from a'],
    ['begin', 'BEGIN', 'BEGIN', 'begin'],
  ])('%j is named by what it does and has no values', async (text, ...expected) => {
    expect(await describedBy(text)).toEqual(expected);
  });
});

describe('a client', () => {
  const API = Symbol.for('opentelemetry.js.api.1');
  const global = globalThis as { [name: symbol]: unknown };
  const before = global[API];
  afterEach(() => {
    global[API] = before;
  });

  /** Calls the service; returns the headers of the request. */
  async function headersOf(traceparent?: () => string | undefined, run = (call: () => Promise<unknown>) => call()) {
    let sent = new Headers();
    const client = createClient({
      url: 'http://service.test',
      traceparent,
      fetch: async (_address, request) => {
        sent = new Headers(request!.headers);
        return success({ boards: [] })();
      },
    });
    await run(() => client.boards.list.query());
    return Object.fromEntries([...sent].filter(([name]) => /trace|baggage/.test(name)));
  }

  /** As `@opentelemetry/api` stores what a program registers. */
  function givenOpenTelemetry() {
    const active = new AsyncLocalStorage<string>();
    global[API] = {
      version: '1.10.0',
      context: { active: () => active.getStore() },
      propagation: {
        inject: (
          context: unknown,
          carrier: object,
          { set }: { set: (to: object, name: string, value: string) => void },
        ) => {
          if (context) set(carrier, 'traceparent', `00-${context}-01`);
          set(carrier, 'tracestate', 'vendor=1');
          set(carrier, 'baggage', 'secret=1');
        },
      },
    };
    return active;
  }

  it('sends no trace by default', async () => {
    global[API] = undefined;

    expect(await headersOf()).toEqual({});
  });

  it('sends the trace that the option returns', async () => {
    expect(await headersOf(() => '00-a-b-01')).toEqual({ traceparent: '00-a-b-01' });
  });

  it('sends the active span if OpenTelemetry is loaded, unless the option says otherwise', async () => {
    const active = givenOpenTelemetry();
    const inSpan = (call: () => Promise<unknown>) => active.run('active', call);

    expect(await headersOf(undefined, inSpan)).toEqual({ traceparent: '00-active-01', tracestate: 'vendor=1' });
    expect(await headersOf(() => undefined, inSpan)).toEqual({});
  });

  it('calls without a trace if OpenTelemetry fails', async () => {
    givenOpenTelemetry();
    global[API] = { context: { active: () => expect.unreachable() }, propagation: { inject: () => undefined } };

    expect(await headersOf()).toEqual({});
  });

  it('throws an error that names the option if it fails', async () => {
    const failing = () => {
      throw new Error('no trace');
    };

    expect(await errorOf(headersOf(failing))).toMatchObject({ status: undefined, cause: { message: 'no trace' } });
  });
});
