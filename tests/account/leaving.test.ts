import { sql } from 'kysely';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../client/client.ts';
import { query } from '../../server/database/query.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { givenService, scrape, testService, withOwnDatabase } from '../harness/service.ts';
import {
  givenKey,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWebhook,
  givenWorld,
  stored,
  testDb,
} from '../harness/world.ts';

withOwnDatabase();

/** An owner with two sessions, a key, and a webhook of their own project. */
async function givenLeaver() {
  const world = await givenWorld();
  const project = await givenProject({ name: 'Launch' });
  const user = await givenUser({ project, role: 'owner', default_project_id: project.id });
  const [token] = [await givenToken(user), await givenToken(user)];
  const { secret } = await givenKey(user, { scopes: ['boards:read', 'events:read'] });
  const webhook = await givenWebhook(project, { created_by: user.id });
  return { ...world, user, leftProject: project, token, secret, webhook, admin: world.asSuperadmin.rpc };
}

describe('users.deactivate', () => {
  it('200 with what it touched, and the projects without another active owner', async () => {
    const { admin, user, leftProject, project, webhook } = await givenLeaver();
    await givenMember(user, project, 'owner');

    const touched = await admin.users.deactivate.mutate({ id: user.id });

    expect(touched).toMatchObject({
      ...{ user: { id: user.id, is_active: false }, sessions_ended: 2, keys_refused: 1 },
      paused_webhooks: [{ id: webhook, host: 'example.com' }],
      sole_owner_of: [{ project_id: leftProject.id, name: 'Launch' }],
    });
    expect(await stored('webhooks', webhook)).toMatchObject({ is_active: false });
    expect(await admin.members.list.query({ project_id: leftProject.id })).toMatchObject({
      members: [{ user_id: user.id, role: 'owner' }],
    });
    expect(await admin.users.deactivate.mutate({ id: user.id })).toMatchObject({
      ...{ sessions_ended: 0, paused_webhooks: [], sole_owner_of: [{ project_id: leftProject.id }] },
    });
  });

  it('400 for the last active superadmin with a password', async () => {
    const { admin, users } = await givenLeaver();
    await query(
      await testDb(),
      sql`update users set superadmin = false where superadmin and id <> ${users.superadmin.id}`,
    );

    const refused = await refusalOf(admin.users.deactivate.mutate({ id: users.superadmin.id }));

    expect(refused).toMatchObject({ status: 400 });
  });

  it('ends calls of remembered callers, batches, assistants and streams at once, on another node, too', async () => {
    const { admin, user, token, secret } = await givenLeaver();
    const other = await givenService();
    onTestFinished(() => other.app.close());
    const nodes = [(await testService()).url, other.url];
    const holders = nodes.flatMap((url) => [token, secret].map((credential) => ({ url, credential })));
    const statusesOf = async ({ url, credential }: (typeof holders)[number]) => {
      const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
      const post = async (path: string, body: object, accept = 'application/json') => {
        const sent = { method: 'POST', headers: { ...headers, accept }, body: JSON.stringify(body) };
        const response = await fetch(url + path, sent);
        const text = await response.text();
        return text.includes('"httpStatus":401') ? 401 : response.status;
      };
      const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
      return [
        await post('/api/services/operations/v1/operations/boards/list', {}),
        await post('/trpc/boards.list,boards.list?batch=1&kind=query', { 0: { json: {} }, 1: { json: {} } }),
        await post('/mcp', list, 'application/json, text/event-stream'),
      ];
    };
    for (const holder of holders) expect(await statusesOf(holder)).toEqual([200, 200, 200]);
    const streams = holders.map(({ url, credential }) => {
      const stream = createClient({ url, token: credential, retries: 0 }).events.follow({ after: undefined });
      const ended = errorOf(stream.next());
      return { ended };
    });
    await expect.poll(async () => openStreams(nodes)).toBe(holders.length);

    await admin.users.deactivate.mutate({ id: user.id });

    for (const holder of holders) expect(await statusesOf(holder)).toEqual([401, 401, 401]);
    for (const { ended } of streams) expect(await ended).toMatchObject({ status: 401 });
  });

  const openStreams = async (nodes: string[]) => {
    const texts = await Promise.all(nodes.map(scrape));
    return texts
      .map((text) => Number(/^deckhand_followers (\d+)/m.exec(text)?.[1] ?? 0))
      .reduce((sum, count) => sum + count, 0);
  };
});

describe('users.activate', () => {
  it('200 and undoes it: keys work, webhooks go on, sessions stay ended', async () => {
    const { admin, user, token, secret, webhook } = await givenLeaver();
    await admin.users.deactivate.mutate({ id: user.id });

    const touched = await admin.users.activate.mutate({ id: user.id });

    expect(touched).toMatchObject({
      ...{ user: { is_active: true }, keys_accepted: 1, resumed_webhooks: [{ id: webhook, host: 'example.com' }] },
    });
    expect(await stored('webhooks', webhook)).toMatchObject({ is_active: true, right_lost_at: null });
    const { url } = await testService();
    await makeCaller(url, secret).rpc.boards.list.query();
    await expect(makeCaller(url, token).rpc.boards.list.query()).rejects.toThrow();
    expect(await admin.users.activate.mutate({ id: user.id })).toMatchObject({ resumed_webhooks: [] });
  });

  it('does the same as users.update', async () => {
    const { admin, user, webhook } = await givenLeaver();
    for (const is_active of [false, true]) {
      await admin.users.update.mutate({ id: user.id, is_active });
      expect(await stored('webhooks', webhook)).toMatchObject({ is_active });
    }
  });

  it('leaves webhooks off that somebody switched off before or since, took over, or that have no right any more', async () => {
    const { admin, user, leftProject, webhook } = await givenLeaver();
    const makeOne = (state = {}) => givenWebhook(leftProject, { created_by: user.id, ...state });
    const [offBefore, offSince, taken, failed] = [
      await makeOne({ is_active: false }),
      await makeOne(),
      await makeOne(),
      await makeOne({ is_active: false, disabled_reason: 'gone' }),
    ];
    await admin.users.deactivate.mutate({ id: user.id });
    await admin.webhooks.update.mutate({ id: offSince, is_active: false });
    await admin.webhooks.update.mutate({ id: taken, is_active: true });
    await admin.webhooks.update.mutate({ id: taken, is_active: false });

    const { resumed_webhooks } = await admin.users.activate.mutate({ id: user.id });

    expect(resumed_webhooks.map(({ id }) => id)).toEqual([webhook]);
    for (const id of [offBefore, offSince, taken, failed])
      expect(await stored('webhooks', id), String(id)).toMatchObject({ is_active: false });

    await admin.users.deactivate.mutate({ id: user.id });
    await query(await testDb(), sql`update members set role = 'member' where user_id = ${user.id}`);
    expect(await admin.users.activate.mutate({ id: user.id })).toMatchObject({ resumed_webhooks: [] });
  });
});
