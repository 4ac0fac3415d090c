import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, type Registry } from 'prom-client';
import type { Deprecation } from '../api/deprecation.ts';
import { findProcedure, type Procedure, procedures, subscriptions } from '../api/procedures.ts';
import type { Services } from '../api/services.ts';
import { clientVersionOf } from './observe.ts';

type Deprecated = Procedure & { deprecated: Deprecation };
const isDeprecated = (procedure: Procedure): procedure is Deprecated => procedure.deprecated !== undefined;

/** Tells callers of deprecated procedures when they end, and operators who still calls them. */
export function announceDeprecations(app: FastifyInstance, registry: Registry, { publicUrl = '' }: Services): void {
  const calls = new Counter({
    name: 'deckhand_deprecated_calls_total',
    help: 'Calls of deprecated procedures by API key, `session` or `none`. Each call of a batch counts.',
    labelNames: ['procedure', 'surface', 'caller'] as const,
    registers: [registry],
  });
  if (![...procedures, ...subscriptions].some(isDeprecated)) return;
  const keyLabel = firstOnes(MOST_KEYS);
  const isFirst = oncePerHour();

  // When the response begins: a stream may never end.
  app.addHook('onSend', (request, reply, _payload, done) => {
    const called = request.exchange?.called.filter(isDeprecated) ?? [];
    if (called.length > 0) announce(request, reply, called);
    done();
  });

  function announce(request: FastifyRequest, reply: FastifyReply, called: Deprecated[]): void {
    const surface = request.routeOptions.config.surface ?? 'rest';
    sendNotice(reply, called, (path) => `${publicUrl}${path}`, surface);

    const { id: user, key } = request.exchange?.caller ?? {};
    const caller = key ? keyLabel(String(key.id)) : user === undefined ? 'none' : 'session';
    for (const { name: procedure } of called) {
      calls.inc({ procedure, surface, caller });
      if (!isFirst(`${procedure} ${user} ${key?.id}`)) continue;
      const line = { procedure, user, key: key?.id, client: clientVersionOf(request) };
      request.log.warn(line, 'A deprecated procedure was called.');
    }
  }
}

const POLICY = '/docs/guides/versions';

/** Further keys are counted as `other`, since users can create any number of them one after the other. */
const MOST_KEYS = 100;

type Surface = 'rest' | 'rpc' | 'mcp';

/** In a batch, the earliest dates count. */
function sendNotice(reply: FastifyReply, called: Deprecated[], urlOf: (path: string) => string, surface: Surface) {
  const notices = called.map(({ deprecated }) => deprecated);
  const earliest = (days: string[]) => new Date(Math.min(...days.map((day) => Date.parse(day))));
  const since = earliest(notices.map((notice) => notice.since));
  const successors = new Set(notices.flatMap(({ use }) => (use === undefined ? [] : pathOf(use, surface))));
  reply.headers({
    Deprecation: `@${since.getTime() / 1000}`,
    Sunset: earliest(notices.map(({ sunset }) => sunset)).toUTCString(),
    Link: [
      `<${urlOf(POLICY)}>; rel="deprecation"; type="text/html"`,
      ...Array.from(successors, (path) => `<${urlOf(path)}>; rel="successor-version"`),
    ].join(', '),
  });
}

function pathOf(name: string, surface: Surface): string {
  const path = surface === 'rpc' ? undefined : findProcedure(name)?.rest?.path;
  return path === undefined ? `/trpc/${name}` : `/api${path}`;
}

/** Bounds the values of a label: the first `most` are kept, further ones become `other`. */
export function firstOnes(most: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.size < most) known.add(value);
    return known.has(value) ? value : 'other';
  };
}

const HOUR_MILLISECONDS = 3_600_000;

/** Whether a key comes for the first time in this hour; false for all beyond `most`. */
export function oncePerHour(most = 1000, now = () => performance.now()): (key: string) => boolean {
  const seen = new Set<string>();
  let end = now() + HOUR_MILLISECONDS;
  return (key) => {
    if (now() >= end) {
      seen.clear();
      end = now() + HOUR_MILLISECONDS;
    }
    if (seen.size >= most || seen.has(key)) return false;
    seen.add(key);
    return true;
  };
}
