import { sql } from 'kysely';
import { beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { databaseUrl, type TestService, testService } from '../harness/service.ts';
import { givenWorld, testDb, type World } from '../harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';

let service: TestService;
let world: World;
beforeAll(async () => {
  service = await testService();
  world = await givenWorld();
});

describe('the limits of a node', () => {
  it('are set on its server', () => {
    // A late request ends at most one interval after its limit, and a longer limit for headers would be that of bodies.
    expect(service.app.server).toMatchObject({
      maxConnections: 5000,
      requestTimeout: 30_000,
      headersTimeout: 30_000,
      connectionsCheckingInterval: 1000,
      keepAliveTimeout: 72_000,
    });
  });

  it.skipIf(!databaseUrl)('are set on its connections to PostgreSQL', async () => {
    const [limits] = await query(
      await testDb(),
      sql`select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
        current_setting('idle_in_transaction_session_timeout') as idle`,
    );

    expect(limits).toEqual({ statement: '30s', lock: '10s', idle: '30s' });
  });
});

describe('the limits of a request', () => {
  const descriptionOf = (length: number) => ({ title: 'x', description: '😀'.repeat(length) });

  it('allow a text of 65,536 characters; 422 for one more', async () => {
    const accepted = await world.asMember.post(CREATE, descriptionOf(65_536));
    const refused = await world.asMember.post(CREATE, descriptionOf(65_537));

    expect(accepted.status).toBe(201);
    expect(refused.status).toBe(422);
    expect(refused.body.errors).toEqual({ description: ['description must be at most 65536 characters.'] });
  });

  it('allow 30,000 fields and 1 MiB; 400 for more', async () => {
    const withFields = (count: number) =>
      JSON.stringify({
        title: 'x',
        ...Object.fromEntries(Array.from({ length: count - 1 }, (_, at) => [`f${at}`, 0])),
      });
    const ofLength = (bytes: number) => `{"title": "x"${' '.repeat(bytes - 14)}}`;

    expect((await world.asMember.post(CREATE, withFields(30_000))).status).toBe(201);
    expect((await world.asMember.post(CREATE, withFields(30_001))).status).toBe(400);
    expect((await world.asMember.post(CREATE, ofLength(1024 * 1024))).status).toBe(201);
    expect((await world.asMember.post(CREATE, ofLength(1024 * 1024 + 1))).status).toBe(400);
  });

  it('allow a page of 200 rows; 422 for 201', async () => {
    expect((await world.asViewer.rpc.cards.list.query({ limit: 200 })).next_cursor).toBeNull();
    await expect(world.asViewer.rpc.cards.list.query({ limit: 201 })).rejects.toMatchObject({ status: 422 });
  });
});
