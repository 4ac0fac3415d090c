import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import { createClient } from '../../client/client.ts';
import { query } from '../../server/database/query.ts';
import { givenCuttingProxyTo } from '../harness/proxy.ts';
import { isWhole, seed } from '../harness/sample.ts';
import { testService } from '../harness/service.ts';
import { givenWorld, testDb } from '../harness/world.ts';

const CLIENTS = 25;
const ROUNDS = isWhole ? 10 : 2;
/** Sent as one batch; each is retried by itself. */
const AT_ONCE = 4;
const CALLS = CLIENTS * ROUNDS * AT_ONCE;
/** How many answers are cut off, and a quarter as many requests. */
const SHARE = 0.2;

let close: (() => void) | undefined;
afterEach(() => close?.());

describe('a client behind a network that loses answers', () => {
  it('does each of many mutations exactly once', async () => {
    const { url } = await testService();
    const proxy = await givenCuttingProxyTo(url, { seed, share: SHARE });
    close = proxy.close;
    const { asMember } = await givenWorld();
    const run = randomUUID();
    const clients = Array.from({ length: CLIENTS }, () =>
      createClient({ url: proxy.url, token: asMember.token, retries: 12 }),
    );

    const ids = await Promise.all(
      clients.map(async (client, place) => {
        const created: number[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          const titles = Array.from({ length: AT_ONCE }, (_, call) => `${run} ${place} ${round} ${call}`);
          const answers = await Promise.all(titles.map((title) => client.cards.create.mutate({ title })));
          created.push(...answers.map(({ card }) => card.id));
        }
        return created;
      }),
    );

    const stored = await query(
      await testDb(),
      sql<{ id: number; title: string }>`select id, title from cards where title like ${`${run} %`}`,
    );
    expect(stored).toHaveLength(CALLS);
    expect(new Set(stored.map(({ title }) => title)).size).toBe(CALLS);
    expect(ids.flat().sort()).toEqual(stored.map(({ id }) => id).sort());
    expect(proxy.cuts.answers).toBeGreaterThan(0);
    expect(proxy.cuts.requests).toBeGreaterThan(0);
  });
});
