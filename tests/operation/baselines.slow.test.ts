import { request } from 'node:http';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { startLeanFloor } from '../benchmarks/leanFloor.ts';
import { startPlainFastify } from '../benchmarks/plainFastify.ts';
import { databaseUrl, TEST_SECRET, testDatabase, testService } from '../harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenTag,
  givenWorld,
  PASSWORD,
  testDb,
  type World,
} from '../harness/world.ts';

const OPERATIONS = '/api/services/operations/v1/operations';
const ODD_TEXT = 'Ünïcode 🚢 "quoted" \\ back\n\r\t\u2028 </script>';

const BASELINES = [
  ['the lean floor of the benchmark', startLeanFloor],
  ['the plain Fastify server of the benchmark', startPlainFastify],
] as const;

describe.skipIf(!databaseUrl).each(BASELINES)('%s', (_name, start) => {
  let baseline: Awaited<ReturnType<typeof start>>;
  let world: World;
  let rows: { board: number; group: number; card: number; tag: number };
  beforeAll(async () => {
    await testDatabase();
    baseline = await start(databaseUrl!, TEST_SECRET);
    world = await givenWorld();
    rows = await givenRows(world);
  });
  afterAll(() => baseline.close());

  it('answers boards/list exactly like the service', async () => {
    for (const input of [{}, { tool_key: 'seo' }, { tool_key: 'nobody-has-this' }]) {
      const [expected, answer] = await askBoth(`${OPERATIONS}/boards/list`, input);

      expect(expected.status).toBe(200);
      expect(answer).toEqual(expected);
    }
  });

  it('answers boards/get exactly like the service', async () => {
    const [expected, answer] = await askBoth(`${OPERATIONS}/boards/get`, { id: rows.board });

    expect(expected.status).toBe(200);
    expect(answer).toEqual(expected);
  });

  it('answers boards/get of an empty board exactly like the service', async () => {
    const [expected, answer] = await askBoth(`${OPERATIONS}/boards/get`, { id: await givenBoard(world.project) });

    expect(expected.status).toBe(200);
    expect(answer).toEqual(expected);
  });

  it('answers cards/create like the service, except for ids and timestamps', async () => {
    const { group, tag } = rows;
    const full = {
      group_id: group,
      tag_id: tag,
      owner_id: world.users.member.id,
      status: 'to_check',
      priority: 'high',
    };
    const dates = ['2020-02-29T12:00:00.123Z', '2020-02-29', '2020-02-29T00:00:00Z'];
    for (const more of [{}, ...dates.map((due_date) => ({ ...full, due_date }))]) {
      const [expected, answer] = await askBoth(`${OPERATIONS}/cards/create`, { title: ODD_TEXT, ...more });

      expect(expected.status).toBe(201);
      expect(generalized(answer)).toEqual(generalized(expected));
    }
  });

  it('answers comments/create like the service, except for ids and timestamps', async () => {
    const [expected, answer] = await askBoth(`${OPERATIONS}/comments/create`, {
      card_id: rows.card,
      comment: ODD_TEXT,
    });

    expect(expected.status).toBe(201);
    expect(generalized(answer)).toEqual(generalized(expected));
  });

  it('answers authenticate like the service, except for the token', async () => {
    const { email } = world.users.member;
    const [expected, answer] = await askBoth('/api/v1/authenticate', { email, password: PASSWORD });

    expect(expected.status).toBe(200);
    expect(generalized(answer)).toEqual(generalized(expected));
  });

  it('also checks the token, the project and the role', async () => {
    const path = `${OPERATIONS}/boards/get`;

    expect((await ask(baseline.url, path, {}, undefined)).status).toBe(401);
    expect((await ask(baseline.url, path, { id: rows.board }, world.asOutsider.token)).status).toBe(403);
    expect((await ask(baseline.url, `${OPERATIONS}/cards/create`, { title: 'x' }, world.asViewer.token)).status).toBe(
      403,
    );
  });

  async function askBoth(path: string, input: object) {
    const { url } = await testService();
    const { token } = world.asMember;
    return [await ask(url, path, input, token), await ask(baseline.url, path, input, token)] as const;
  }
});

/** Texts that need escaping, timestamps with microseconds, a dismissed tour card, and deleted rows. */
async function givenRows({ project, users }: World) {
  const board = await givenBoard(project, { title: ODD_TEXT, description: ODD_TEXT, tool_key: 'seo', position: 2 });
  await givenBoard(project, { position: 1 });
  await givenBoard(project, { deleted_at: new Date() });
  const group = await givenGroup(project, board, { title: ODD_TEXT, description: ODD_TEXT, position: 2 });
  await givenGroup(project, board, { position: 1 });
  await givenGroup(project, board, { deleted_at: new Date() });
  const card = await givenCard(project, {
    group_id: group,
    title: ODD_TEXT,
    description: ODD_TEXT,
    short_description: ODD_TEXT,
    due_date: new Date('2020-02-29T12:00:00.123Z'),
    snoozed_until: new Date('0099-01-01T00:00:00Z'),
    position: 2,
  });
  await givenCard(project, { group_id: group, position: 1, tour_key: 'welcome' });
  await givenCard(project, { group_id: group, deleted_at: new Date() });
  const dismissed = await givenCard(project, { group_id: group, tour_key: 'welcome' });
  const em = await testDb();
  await query(em, sql`insert into tour_dismissals (user_id, card_id) values (${users.member.id}, ${dismissed})`);
  await query(em, sql`update cards set updated_at = '2026-01-31T23:59:59.999999Z' where id = ${card}`);
  return { board, group, card, tag: await givenTag(project) };
}

type RawAnswer = { status: number; type: string | undefined; text: string };

function ask(url: string, path: string, input: object, token: string | undefined): Promise<RawAnswer> {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) };
  return new Promise((resolve, reject) => {
    const call = request(url + path, { method: 'POST', headers }, async (response) => {
      const parts = await response.toArray();
      const type = response.headers['content-type'];
      resolve({ status: response.statusCode!, type, text: Buffer.concat(parts).toString() });
    });
    call.on('error', reject).end(JSON.stringify(input));
  });
}

/** Without the values that differ in every row: ids, positions, timestamps, tokens. */
const generalized = ({ text, ...answer }: RawAnswer) => ({
  ...answer,
  text: text
    .replace(/"(id|position|sort_order)":\d+/g, '"$1":0')
    .replace(/"(created_at|updated_at)":"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z"/g, '"$1":"now"')
    .replace(/"unique_identifier":"[\da-f-]{36}"/, '"unique_identifier":"uuid"')
    .replace(/"token":"[\w.-]+"/, '"token":"jwt"'),
});
