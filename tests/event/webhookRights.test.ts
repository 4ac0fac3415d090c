import { sql } from 'kysely';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Migration20261117400000_webhook_rights } from '../../server/database/migrations/Migration20261117400000_webhook_rights.ts';
import { query } from '../../server/database/query.ts';
import { rightLosses, warnOfLostRights } from '../../server/domain/event/webhookRight.ts';
import { makeCaller } from '../harness/caller.ts';
import { eventsOf } from '../harness/events.ts';
import { runMigration } from '../harness/migration.ts';
import { testService, withOwnDatabase } from '../harness/service.ts';
import {
  givenKey,
  givenToken,
  givenUser,
  givenWebhook,
  givenWorld,
  type KeyState,
  PASSWORD,
  stored,
  testDb,
} from '../harness/world.ts';

withOwnDatabase();

const URL_OF_RECEIVER = 'https://example.com/hook';
const SCOPES = ['events:read', 'grants:write', 'webhooks:write'];

/** A webhook of a second owner, created with a token or with a key. */
async function givenMadeWebhook({ key, superadmin = false }: { key?: KeyState; superadmin?: boolean } = {}) {
  const world = await givenWorld();
  const { url } = await testService();
  const maker = await givenUser(superadmin ? { superadmin } : { project: world.project, role: 'owner' });
  const asMaker = makeCaller(url, await givenToken(maker), world.project.id);
  const usedKey = key && (await givenKey(maker, { scopes: SCOPES, ...key }));
  const asKey = makeCaller(url, usedKey?.secret, world.project.id);
  const { webhook } = await (key ? asKey : asMaker).rpc.webhooks.create.mutate({ url: URL_OF_RECEIVER });
  return { ...world, maker, asMaker, asMakersKey: asKey, keyId: usedKey?.id, webhook };
}
type Made = Awaited<ReturnType<typeof givenMadeWebhook>>;

const shownTo = async ({ asOwner }: Made) => (await asOwner.rpc.webhooks.list.query({})).webhooks[0];

/** What the background work does now and then. */
const lookForLosses = async (keyMaxDays?: number) =>
  rightLosses(keyMaxDays, pino({ level: 'silent' })).step(await testDb(), { rows: 1000 });

