import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connect, type Database } from '../../server/database/connect.ts';
import { query } from '../../server/database/query.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { hashRecoveryCode } from '../../server/security/secondFactor.ts';
import { makeSecretBox, type SecretBox } from '../../server/security/secretBox.ts';
import { type Answer, makeCaller, type TestCaller } from '../harness/caller.ts';
import { codeAt } from '../harness/codes.ts';
import {
  type Ended,
  givenCopyOf,
  givenDirectory,
  ON_TERMINAL,
  readRows,
  removeProcesses,
  signIn,
  startService,
  statusOf,
} from '../harness/process.ts';
import { findTestServer, givenServerDatabase } from '../harness/server.ts';
import { givenService, type TestService } from '../harness/service.ts';

const AUTHENTICATE = '/v1/authenticate';
const CREATE = '/services/operations/v1/operations/cards/create';
const LIST = '/services/operations/v1/operations/boards/list';
const MIGRATIONS = join(import.meta.dirname, '../../server/database/migrations');
const JWT_SECRET = 'a secret for tests that nobody else uses';

/** The results of a start on a new directory; other tests use copies of the directory. */
let first: {
  directory: string;
  url: string;
  answer: { error: boolean; data: { token: string } };
  docs: number;
  created: Answer;
  ended: Ended;
};

beforeAll(async () => {
  const directory = await givenDirectory();
  const { url, printed, stop } = await startService({ DATA_DIR: directory, ...ON_TERMINAL });
  const curl = await vi.waitFor(() => /^ *(curl .+)$/m.exec(printed())![1]!);
  const answer = JSON.parse((await promisify(execFile)('bash', ['-c', curl])).stdout);
  const created = await makeCaller(url, answer.data?.token).post(CREATE, { title: 'Written first' });
  const docs = await statusOf(url, '/docs');

  first = { directory, url, answer, docs, created, ended: await stop('SIGINT') };
});

afterAll(removeProcesses);

describe('the first start, on a terminal', () => {
  it('prints its address and that of the API page', () => {
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(first.ended.stdout).toContain(`${first.url}/docs\n`);
    expect(first.docs).toBe(200);
  });

  it('logs no warnings, since the embedded database has the test checkout', () => {
    expect(first.ended.stdout).toContain('INFO');
    expect(first.ended.stdout).not.toMatch(/WARN|ERROR|"level"/);
  });

  it('prints a curl command that signs in', () => {
    expect(first.answer).toMatchObject({ error: false, data: { email: 'member@demo.test' } });
    expect(first.created).toMatchObject({ status: 201 });
  });

  it('exits with 0 after SIGINT, and prints no stack', () => {
    expect(first.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(first.ended.stdout).not.toMatch(/^\s+at /m);
  });
});

describe.concurrent('a later start', () => {
  it('prints JSON alone if it is not on a terminal, with its address, and no line for health checks', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const service = await startService({ DATA_DIR, DATABASE_ULR: '' });
    for (const path of ['/health/live', '/health/ready', '/metrics', '/docs']) await statusOf(service.url, path);

    const { stdout, stderr } = await service.stop();

    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ msg, path }) => path ?? msg)).toEqual([
      expect.stringContaining('DATABASE_ULR is not a setting.'),
      expect.stringMatching(/^Server listening/),
      `Deckhand listens on ${service.url}`,
      '/docs',
      'Stopping.',
    ]);
    expect(stderr).toBe('');
  });

  it('has the data of before and accepts old tokens, also after kill -9', async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const service = await startService({ DATA_DIR });
    const caller = makeCaller(service.url, first.answer.data.token);
    const acknowledged: { id: number; title: string }[] = [first.created.body.data.card];
    const writeUntilItFails = async (): Promise<void> => {
      const answer = await caller.post(CREATE, { title: `Card ${acknowledged.length}` }).catch(() => undefined);
      if (answer?.status !== 201) return;
      acknowledged.push(answer.body.data.card);
      return writeUntilItFails();
    };

    const writing = writeUntilItFails();
    await vi.waitUntil(() => acknowledged.length >= 20, { interval: 1 });
    const ended = await service.stop('SIGKILL');
    await writing;
    const again = await startService({ DATA_DIR });
    const { rpc } = makeCaller(again.url, caller.token);
    const found = await Promise.all(acknowledged.map(({ id }) => rpc.cards.get.query({ id })));

    expect(ended).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(found.map(({ card }) => card.title)).toEqual(acknowledged.map(({ title }) => title));
    await again.stop();
  });
});

