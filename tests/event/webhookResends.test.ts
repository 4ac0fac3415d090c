import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { CARD_DATA, eventsOf, feedComplete } from '../harness/events.ts';
import { givenService, withOwnDatabase } from '../harness/service.ts';
import { givenWebhook, givenWorld, stored, type TestProject, testDb } from '../harness/world.ts';

withOwnDatabase();

const REDELIVER = '/services/platforms/v1/webhooks/redeliver';
const RESEND = '/services/platforms/v1/webhooks/resend';
const SKIP = '/services/platforms/v1/webhooks/skip';

/** Events of a project; returns their ids, in order. */
async function givenEvents({ id }: TestProject, count: number, type = 'card.created'): Promise<string[]> {
  const added = await query(
    await testDb(),
    sql<{ id: string }>`
      insert into events (type, project_id, surface, subject_id, data) select ${type}, ${id}, 'rest', 1, ${CARD_DATA} from generate_series(1, ${count}) returning id::text as id`,
  );
  await feedComplete();
  return added.map(({ id }) => id);
}

/** A webhook that has got all events so far, with a host of its own. */
const givenWebhookAtEnd = (project: TestProject, state: object = {}) =>
  givenWebhook(project, {
    url: `https://${randomUUID()}.example.com/`,
    after_transaction: sql`pg_snapshot_xmin(pg_current_snapshot())`,
    ...state,
  });

const placeOf = async (id: number) => {
  const { after_event } = (await stored('webhooks', id))!;
  return String(after_event);
};

describe('webhooks.redeliver', () => {
  it('counts as a call for every 20 events', async () => {
    const service = await givenService({ RATE_LIMIT_PER_MINUTE: '100' });
    const { asOwner, project } = await givenWorld(service);
    const [first] = await givenEvents(project, 1000);
    const id = await givenWebhookAtEnd(project);

    const answer = await asOwner.post(REDELIVER, { id, event_id: first });

    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('50');
    await service.app.close();
  });

  it('429 until the events of the last time can have been sent', async () => {
    const { asOwner, project } = await givenWorld();
    const [first] = await givenEvents(project, 200);
    const id = await givenWebhookAtEnd(project);

    const events = await eventsOf(() => asOwner.post(REDELIVER, { id, event_id: first }));
    const second = await asOwner.post(REDELIVER, { id, event_id: first });
    await query(await testDb(), sql`update webhooks set redelivery_ends_at = now() where id = ${id}`);
    const third = await asOwner.post(REDELIVER, { id, event_id: first });

    expect(events).toMatchObject([{ type: 'webhook.redelivered', data: { count: 200, event_id: first } }]);
    expect([second.status, third.status]).toEqual([429, 200]);
    expect(second.headers.get('x-error-reason')).toBe('too_many_resends');
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(10);
    expect(Number(second.headers.get('retry-after'))).toBeLessThanOrEqual(20);
  });

  it.each([
    ['its project', 'https://other.example/', true, 990],
    ['its host, which no project uses up alone', 'https://RECEIVER.example:443/other', false, 4990],
    ['neither', 'https://other.example/', false, 4990],
  ])('counts the events that wait for other webhooks of %s', async (of, url, isOwn, seconds) => {
    const { asOwner, project, otherProject } = await givenWorld();
    const [first] = await givenEvents(project, 200);
    const id = await givenWebhookAtEnd(project, { url: 'https://receiver.example/' });
    const waiting = { url, redelivery_ends_at: new Date(Date.now() + seconds * 1000) };
    const other = await givenWebhook(isOwn ? project : otherProject, waiting);

    const answer = await asOwner.post(REDELIVER, { id, event_id: first });

    expect(answer.status).toBe(of === 'neither' ? 200 : 429);
    await query(await testDb(), sql`delete from webhooks where id in (${id}, ${other})`);
  });

  it('400 for a webhook that is not active: it would take the share of others without sending anything', async () => {
    const { asOwner, project } = await givenWorld();
    const [first] = await givenEvents(project, 1);
    const id = await givenWebhookAtEnd(project, { is_active: false });

    const answer = await asOwner.post(REDELIVER, { id, event_id: first });

    expect(answer.status).toBe(400);
    expect(answer.headers.get('x-error-reason')).toBe('webhook_not_active');
  });

  it('422 for an event that is more than 10,000 events back', async () => {
    const { asOwner, project } = await givenWorld();
    const [first, second] = await givenEvents(project, 10_001);
    const id = await givenWebhookAtEnd(project);

    const answers = [
      await asOwner.post(REDELIVER, { id, event_id: first }),
      await asOwner.post(REDELIVER, { id, event_id: second }),
    ];

    expect(answers.map(({ status }) => status)).toEqual([422, 200]);
  });
});

describe('webhooks.resend', () => {
  it('400 for a webhook that is not active, and for the 21st event that waits', async () => {
    const { asOwner, project } = await givenWorld();
    const [event_id] = await givenEvents(project, 1);
    const inactive = await givenWebhookAtEnd(project, { is_active: false });
    const full = await givenWebhookAtEnd(project, { resend_events: sql`array_fill(1::bigint, array[20])` });

    const answers = [
      await asOwner.post(RESEND, { id: inactive, event_id }),
      await asOwner.post(RESEND, { id: full, event_id }),
    ];

    expect(answers.map(({ status, headers }) => [status, headers.get('x-error-reason')])).toEqual([
      [400, 'webhook_not_active'],
      [400, 'place_full'],
    ]);
  });

  it('422 for an event of another project, or of a type that the webhook is not for', async () => {
    const { asOwner, project, otherProject } = await givenWorld();
    const [[own], [foreign]] = [await givenEvents(project, 1, 'card.moved'), await givenEvents(otherProject, 1)];
    const id = await givenWebhookAtEnd(project, { types: ['card.created'] });

    const answers = [
      await asOwner.post(RESEND, { id, event_id: own }),
      await asOwner.post(RESEND, { id, event_id: foreign }),
    ];

    expect(answers.map(({ status }) => status)).toEqual([422, 422]);
  });
});

describe('webhooks.skip', () => {
  it('moves a failing webhook behind the next event, and says so in the audit trail', async () => {
    const { asOwner, project, users } = await givenWorld();
    await givenEvents(project, 1, 'card.moved');
    const [first, second] = await givenEvents(project, 2);
    const id = await givenWebhook(project, {
      types: ['card.created'],
      failures: 7,
      first_failed_at: new Date(),
      next_attempt_at: new Date(Date.now() + 3_600_000),
    });

    const events = await eventsOf(() => asOwner.post(SKIP, { id, event_id: first }));

    expect(await placeOf(id)).toBe(first);
    expect(await stored('webhooks', id)).toMatchObject({ failures: 0, first_failed_at: null });
    expect(events).toMatchObject([
      { type: 'webhook.skipped', subject_id: id, user_id: users.owner.id, data: { event_id: first } },
    ]);
    const answer = await asOwner.post(SKIP, { id, event_id: first });
    expect([answer.status, answer.headers.get('x-error-reason')]).toEqual([400, 'event_not_next']);
    expect((await asOwner.post(SKIP, { id, event_id: second })).status).toBe(200);
  });
});