describe('a webhook is paused', () => {
  it.each<[string, { key?: KeyState; superadmin?: boolean }, (made: Made) => Promise<unknown>]>([
    ['when its maker is removed', {}, ({ asOwner, maker }) => asOwner.rpc.members.remove.mutate({ user_id: maker.id })],
    [
      'when its maker gets a lower role',
      {},
      ({ asOwner, maker }) => asOwner.rpc.members.set.mutate({ user_id: maker.id, role: 'member' }),
    ],
    [
      'when its maker leaves',
      {},
      ({ asMaker, project }) => asMaker.rpc.members.leave.mutate({ project_id: project.id }),
    ],
    [
      'when its maker is deactivated',
      {},
      ({ asSuperadmin, maker }) => asSuperadmin.rpc.users.update.mutate({ id: maker.id, is_active: false }),
    ],
    [
      'when its maker is no superadmin any more',
      { superadmin: true },
      ({ asSuperadmin, maker }) => asSuperadmin.rpc.users.update.mutate({ id: maker.id, superadmin: false }),
    ],
    [
      'when its maker is removed, who is a superadmin, but not by its key',
      { key: {} },
      async ({ asOwner, maker }) => {
        await query(await testDb(), sql`update users set superadmin = true where id = ${maker.id}`);
        await asOwner.rpc.members.remove.mutate({ user_id: maker.id });
      },
    ],
    ['when its key is revoked', { key: {} }, ({ asMaker, keyId }) => asMaker.rpc.keys.revoke.mutate({ id: keyId! })],
    [
      'when all keys of its maker are revoked',
      { key: {} },
      ({ asMaker }) => asMaker.rpc.account.signOutEverywhere.mutate({ revoke_keys: true }),
    ],
    [
      'when a changed password revokes its key',
      { key: {} },
      ({ asMaker }) => {
        const change = { password: PASSWORD, new_password: 'another long sentence of words' };
        return asMaker.rpc.account.changePassword.mutate({ ...change, revoke_keys: true });
      },
    ],
    [
      'when its key loses the scope events:read',
      { key: {} },
      ({ asMakersKey }) => asMakersKey.rpc.keys.rotateSelf.mutate({ scopes: ['webhooks:write'] }),
    ],
    [
      'when its key has expired',
      { key: {} },
      async ({ keyId }) => {
        await query(await testDb(), sql`update api_keys set expires_at = now() where id = ${keyId}`);
        await lookForLosses();
      },
    ],
    [
      'when the secret of its key is too old',
      { key: {} },
      async ({ keyId }) => {
        await query(
          await testDb(),
          sql`update api_keys set created_at = now() - interval '8 days' where id = ${keyId}`,
        );
        await lookForLosses(7);
      },
    ],
    [
      'when a node of the previous version removed its maker',
      {},
      async ({ maker }) => {
        await query(await testDb(), sql`delete from members where user_id = ${maker.id}`);
        await lookForLosses();
      },
    ],
  ])('%s', async (_, options, change) => {
    const made = await givenMadeWebhook(options);

    const events = await eventsOf(() => change(made));

    expect(events.filter(({ type }) => type === 'webhook.disabled')).toMatchObject([
      { project_id: made.project.id, subject_id: made.webhook.id, data: { reason: 'right_lost' } },
    ]);
    expect(await shownTo(made)).toMatchObject({
      is_active: false,
      disabled_reason: 'right_lost',
      right_lost_at: expect.any(Date),
      created_by: made.maker.id,
      key_id: made.keyId ?? null,
    });
    // What nodes of the previous version read.
    expect(await stored('webhooks', made.webhook.id)).toMatchObject({ disabled_reason: null });
  });

  it('with the others of its maker in the project, which the answer names', async () => {
    const made = await givenMadeWebhook();
    const { maker, project, otherProject, webhook } = made;
    const others = [
      await givenWebhook(otherProject, { created_by: maker.id }),
      await givenWebhook(project, { created_by: made.users.owner.id }),
      await givenWebhook(project, { created_by: maker.id, is_active: false }),
      await givenWebhook(project),
    ];

    const answer = await made.asOwner.rpc.members.remove.mutate({ user_id: maker.id });

    expect(answer).toEqual({
      paused_webhooks: [{ id: webhook.id, project_id: project.id, host: new URL(URL_OF_RECEIVER).host }],
    });
    const active = await Promise.all(others.map(async (id) => (await stored('webhooks', id))?.is_active));
    expect(active).toEqual([true, true, false, true]);
  });

  it('by a revoked key, whose answer names it', async () => {
    const { asMaker, keyId, webhook, project } = await givenMadeWebhook({ key: {} });

    const answer = await asMaker.post('/services/platforms/v1/keys/revoke', { id: keyId });

    const paused = [{ id: webhook.id, project_id: project.id, host: new URL(URL_OF_RECEIVER).host }];
    expect(answer).toMatchObject({ status: 200, body: { data: { paused_webhooks: paused } } });
  });
});

describe('a webhook stays active', () => {
  it.each<[string, { superadmin?: boolean }, (made: Made) => Promise<unknown>]>([
    ['of a superadmin, who is no member', { superadmin: true }, () => lookForLosses()],
    [
      'of the operator at the command line',
      {},
      async ({ webhook }) => {
        await query(await testDb(), sql`update webhooks set created_by = null where id = ${webhook.id}`);
        await lookForLosses();
      },
    ],
    [
      'when somebody else loses the role',
      {},
      ({ asOwner, users }) => asOwner.rpc.members.remove.mutate({ user_id: users.member.id }),
    ],
    [
      'when its maker revokes another key',
      {},
      async ({ asMaker, maker }) => asMaker.rpc.keys.revoke.mutate({ id: (await givenKey(maker)).id }),
    ],
  ])('%s', async (_, options, change) => {
    const made = await givenMadeWebhook(options);

    await change(made);

    expect(await shownTo(made)).toMatchObject({ is_active: true, disabled_reason: null, right_lost_at: null });
  });
});

