import { sql } from 'kysely';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import { readMessages } from '../../client/sse.ts';
import { query } from '../../server/database/query.ts';
import { feedComplete } from '../harness/events.ts';
import { testService, withOwnDatabase } from '../harness/service.ts';
import {
  givenKey,
  givenMasterBoard,
  givenThemeVersion,
  givenTrial,
  givenUser,
  givenWebhook,
  givenWorld,
  insert,
  testDb,
  type World,
} from '../harness/world.ts';

/** Rows that a node of a later version has written, on a database that both use during an upgrade. */

withOwnDatabase();

const LATER = {
  type: 'card.archived',
  surface: 'telepathy',
  subject_id: 7,
  data: { archive_id: 9, fields: ['shelf'] },
};

const streams: AbortController[] = [];
afterEach(() => {
  for (const stream of streams.splice(0)) stream.abort();
});

/** The migration of a later version would allow further values. */
beforeAll(async () => {
  const db = await testDb();
  const checks = await query(
    db,
    sql<{ table: string; name: string }>`
      select conrelid::regclass::text as table, conname as name from pg_constraint
      where contype = 'c' and conrelid::regclass::text in (
        'webhooks', 'webhook_deliveries', 'template_runs', 'template_outcomes', 'subscriptions', 'theme_versions', 'users')`,
  );
  for (const { table, name } of checks)
    await query(db, sql`alter table ${sql.table(table)} drop constraint ${sql.ref(name)}`);
});

const givenLaterEvent = async ({ project }: World) => {
  for (const table of ['events', 'audit_entries'])
    await query(
      await testDb(),
      sql`insert into ${sql.table(table)} (type, project_id, surface, subject_id, data)
        values (${LATER.type}, ${project.id}, ${LATER.surface}, ${LATER.subject_id}, ${JSON.stringify(LATER.data)}::jsonb)`,
    );
  await feedComplete();
};

describe('an event of a later version', () => {
  it('is listed over REST, RPC and MCP, also in the audit trail', async () => {
    const world = await givenWorld();
    await givenLaterEvent(world);
    const { secret } = await givenKey(world.users.owner);

    const listed = await world.asOwner.post('/services/platforms/v1/events/list');
    const audited = await world.asOwner.post('/services/platforms/v1/audit/list');
    const overRpc = await world.asOwner.rpc.events.list.query({});
    const auditedOverRpc = await world.asOwner.rpc.audit.list.query({});
    const mcp = await fetch(`${(await testService()).url}/mcp`, {
      method: 'POST',
      headers: {
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        authorization: `Bearer ${secret}`,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'events_list', arguments: {} },
      }),
    });

    expect(listed.body.data.events).toMatchObject([LATER]);
    expect(audited.body.data.entries).toMatchObject([LATER]);
    expect(overRpc.events).toMatchObject([LATER]);
    expect(auditedOverRpc.entries).toMatchObject([LATER]);
    const answer = await mcp.text();
    expect(answer).toContain(LATER.type);
    expect(answer).toContain('archive_id');
    expect(answer).not.toContain('"isError":true');
  });

  it('is sent by streams, when it happens and when they resume', async () => {
    const world = await givenWorld();
    const { url } = await testService();
    const { token = '' } = world.asMember;
    const { cursor } = await world.asMember.rpc.events.list.query({ after: 'latest' });

    const live = followRest(url, token, '');
    const client = createClient({ url, token });
    const closing = openStream();
    const overRpc = client.events.follow({ after: cursor }, { signal: closing.signal });
    await live.begun;
    await givenLaterEvent(world);
    await world.asMember.rpc.tags.create.mutate({ name: 'Wakes followers' });

    expect((await live.next()).data).toMatchObject(LATER);
    expect((await overRpc.next()).value).toMatchObject(LATER);
    const resumed = followRest(url, token, `?after=${cursor}`);
    expect(await resumed.next()).toMatchObject({ event: LATER.type, data: LATER });
  });

  /** Opens a stream over REST. */
  function followRest(url: string, token: string, search: string) {
    const { signal } = openStream();
    const headers = { authorization: `Bearer ${token}` };
    const response = fetch(`${url}/api/services/platforms/v1/events/stream${search}`, { headers, signal });
    const messages = response.then(({ body }) => readMessages(body!));
    const begun = messages.then((read) => read.next());
    const next = async () => {
      await begun;
      for await (const { event, data } of await messages) if (data) return { event, data: JSON.parse(data) };
      throw new Error('The stream ended.');
    };
    return { begun, next };
  }

  function openStream(): AbortController {
    const closing = new AbortController();
    streams.push(closing);
    return closing;
  }
});

describe('a stored value of a later version', () => {
  it('is listed: types and state of a webhook, and the status of a delivery', async () => {
    const world = await givenWorld();
    const id = await givenWebhook(world.project);
    await query(
      await testDb(),
      sql`update webhooks set types = '{card.archived,card.created}', is_active = false, disabled_reason = 'bored' where id = ${id}`,
    );
    await insert('webhook_deliveries', {
      ...{
        webhook_id: id,
        number: 1,
        type: 'card.archived',
        attempt: 1,
        status: 'skipped' as 'failed',
        milliseconds: 1,
      },
    });

    const listed = await world.asOwner.post('/services/platforms/v1/webhooks/list');
    const deliveries = await world.asOwner.post('/services/platforms/v1/webhooks/deliveries', { id });
    const updated = await world.asOwner.rpc.webhooks.update.mutate({ id, is_active: true });

    expect(listed.body.data.webhooks).toMatchObject([
      { types: ['card.archived', 'card.created'], disabled_reason: 'bored' },
    ]);
    expect(deliveries.body.data.deliveries).toMatchObject([{ type: 'card.archived', status: 'skipped' }]);
    expect(updated.webhook).toMatchObject({ types: ['card.archived', 'card.created'], is_active: true });
  });

  it('is listed: kinds and outcomes of runs, states of subscriptions and themes, kinds of users', async () => {
    const { asSuperadmin, project } = await givenWorld();
    const db = await testDb();
    const run = await insert('template_runs', {
      kind: 'rollout' as 'sync',
      board_id: (await givenMasterBoard()).board,
    });
    await query(
      db,
      sql`insert into template_outcomes (run_id, project_id, outcome, reason) values (${run}, ${project.id}, 'held', 'frozen')`,
    );
    const { product } = await givenTrial(project);
    await query(db, sql`update subscriptions set status = 'paused' where product = ${product}`);
    const version = await givenThemeVersion(project);
    await query(
      db,
      sql`update theme_versions set theme_status = 'archived', approval_status = 'escalated' where id = ${version}`,
    );
    const user = await givenUser();
    await query(db, sql`update users set kind = 'robot' where id = ${user.id}`);

    const read = asSuperadmin.rpc;
    expect((await read.templateRuns.list.query({})).runs).toMatchObject([{ id: run, kind: 'rollout' }]);
    expect((await read.templateRuns.report.query({ id: run })).projects).toMatchObject([
      { outcome: 'held', reason: 'frozen' },
    ]);
    const subscriptions = await read.subscriptions.list.query({ platform_id: project.platform_id });
    expect(subscriptions.subscriptions).toMatchObject([{ status: 'paused' }]);
    const versions = await asSuperadmin.in(project.id).rpc.themes.listVersions.query({});
    expect(versions.versions).toContainEqual(
      expect.objectContaining({ id: version, theme_status: 'archived', approval_status: 'escalated' }),
    );
    expect((await read.users.list.query({ search: user.email })).users).toMatchObject([{ kind: 'robot' }]);
  });
});
