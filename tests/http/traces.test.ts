import { once } from 'node:events';
import { request } from 'node:http';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import type { Services } from '../../server/api/services.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { startTracing } from '../../server/runtime/traceExport.ts';
import { refusalOf } from '../harness/caller.ts';
import { childrenOf, givenCollector } from '../harness/collector.ts';
import { patientQueues } from '../harness/patientQueue.ts';
import { givenService, type TestService, testService } from '../harness/service.ts';
import { givenCard, givenTag, givenWorld, testDb } from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/comments/create';
const TAGS = '/services/operations/v1/operations/tags/list';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE}-${CALLER}-01`;

const MALFORMED = [
  'nonsense',
  '',
  `00-${'0'.repeat(32)}-${CALLER}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `ff-${TRACE}-${CALLER}-01`,
  `00-${TRACE}-${CALLER}-01-more`,
  `00-${TRACE.toUpperCase()}-${CALLER}-01`,
  `${TRACEPARENT}, 00-${'1'.repeat(32)}-${CALLER}-01`,
];

/** Serves with traces, and returns the spans of the work. */
async function spansOf(
  work: (service: TestService) => Promise<unknown>,
  settings: Record<string, string> = {},
  others: Partial<Services> = {},
) {
  const collector = await givenCollector();
  const service = await givenTracedService(collector.url, settings, others);
  try {
    await work(service);
  } finally {
    await service.app.close();
    await service.tracing.stop();
    await collector.close();
  }
  const spans = collector.spans();
  return { spans, logged: service.logged, requests: spans.filter(({ kind }) => kind === 'server') };
}

async function givenTracedService(url: string, settings: Record<string, string> = {}, others: Partial<Services> = {}) {
  const logged: string[] = [];
  const note = (text: unknown) => void logged.push(String(text));
  const log = { debug: note, info: note, warn: note, error: note };
  const tracing = startTracing(readSettings(settings), url, log);
  return { ...(await givenService({}, others)), tracing, collectorLog: logged };
}

describe('a REST call', () => {
  it('has a span with its statements below', async () => {
    const { spans, requests } = await spansOf(async (service) => {
      const { asMember, project } = await givenWorld(service);
      const id = await givenCard(project);
      await asMember.post(`${CREATE}?password=hunter2`, { card_id: id, comment: 'hunter2' });
    });

    expect(requests).toMatchObject([
      {
        name: `POST /api${CREATE}`,
        isError: false,
        attributes: {
          'http.request.method': 'POST',
          'http.route': `/api${CREATE}`,
          'url.path': `/api${CREATE}`,
          'url.scheme': 'http',
          'http.response.status_code': 201,
          'deckhand.operation': 'comments.create',
        },
      },
    ]);
    expect(requests[0]!.parentSpanId).toBeUndefined();
    const statements = childrenOf(spans, requests[0]!);
    expect(statements).toHaveLength(spans.length - 1);
    expect(statements.map(({ name }) => name)).toContain('INSERT comments INSERT events');
    for (const { kind, name, attributes } of statements) {
      expect({ kind, attributes }).toMatchObject({
        kind: 'client',
        attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name, 'db.query.text': expect.any(String) },
      });
    }
    expect(JSON.stringify(spans)).not.toContain('hunter2');
  });

  it('has the statements of a transaction below, too', async () => {
    const { spans, requests } = await spansOf(async (service) => {
      const { asMember, project } = await givenWorld(service);
      const id = await givenTag(project);
      expect(await asMember.post('/services/operations/v1/operations/tags/delete', { id })).toMatchObject({
        status: 200,
      });
    });

    const [, ...names] = childrenOf(spans, requests[0]!).map(({ name }) => name);
    expect(names).toEqual([
      'SELECT tags',
      'BEGIN',
      'SELECT projects',
      'SELECT tags',
      'UPDATE cards',
      'UPDATE tags INSERT events INSERT deletions',
      'COMMIT',
    ]);
  });

  it('has its statements below if its body comes later', async () => {
    const { spans, requests } = await spansOf(async (service) => {
      const { asMember, project } = await givenWorld(service);
      const id = await givenCard(project);
      const headers = { authorization: `Bearer ${asMember.token}`, 'content-type': 'application/json' };
      const sending = request(`${service.url}/api${CREATE}`, { method: 'POST', headers });
      const arrived = once(service.app.server, 'request');
      sending.flushHeaders();
      await arrived;
      sending.end(JSON.stringify({ card_id: id, comment: 'Late' }));
      const [answer] = await once(sending, 'response');
      await once(answer.resume(), 'end');
    });

    expect(requests).toMatchObject([{ attributes: { 'http.response.status_code': 201 } }]);
    expect(childrenOf(spans, requests[0]!).map(({ name }) => name)).toContain('INSERT comments INSERT events');
  });

  it('400 and 401 are no errors of the service, and have their reasons', async () => {
    const { requests } = await spansOf(async (service) => {
      const { asMember, asNobody } = await givenWorld(service);
      await asMember.post(CREATE, 'no JSON');
      await asNobody.post(CREATE, {});
      await asMember.post('/unknown');
    });

    expect(requests.map(({ name, isError, attributes }) => [name, isError, attributes['deckhand.reason']])).toEqual([
      [`POST /api${CREATE}`, false, 'body_not_json'],
      [`POST /api${CREATE}`, false, 'not_signed_in'],
      ['POST', false, 'unknown_path'],
    ]);
  });

  it('500 is an error, as is its statement, without the message', async () => {
    const findCaller = async () => {
      await query(await testDb(), sql`select 'hunter2'::int`);
      return undefined;
    };
    const { spans, requests } = await spansOf(
      async (service) => (await givenWorld(service)).asMember.post(CREATE, {}),
      {},
      { findCaller },
    );

    expect(requests).toMatchObject([
      { isError: true, attributes: { 'http.response.status_code': 500, 'error.type': '500' } },
    ]);
    expect(childrenOf(spans, requests[0]!)).toMatchObject([
      { isError: true, attributes: { 'error.type': '22P02', 'db.query.text': 'select ?::int' } },
    ]);
    expect(JSON.stringify(spans)).not.toContain('hunter2');
  });
});

