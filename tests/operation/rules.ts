import { expect } from 'vitest';
import type { Procedure } from '../../server/api/procedures.ts';
import { appRouter } from '../../server/api/routers/app.ts';
import type { Meta } from '../../server/api/trpc.ts';
import { comparable as hideNew } from '../../server/contract/outcome.ts';
import { document } from '../../server/contract/violations.ts';
import type { EventRow } from '../../server/domain/event/feed.ts';
import { EventData, type EventType } from '../../shared/event.ts';
import type { Contents } from '../harness/contents.ts';
import { uncountedChanges } from '../harness/effects.ts';
import { tokens } from '../harness/service.ts';
import { startStates } from '../harness/startStates.ts';
import { hasResult, type OperationRecord, type Recorded } from './record.ts';
import { inShort, WRITTEN } from './writtenEvents.ts';

/** What holds for every operation, each rule as a function of what was recorded of it. */
export const RULES: Record<string, (record: OperationRecord) => void> = {
  'writes and answers the same on all surfaces'({ procedure, surfaces }) {
    for (const [rest, rpc, mcp] of surfaces.map((called) => called.map(compared))) {
      if (hasResult(procedure)) expect(rest!.outcome).toHaveProperty('data');
      expect(rpc).toEqual(rest);
      if (mcp) expect(mcp).toEqual(withoutNullContents(rest));
    }
  },

  'changes no row without an event that its router names'({ procedure, userId, keyed }) {
    if (!keyed || isMailOnly(procedure)) return;
    const { status, headers, before, after, events } = keyed.first;
    expect(status).toBe(procedure.rest!.status);
    expect(uncountedChanges(before, after, events)).toEqual([]);
    expect(events).not.toEqual([]);
    // It keeps nothing of who calls it.
    const request_id = procedure.name === 'account.erase' ? null : headers.get('x-request-id');
    const key_id = procedure.access === 'key' ? expect.any(Number) : null;
    for (const event of events) {
      expectDeclared(procedure, event);
      expect(event).toMatchObject({ user_id: userId, key_id, surface: 'rest', request_id });
    }
    const written = WRITTEN[procedure.name];
    // A new operation needs no row there: its events are those that its router names.
    if (!written) expect(events.map(({ type }) => type)).toEqual(declaredBy(procedure));
    else expect(events.map((event, at) => inShort(event, written[at]))).toEqual(written);
  },

  'writes events of its surface, also over RPC and MCP'({ procedure, surfaces }) {
    for (const { surface, events } of surfaces.flat()) {
      for (const event of events) {
        expectDeclared(procedure, event);
        expect(event.surface).toBe(surface);
      }
    }
  },

  'changes nothing when it is repeated with its key, and answers the same'({ procedure, keyed }) {
    if (!keyed || !procedure.isKeyed || isMailOnly(procedure)) return;
    const { first, again, isUnchanged } = keyed;
    expect(isUnchanged).toBe(true);
    if (startStates.get(procedure.name)!.endsSession) return expect(again.status).toBe(401);
    if (NOT_KEPT.has(procedure.name)) return expect(again.status).toBe(400);
    expect(again).toMatchObject({ status: first.status, body: first.body });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  },

  'changes something anew with another key only if it is made for that'({ procedure, keyed }) {
    const { name } = procedure;
    const written = WRITTEN[name];
    if (!keyed || !written || !procedure.isKeyed || startStates.get(name)!.endsSession) return;
    // A repeat finds the release of the first call published.
    const repeated = written.filter((text) => !text.startsWith('release.published')).slice(0, 1);
    const anew = keyed.anew.map((event) => inShort(event, written[0]));
    expect(anew).toEqual(CHANGES_ANEW.has(name) ? repeated : []);
  },

  'answers callers, keys and rows as expected; a refused call writes nothing'({ refusals }) {
    expect(refusals.unexpected).toEqual([]);
    expect(refusals.isUnchanged).toBe(true);
  },

  '422 for the same inputs on all surfaces, in the same words'({ procedure, invalid }) {
    if (procedure.input) expect(invalid).not.toEqual([]);
    for (const { input, outcomes } of invalid) {
      for (const outcome of outcomes) expect({ input, outcome }).toEqual({ input, outcome: outcomes[0] });
      expect(outcomes[0]!.status).toBe(422);
    }
  },

  '422 for an unknown field, which the specified operations ignore over REST and RPC'({ procedure, unknown }) {
    const refused = { status: 422, errors: { qqqqqqqq: ['qqqqqqqq is not a known field.'] } };
    for (const { surface, outcome } of unknown) {
      if (procedure.rest!.isSpecified && surface !== 'mcp') expect(outcome).not.toMatchObject({ status: 422 });
      else if (procedure.access !== 'anyone' || surface !== 'mcp') expect(outcome).toMatchObject(refused);
    }
  },

  'can end with every documented error, without internals'({ errors }) {
    expect(errors.map(({ outcome }) => outcome.status)).toEqual(errors.map(({ documented }) => documented));
    expect(JSON.stringify(errors)).not.toContain('internals');
  },

  'needs a body if it has a required field, as documented'({ procedure, bodiless }) {
    const { needsInput, rest } = procedure;
    expect(bodiless).toEqual(needsInput ? [400, 400] : [rest!.status, 200]);
    expect(document.paths[rest!.path]!.post.requestBody?.required ?? false).toBe(needsInput);
  },

  'logs each call with its surface, name and status, and no secret'({ procedure, surfaces, logged }) {
    const called = logged.filter(({ operation }) => operation === procedure.name);
    for (const surface of new Set(surfaces.flat().map((call) => call.surface)))
      expect(called).toContainEqual(expect.objectContaining({ surface, status: expect.any(Number) }));
    expect(JSON.stringify(logged)).not.toMatch(/demo-password|"(password|token|secret|code)":"/);
  },
};

/** The events that the router of an operation names. */
export function declaredBy({ name }: Procedure): readonly EventType[] {
  const definitions = appRouter._def.procedures as unknown as Record<string, { _def: { meta: Meta } }>;
  return definitions[name]!._def.meta.events ?? [];
}

/** They change nothing yet: what the link of their mail does has its event. */
const ONLY_MAILS = ['account.requestPasswordReset', 'account.changeAddress', 'account.requestConfirmation'];
export const isMailOnly = ({ name }: Procedure) => ONLY_MAILS.includes(name);

/** Its router names it, and its data is documented, without contents. */
function expectDeclared(procedure: Procedure, { type, data }: EventRow): void {
  expect(declaredBy(procedure)).toContain(type);
  expect(EventData.strict().parse(data)).toEqual(data);
  for (const field of data.fields ?? []) expect(field).toMatch(/^[a-z_]+$/);
}

/** Their answers have a secret, which is stored nowhere. */
const NOT_KEPT = new Set([
  'account.startSecondFactor',
  'account.confirmSecondFactor',
  'account.renewRecoveryCodes',
  'keys.create',
  'keys.rotate',
  'keys.rotateSelf',
  'webhooks.create',
  'webhooks.rotateSecret',
]);

/** Those that change something each time; the same call of any other finds nothing to change, or is refused. */
const CHANGES_ANEW = new Set([
  ...['boards', 'groups', 'cards', 'comments', 'tags', 'themes', 'platforms', 'projects'].map(
    (noun) => `${noun}.create`,
  ),
  ...['masterBoards', 'masterGroups', 'masterCards'].flatMap((noun) => [`${noun}.create`, `${noun}.push`]),
  ...['rollouts.plan', 'cards.createMany', 'masterBoards.sync', 'subscriptions.setTrial', 'account.startSecondFactor'],
  'identityRules.create',
  ...['keys.create', 'keys.rotate', 'webhooks.create', 'webhooks.rotateSecret', 'webhooks.resend', 'webhooks.sendTest'],
]);

/** The outcome of a call and the rows that it has changed, without what is new in each call. */
function compared({ outcome, before, after }: Recorded) {
  const known = JSON.stringify(before);
  const comparable = (value: unknown) => hideNew(value, known, tokens.read);
  return { outcome: comparable(outcome), written: changedRows(before, after, comparable) };
}

/** The rows of each table that are new or changed, and how many are gone. */
function changedRows(before: Contents, after: Contents, comparable: (row: unknown) => unknown) {
  const changes = Object.entries(after).map(([table, rows]) => {
    const old = new Set(before[table]!.map((row) => JSON.stringify(row)));
    const changed = rows.filter((row) => !old.has(JSON.stringify(row)));
    const kept = changed.map((row) => JSON.stringify(comparable(row))).sort();
    return [table, { changed: kept, gone: old.size - (rows.length - changed.length) }] as const;
  });
  return Object.fromEntries(changes);
}

/** Assistants get no fields that are null, and no schema says which ones a release has. */
const withoutNullContents = <Value>(value: Value): Value => {
  const withoutNulls = (content: object) =>
    Object.fromEntries(Object.entries(content).filter(([, part]) => part !== null));
  return JSON.parse(JSON.stringify(value, (key, part) => (key === 'content' && part ? withoutNulls(part) : part)));
};