describe('the demo data', () => {
  let database: Database;
  let service: TestService;
  let secretBox: SecretBox;
  beforeAll(async () => {
    const DATA_DIR = await givenCopyOf(first.directory);
    const secret = await readFile(join(DATA_DIR, 'jwt-secret'), 'utf8');
    database = await connect(readSettings({ DATA_DIR }));
    service = await givenService({ JWT_PREVIOUS_SECRETS: secret }, { database });
    secretBox = makeSecretBox([secret]);
  });
  afterAll(async () => {
    await service?.app.close();
    await database?.close();
  });

  const rows = (statement: string): Promise<any[]> => query(database.db, sql.raw<any>(statement));

  it.each([
    { id: 1, email: 'admin@demo.test', superadmin: true, superadmin_billing: true },
    { id: 2, email: 'owner@demo.test', superadmin: false, superadmin_billing: false },
    { id: 3, email: 'member@demo.test', superadmin: false, superadmin_billing: false },
    { id: 4, email: 'viewer@demo.test', superadmin: false, superadmin_billing: false },
    { id: 5, email: 'outsider@demo.test', superadmin: false, superadmin_billing: false },
  ])('has user $id, $email, who signs in with the demo password', async (user) => {
    const answer = await makeCaller(service.url).post(AUTHENTICATE, { email: user.email, password: 'demo-password' });

    expect(answer).toMatchObject({ status: 200, body: { data: user } });
  });

  it('401 for otp@demo.test without a code, 200 with one', async () => {
    const otp = { email: 'otp@demo.test', password: 'demo-password' };
    const signIn = (more: object) => makeCaller(service.url).post(AUTHENTICATE, { ...otp, ...more });

    const answer = await signIn({});

    expect(answer).toMatchObject({ status: 401, body: { message: expect.stringContaining('code is needed') } });
    expect((await signIn({ code: codeAt(0) })).status).toBe(200);
  });

  it('has six users, one of them with a second factor', async () => {
    const users = await rows('select id, email, totp_secret from users where is_active order by id');
    const readable = users.map(({ id, totp_secret, ...user }) => ({
      id,
      ...user,
      totp_secret: totp_secret && secretBox.open(totp_secret, id),
    }));
    expect(readable).toEqual([
      { id: 1, email: 'admin@demo.test', totp_secret: null },
      { id: 2, email: 'owner@demo.test', totp_secret: null },
      { id: 3, email: 'member@demo.test', totp_secret: null },
      { id: 4, email: 'viewer@demo.test', totp_secret: null },
      { id: 5, email: 'outsider@demo.test', totp_secret: null },
      { id: 6, email: 'otp@demo.test', totp_secret: 'JBSWY3DPEHPK3PXP' },
    ]);
    expect(await rows('select user_id, code_hash, used_at from recovery_codes order by id')).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8].map((number) => ({
        user_id: 6,
        code_hash: hashRecoveryCode(`demo-recovery-${number}`),
        used_at: null,
      })),
    );
  });

  it('has two platforms, three projects and their tools', async () => {
    expect(await rows('select id, name from platforms order by id')).toEqual([
      { id: 1, name: 'Harbor Studio' },
      { id: 2, name: 'Northwind' },
    ]);
    expect(await rows('select id, platform_id, name from projects where is_active order by id')).toEqual([
      { id: 1, platform_id: 1, name: 'Harbor Website' },
      { id: 2, platform_id: 1, name: 'Harbor Shop' },
      { id: 3, platform_id: 2, name: 'Northwind Blog' },
    ]);
    expect(await rows('select project_id, tool_key from project_tools order by project_id, tool_key')).toEqual([
      { project_id: 1, tool_key: 'onboarding' },
      { project_id: 1, tool_key: 'seo' },
      { project_id: 2, tool_key: 'onboarding' },
    ]);
  });

  it('has the documented members', async () => {
    expect(await rows('select user_id, project_id, role from members order by user_id, project_id')).toEqual([
      { user_id: 2, project_id: 1, role: 'owner' },
      { user_id: 2, project_id: 2, role: 'owner' },
      { user_id: 3, project_id: 1, role: 'member' },
      { user_id: 4, project_id: 1, role: 'viewer' },
      { user_id: 5, project_id: 3, role: 'owner' },
      { user_id: 6, project_id: 1, role: 'member' },
    ]);
  });

  it('lists the boards of each project', async () => {
    const owner = await signIn(service.url, 'owner@demo.test');
    const outsider = await signIn(service.url, 'outsider@demo.test');
    const boardsOf = async (caller: TestCaller) => (await caller.post(LIST)).body.data.boards;
    const onboarding = {
      title: 'Onboarding',
      tool_key: 'onboarding',
      master_board_id: 1,
      groups_count: 2,
      cards_count: 5,
    };
    const launch = { title: 'Launch plan', tool_key: 'seo', master_board_id: null, groups_count: 3, cards_count: 8 };

    expect(await boardsOf(owner.in(1))).toMatchObject([onboarding, launch]);
    expect(await boardsOf(owner.in(2))).toMatchObject([onboarding]);
    expect(await boardsOf(outsider)).toEqual([]);
  });

  it('has one master board, with its copies in the projects', async () => {
    const boards = await rows(`
      select b.id, b.is_master, b.project_id, b.tool_key, json_agg(json_build_object('tour', c.tour_key, 'title', c.title,
        'group', coalesce(g.master_group_id, g.id), 'card', coalesce(c.master_card_id, c.id)) order by c.position) as cards
      from boards b join groups g on g.board_id = b.id join cards c on c.group_id = g.id
      where b.title = 'Onboarding' group by b.id order by b.id`);

    const [master, ...copies] = boards;

    expect(master).toMatchObject({ id: 1, is_master: true, project_id: null, tool_key: 'onboarding' });
    expect(master.cards).toHaveLength(5);
    expect(new Set(master.cards.map(({ group }: { group: number }) => group)).size).toBe(2);
    expect(master.cards.filter(({ tour }: { tour: string | null }) => tour !== null)).toHaveLength(2);
    expect(copies).toMatchObject([
      { is_master: false, project_id: 1, cards: master.cards },
      { is_master: false, project_id: 2, cards: master.cards },
    ]);
    expect(await rows('select id from boards where is_master')).toEqual([{ id: 1 }]);
  });

  it('has tags and comments in project 1', async () => {
    expect(await rows('select project_id, name from tags order by position')).toEqual([
      { project_id: 1, name: 'Content' },
      { project_id: 1, name: 'Technical' },
    ]);
    expect(await rows('select distinct project_id from comments')).toEqual([{ project_id: 1 }]);
  });

  it('has plans for a month and for a year, of which starter is free', async () => {
    const plans = await rows('select product, plan, period, price_cents = 0 as is_free from plans order by id');

    expect(plans).toEqual(
      ['starter', 'pro', 'business'].flatMap((plan) => [
        { product: 'websites', plan, period: 'month', is_free: plan === 'starter' },
        { product: 'websites', plan, period: 'year', is_free: plan === 'starter' },
      ]),
    );
  });

  it('has an active and an expired trial', async () => {
    const subscriptions = await rows(
      'select platform_id, product, status, trial_ends_at > now() as is_active from subscriptions order by platform_id',
    );

    expect(subscriptions).toEqual([
      { platform_id: 1, product: 'websites', status: 'trial', is_active: true },
      { platform_id: 2, product: 'websites', status: 'trial', is_active: false },
    ]);
  });

  it('has theme versions in every approval status', async () => {
    const versions = await rows(`
      select v.id, t.platform_id, v.approval_status, v.theme_status
      from theme_versions v join themes t on t.id = v.theme_id order by v.id`);

    expect(versions).toEqual([
      { id: 1, platform_id: 1, approval_status: 'approved', theme_status: 'published' },
      { id: 2, platform_id: 1, approval_status: 'pending', theme_status: 'draft' },
      { id: 3, platform_id: 1, approval_status: 'rejected', theme_status: 'draft' },
      { id: 4, platform_id: 2, approval_status: 'approved', theme_status: 'published' },
    ]);
  });
});