describe('calls at the same time', () => {
  it('have their own statements below, also those that wait in the queue', async () => {
    const CALLS = 20;
    const work = async (service: TestService) => {
      const { asMember } = await givenWorld(service);
      const answers = await Promise.all(Array.from({ length: CALLS }, () => asMember.post(TAGS)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    };
    const { spans, requests } = await spansOf(work, {}, await patientQueues());

    expect(requests).toHaveLength(CALLS);
    // Without those of a new connection, which name no table.
    const ofTables = ({ name }: { name: string }) => name.includes(' ');
    const statements = requests.map((request) => childrenOf(spans, request).filter(ofTables));
    const names = statements.map((spans) => spans.map(({ name }) => name).join());
    expect([...new Set(names)]).toEqual(['SELECT sessions,SELECT tags']);
  });
});

describe('an RPC batch', () => {
  it('has a span for each call, with its statements below', async () => {
    const { spans, requests } = await spansOf(async (service) => {
      const { asMember } = await givenWorld(service);
      const { rpc } = asMember;
      await Promise.all([
        rpc.boards.list.query(),
        rpc.tags.list.query({}),
        refusalOf(rpc.cards.get.query({ id: 1e9 })),
      ]);
    });

    expect(requests).toMatchObject([
      { name: 'POST /trpc/*', attributes: { 'deckhand.operation': 'batch', 'http.response.status_code': 207 } },
    ]);
    const calls = childrenOf(spans, requests[0]!).filter(({ kind }) => kind === 'internal');
    expect(calls.map(({ name, attributes, isError }) => ({ name, isError, ...attributes }))).toEqual(
      expect.arrayContaining([
        { name: 'boards.list', isError: false, 'deckhand.status': 200 },
        { name: 'tags.list', isError: false, 'deckhand.status': 200 },
        { name: 'cards.get', isError: false, 'deckhand.status': 404, 'deckhand.reason': 'not_found' },
      ]),
    );
    for (const call of calls) expect(childrenOf(spans, call).map(({ kind }) => kind)).toContain('client');
  });

  it('404 for an unknown procedure, whose name is not the name of a span', async () => {
    const { spans } = await spansOf(({ url }) => fetch(`${url}/trpc/no.such?password=hunter2`));

    expect(spans.map(({ name }) => name)).toEqual(['unknown procedure', 'GET /trpc/*']);
  });
});

describe('a call of an assistant', () => {
  it('has a span with its operation and the reason of its refusal, and its statements below', async () => {
    const { spans, requests } = await spansOf(async (service) => {
      const { asMember } = await givenWorld(service);
      await asMember.tool('cards_get', { id: 2_147_483_647 });
    });

    expect(requests).toMatchObject([
      { name: 'POST /mcp', attributes: { 'deckhand.operation': 'cards.get', 'deckhand.reason': 'not_found' } },
    ]);
    expect(childrenOf(spans, requests[0]!).length).toBeGreaterThan(1);
  });
});

describe('the trace of the caller', () => {
  it('continues in the spans and in the log', async () => {
    const { requests, logged } = await spansOf(async (service) => {
      const { asMember } = await givenWorld(service);
      await asMember.post(CREATE, {}, { traceparent: TRACEPARENT, tracestate: 'vendor=1' });
    });

    expect(requests).toMatchObject([{ traceId: TRACE, parentSpanId: CALLER, traceState: 'vendor=1' }]);
    expect(logged.at(-1)).toMatchObject({ msg: 'answered', trace_id: TRACE });
  });

  it.each(MALFORMED)('is ignored if malformed: %j', async (traceparent) => {
    const { requests, logged } = await spansOf(({ url }) =>
      fetch(`${url}/trpc/boards.list`, { headers: { traceparent } }),
    );

    expect(requests[0]!.parentSpanId).toBeUndefined();
    expect(logged.at(-1)).toMatchObject({ trace_id: requests[0]!.traceId });
    expect(requests[0]!.traceId).not.toBe(TRACE);
  });

  it('is read from the last header if an instrumented fetch repeats it, and in later versions', async () => {
    const nearest = `01-${TRACE}-00f067aa0ba902b7-01-more`;

    const { requests } = await spansOf(({ url }) =>
      fetch(`${url}/trpc/boards.list`, { headers: { traceparent: `${TRACEPARENT}, ${nearest}` } }),
    );

    expect(requests).toMatchObject([{ traceId: TRACE, parentSpanId: '00f067aa0ba902b7' }]);
  });

  it('is in the log without a collector, too', async () => {
    const { url, logged } = await testService();

    await fetch(`${url}/trpc/boards.list`, { headers: { traceparent: TRACEPARENT, 'x-request-id': 'with-trace' } });
    for (const traceparent of MALFORMED) {
      await fetch(`${url}/trpc/boards.list`, { headers: { traceparent, 'x-request-id': 'without-trace' } });
    }

    expect(logged.find(({ reqId }) => reqId === 'with-trace')).toHaveProperty('trace_id', TRACE);
    const others = logged.filter(({ reqId }) => reqId === 'without-trace');
    expect(others).toHaveLength(MALFORMED.length);
    expect(others.filter((line) => 'trace_id' in line)).toEqual([]);
  });

  it('is sent by the client', async () => {
    const { requests } = await spansOf(async (service) => {
      const { asMember } = await givenWorld(service);
      const client = createClient({ url: service.url, token: asMember.token, traceparent: () => TRACEPARENT });
      await client.boards.list.query();
    });

    expect(requests).toMatchObject([{ traceId: TRACE, parentSpanId: CALLER }]);
  });
});

describe('the sampler', () => {
  it.each([
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, 0],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, 1],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, 0],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, 0],
    [{}, 0],
  ])('%j decides about a call that its caller does not sample', async (settings, expected) => {
    const headers = { traceparent: `00-${TRACE}-${CALLER}-00` };

    const { requests, logged } = await spansOf(({ url }) => fetch(`${url}/trpc/boards.list`, { headers }), settings);

    expect(requests).toHaveLength(expected);
    expect(logged.at(-1)).toMatchObject({ trace_id: TRACE });
  });
});

describe('a collector that fails', () => {
  it('is logged once, and requests are answered', async () => {
    const collector = await givenCollector(400);
    const { url, app, tracing, collectorLog } = await givenTracedService(collector.url);

    const statuses = [];
    // More than two batches of 512 spans.
    for (let round = 0; round < 15; round++) {
      const path = `/trpc/${Array(50).fill('boards.list').join()}?batch=1`;
      statuses.push((await fetch(url + path)).status);
    }
    await app.close();
    await tracing.stop();
    await collector.close();

    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(collector.received.length).toBeGreaterThan(1);
    expect(collectorLog).toEqual(["Traces are lost: the collector can't be used (400 Bad Request)."]);
  });
});

describe('work without a request', () => {
  it('has no spans', async () => {
    const { spans } = await spansOf(async ({ url }) => {
      await query(await testDb(), sql`select 1`);
      await fetch(`${url}/health/ready`);
    });

    expect(spans).toEqual([]);
  });
});