describe('webhooks.update', () => {
  it('gives a paused webhook to the owner who activates it', async () => {
    const made = await givenMadeWebhook({ key: {} });
    const { asOwner, asMaker, asSuperadmin, users, webhook } = made;
    await asMaker.rpc.keys.revoke.mutate({ id: made.keyId! });

    const events = await eventsOf(() => asOwner.rpc.webhooks.update.mutate({ id: webhook.id, is_active: true }));
    await asSuperadmin.rpc.users.update.mutate({ id: made.maker.id, is_active: false });

    expect(events).toMatchObject([{ type: 'webhook.updated', data: { fields: ['is_active', 'created_by'] } }]);
    const own = {
      is_active: true,
      disabled_reason: null,
      right_lost_at: null,
      created_by: users.owner.id,
      key_id: null,
    };
    expect(await shownTo(made)).toMatchObject(own);
  });

  it('gives a webhook to whoever changes its address', async () => {
    const made = await givenMadeWebhook();
    const { asOwner, asMaker, maker, users, project } = made;
    const own = await asOwner.rpc.webhooks.create.mutate({ url: URL_OF_RECEIVER });
    await asMaker.rpc.webhooks.update.mutate({ id: own.webhook.id, url: `${URL_OF_RECEIVER}/elsewhere` });
    await asOwner.rpc.webhooks.update.mutate({ id: made.webhook.id, types: ['card.created'] });

    const { paused_webhooks } = await asOwner.rpc.members.remove.mutate({ user_id: maker.id, project_id: project.id });

    expect(paused_webhooks.map(({ id }) => id).sort()).toEqual([made.webhook.id, own.webhook.id].sort());
    expect(await stored('webhooks', own.webhook.id)).toMatchObject({ created_by: maker.id });
    expect(users.owner.id).not.toBe(maker.id);
  });

  it.each(['create', 'update'] as const)('403 for a key without the scope events:read: %s', async (verb) => {
    const { project, maker, webhook } = await givenMadeWebhook();
    const key = await givenKey(maker, { scopes: ['grants:write', 'webhooks:write'] });
    const asKey = makeCaller((await testService()).url, key.secret, project.id);
    const input = verb === 'create' ? { url: URL_OF_RECEIVER } : { id: webhook.id, is_active: false };

    const answer = await asKey.post(`/services/platforms/v1/webhooks/${verb}`, input);

    expect(answer).toMatchObject({ status: 403, body: { message: 'This requires the scope events:read.' } });
  });
});

describe('a webhook whose maker was gone before this was checked', () => {
  const DAY = 24 * 60 * 60_000;
  const givenOrphan = async (daysAgo: number) => {
    const made = await givenMadeWebhook();
    const db = await testDb();
    await query(db, sql`delete from members where user_id = ${made.maker.id}`);
    const lostAt = new Date(Date.now() - daysAgo * DAY);
    await query(db, sql`update webhooks set right_lost_at = ${lostAt} where id = ${made.webhook.id}`);
    return { ...made, lostAt };
  };

  it('is found by the upgrade', async () => {
    const [orphan, kept] = [await givenOrphan(0), await givenMadeWebhook()];
    await query(await testDb(), sql`update webhooks set right_lost_at = null`);

    await runMigration(Migration20261117400000_webhook_rights);

    expect(await shownTo(orphan)).toMatchObject({ is_active: true, right_lost_at: expect.any(Date) });
    expect(await shownTo(kept)).toMatchObject({ is_active: true, right_lost_at: null });
  });

  it('goes on for 30 days', async () => {
    const [young, old] = [await givenOrphan(29), await givenOrphan(31)];

    await lookForLosses();

    expect(await shownTo(young)).toMatchObject({ is_active: true, right_lost_at: young.lostAt });
    expect(await shownTo(old)).toMatchObject({ is_active: false, disabled_reason: 'right_lost' });
  });

  it('is named at each start', async () => {
    const { webhook, project, maker, lostAt } = await givenOrphan(1);
    const logged: object[] = [];
    const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });

    await warnOfLostRights(await testDb(), log);

    expect(logged).toContainEqual(
      expect.objectContaining({
        webhook: webhook.id,
        project: project.id,
        maker: maker.id,
        right_lost_at: lostAt.toISOString(),
      }),
    );
  });

  it('is taken over by an owner who sets is_active', async () => {
    const made = await givenOrphan(1);

    await made.asOwner.rpc.webhooks.update.mutate({ id: made.webhook.id, is_active: true });

    expect(await shownTo(made)).toMatchObject({ right_lost_at: null, created_by: made.users.owner.id });
  });
});