const server = await findTestServer();

describe.skipIf(!server.url)('on a PostgreSQL server', () => {
  it('two services that start at once on a new database both get ready, without demo data', async () => {
    const { url, remove } = await givenServerDatabase(server.url!, 'start');
    const settings = { DATABASE_URL: url, JWT_SECRET };

    const services = await Promise.all([startService(settings), startService(settings)]);

    expect(await Promise.all(services.map(({ url }) => statusOf(url, '/health/ready')))).toEqual([200, 200]);
    const ends = await Promise.all(services.map(({ stop }) => stop()));
    expect(ends).toMatchObject([
      { code: 0, stdout: expect.not.stringContaining('demo'), stderr: '' },
      { code: 0, stdout: expect.not.stringContaining('demo'), stderr: '' },
    ]);
    for (const { stdout } of ends) {
      const warnings = stdout.split('\n').filter((line) => line.includes('Payments are not set up'));
      expect(warnings).toEqual([expect.stringMatching(/"level":40.*STRIPE_SECRET_KEY.*TEST_CHECKOUT=on/)]);
    }
    expect(await readRows(settings, sql`select id from users`)).toEqual([]);
    const applied = await readRows(
      settings,
      sql<{ name: string }>`select name from mikro_orm_migrations order by name`,
    );
    const files = (await readdir(MIGRATIONS)).filter((file) => file.endsWith('.ts'));
    expect(applied.map(({ name }) => `${name}.ts`)).toEqual(files.sort());
    await remove();
  });
});
