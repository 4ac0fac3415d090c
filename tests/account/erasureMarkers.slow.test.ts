import { execFile } from 'node:child_process';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect } from '../../server/database/connect.ts';
import { type Db, query } from '../../server/database/query.ts';
import { PERSONAL_DATA } from '../../server/domain/account/personalData.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { makeCaller } from '../harness/caller.ts';
import { givenDemoDirectory, givenDemoSettings, givenDirectory, removeProcesses, signIn } from '../harness/process.ts';
import { isNight } from '../harness/sample.ts';
import { findDumpTools, findTestServer, givenServerDatabase, type ServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import { startNode } from '../harness/usedService.ts';

const run = promisify(execFile);
const server = await findTestServer();
const hasTools = await findDumpTools(server.url);
if (!hasTools)
  console.log(
    '\nSKIPPED: markers in a dump of a server. It needs a PostgreSQL server, and the tools of its version.\n',
  );

afterAll(removeProcesses);

const NAME = 'marker-name';
const EMAIL = 'marker-address@example.test';
const OLD_EMAIL = 'marker-earlier@example.test';
const FROM = { 'X-Forwarded-For': '203.0.113.77', 'X-Request-Id': 'marker-request' };
const MARKER = /marker-|203\.0\.113\.77/i;

/** The columns with a marker, in all rows of all tables. */
async function markedColumns(db: Db): Promise<string[]> {
  const tables = await query(
    db,
    sql<{ name: string }>`select tablename::text as name from pg_tables where schemaname = 'public' order by 1`,
  );
  const marked = new Set<string>();
  for (const { name } of tables) {
    const rows = await query(db, sql<{ row: object }>`select to_jsonb(t) as row from ${sql.table(name)} t`);
    for (const { row } of rows)
      for (const [column, value] of Object.entries(row))
        if (MARKER.test(JSON.stringify(value))) marked.add(`${name}.${column}`);
  }
  return [...marked].toSorted();
}

/** Columns with texts that the service itself writes about a person; others have ids, numbers and times. */
const WRITTEN = [
  'api_keys.name',
  'audit_entries.address',
  'audit_entries.request_id',
  'events.request_id',
  'export_parts.data',
  'idempotency_keys.answer',
  'idempotency_keys.key',
  'identities.issuer',
  'identities.subject',
  'invitations.email',
  'mails.data',
  'mails.email',
  'mails.error',
  'members.issuer',
  'sessions.issuer_session',
  'sso_flows.claims',
  'users.email',
  'users.language',
  'users.name',
];

/** Uses the service as a person does, and as others do who have to do with them. Returns the id of the person. */
async function plantMarkers(url: string, db: Db): Promise<{ id: number; token: string }> {
  const [admin, owner] = [await signIn(url, 'admin@demo.test'), await signIn(url, 'owner@demo.test')];
  const keyed = (key: string) => ({ 'Idempotency-Key': key });
  const person = { name: NAME, email: OLD_EMAIL, password: 'a long sentence', language: 'marker-language' };
  const { body } = await admin.post('/services/platforms/v1/users/create', person, keyed('create'));
  const { id } = body.data.user;
  await query(db, sql`insert into mails (kind, email, user_id) values ('address_changed', ${OLD_EMAIL}, ${id})`);
  await admin.post('/services/platforms/v1/users/update', { id, email: EMAIL }, keyed('update'));
  const invited = await owner.rpc.members.invite.mutate({ email: EMAIL, role: 'member', project_id: 1 });
  await query(
    db,
    sql`insert into mails (kind, email, error, state) values ('password_reset', ${EMAIL}, 'marker-error', 'failed')`,
  );

  const sent = { email: EMAIL, password: 'a long sentence' };
  await makeCaller(url).post('/v1/authenticate', { ...sent, password: 'wrong' }, FROM);
  const signedIn = await makeCaller(url).post('/v1/authenticate', sent, FROM);
  const self = makeCaller(url, signedIn.body.data.token);
  await self.post('/v1/account/accept-invitation', { id: invited.invitation.id }, FROM);
  await self.post(
    '/services/operations/v1/operations/cards/create',
    { title: 'A card' },
    { ...FROM, ...keyed('marker-key') },
  );
  await self.rpc.keys.create.mutate({ name: 'marker-key-name', scopes: ['boards:read'] });
  await owner.rpc.members.set.mutate({ user_id: id, role: 'owner', project_id: 1 });
  await self.rpc.members.invite.mutate({ email: 'marker-guest@example.test', role: 'viewer', project_id: 1 });
  await query(
    db,
    sql`insert into mails (kind, email, user_id, data) values ('key_created', ${EMAIL}, ${id}, '{"name": "marker-key-name"}')`,
  );
  await query(
    db,
    sql`
      with linked as (
        insert into identities (user_id, issuer, subject) values (${id}, 'https://marker-issuer.test', 'marker-subject')
      ), signed_in as (update sessions set issuer_session = 'marker-session' where user_id = ${id}
      ), joined as (update members set issuer = 'marker-issuer' where user_id = ${id})
      insert into sso_flows (state_hash, issuer, purpose, challenge, nonce, claims, expires_at) values
        ('one', 'company', 'sign_in', '', '', ${JSON.stringify({ sub: 'marker-subject' })}::jsonb, now() + interval '1 day'),
        ('two', 'company', 'sign_in', '', '', ${JSON.stringify({ sub: 'x', email: EMAIL })}::jsonb, now() + interval '1 day')`,
  );
  await self.rpc.account.startExport.mutate();
  await vi.waitFor(async () => expect((await self.rpc.account.getExport.query({})).state).toBe('ready'), 60_000);
  return { id, token: self.token! };
}

describe('unique markers in every column that the service writes about a person', { timeout: 180_000 }, () => {
  it('are gone after the erasure, and after the restore of an older backup', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const settings = { DATA_DIR, TRUST_PROXY: '1' };
    const service = await startNode(settings);
    const { id, token } = await plantMarkers(service.url, service.database.db);
    expect(await markedColumns(service.database.db)).toEqual(WRITTEN);
    await service.stop();
    const backup = join(await givenDirectory(), 'before.tar.gz');
    await runCommandLine(['database', 'backup', '--file', backup], () => settings);

    const again = await startNode(settings);
    const erased = await makeCaller(again.url, token).post('/v1/account/erase', {}, FROM);
    expect(erased).toMatchObject({ status: 200, body: { data: { user_id: id } } });
    expect(await markedColumns(again.database.db)).toEqual([]);
    const file = join(DATA_DIR, 'erasures.jsonl');
    await vi.waitFor(
      async () => expect(await readFile(file, 'utf8')).toMatch(new RegExp(`^{"user_id":${id},.*}\n$`)),
      20_000,
    );
    await again.stop();

    const restored = join(await givenDirectory(), 'restored');
    const restore = (...options: string[]) =>
      runCommandLine(['database', 'restore', '--file', backup, ...options], () => ({ DATA_DIR: restored }));
    expect(await restore()).toMatchObject({ exitCode: 2, complaint: expect.stringContaining('--erasures FILE') });
    expect(await restore('--erasures', backup)).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining('is not a file of erasures'),
    });
    expect((await restore('--erasures', file)).printed).toContain('Erased 1 person again.');
    const node = await startNode({ DATA_DIR: restored });
    expect(await markedColumns(node.database.db)).toEqual([]);
    expect((await fetch(`${node.url}/health/ready`)).status).toBe(200);
    await node.stop();
    expect(await readFile(join(restored, 'erasures.jsonl'), 'utf8')).toBe(await readFile(file, 'utf8'));
  });

  it('are in all columns with texts about a person', () => {
    const written = new Set(WRITTEN);
    const unmarked = Object.entries(PERSONAL_DATA).flatMap(([table, { about }]) =>
      about
        .filter(
          (column) =>
            /name|email|address|error|data|language|request|key$|issuer|subject|claims/.test(column) &&
            !/_at$|tour_key/.test(column),
        )
        .map((column) => `${table}.${column}`)
        .filter((name) => !written.has(name)),
    );

    expect(unmarked).toEqual([]);
  });
});

describe.skipIf(!hasTools || !isNight)(
  'the same markers in a dump of a PostgreSQL server',
  { timeout: 180_000 },
  () => {
    const databases: ServerDatabase[] = [];
    const givenSettings = async (made: Promise<ServerDatabase>) => {
      const database = await made;
      databases.push(database);
      return { DATABASE_URL: database.url, JWT_SECRET: 'the secret of a service with markers', TRUST_PROXY: '1' };
    };
    const linesWithMarkers = async ({ DATABASE_URL }: { DATABASE_URL: string }) => {
      const { stdout } = await run('pg_dump', [DATABASE_URL], { maxBuffer: 100_000_000 });
      return stdout.split('\n').filter((line) => MARKER.test(line));
    };
    afterAll(async () => {
      for (const { remove } of databases) await remove();
    });

    it('are gone after the erasure, and after pg_restore of an older dump', async () => {
      const used = await givenSettings(givenFilledDatabase('markers', 'demo'));
      const restored = await givenSettings(givenServerDatabase(server.url!, 'markers'));
      const directory = await givenDirectory();
      const [dump, ERASURES_FILE] = [join(directory, 'before.dump'), join(directory, 'erasures.jsonl')];
      const service = await startNode({ ...used, ERASURES_FILE });
      const { id, token } = await plantMarkers(service.url, service.database.db);
      expect(await markedColumns(service.database.db)).toEqual(WRITTEN);
      await run('pg_dump', ['--format=custom', `--file=${dump}`, used.DATABASE_URL]);

      expect((await makeCaller(service.url, token).post('/v1/account/erase', {}, FROM)).status).toBe(200);
      expect(await linesWithMarkers(used)).toEqual([]);
      await vi.waitFor(async () => expect(await readFile(ERASURES_FILE, 'utf8')).toContain(`"user_id":${id},`), 20_000);
      await service.stop();

      await run('pg_restore', ['--no-owner', '--single-transaction', `--dbname=${restored.DATABASE_URL}`, dump]);
      expect(await linesWithMarkers(restored)).not.toEqual([]);
      const node = await startNode({ ...restored, ERASURES_FILE });
      expect((await fetch(`${node.url}/health/ready`)).status).toBe(200);
      expect(await linesWithMarkers(restored)).toEqual([]);
      await node.stop();
    });
  },
);

describe('a database that was restored by other means', { timeout: 180_000 }, () => {
  it('serves nobody until it is told of the erasures, by a command, or by ERASURES_FILE', async () => {
    const settings = await givenDemoSettings();
    const first = await startNode(settings);
    const { token } = await signIn(first.url);
    const database = first.database.db;
    const [member] = await query(
      database,
      sql<{ id: number; created_at: Date }>`select id, created_at from users where email = 'member@demo.test'`,
    );
    await first.stop();
    const lines = join(await givenDirectory(), 'erasures.jsonl');
    const times = { user_created_at: member!.created_at, erased_at: new Date() };
    const other = { ...times, user_id: 1, user_created_at: new Date(0) };
    await appendFile(
      lines,
      `{"user_id":3,"user_cre\n${JSON.stringify({ user_id: member!.id, ...times })}\n${JSON.stringify(other)}\n`,
    );
    const command = (...words: string[]) => runCommandLine(words, () => settings);
    expect((await command('database', 'mark-restored')).printed).toContain('erasures apply FILE');

    const due = await startNode(settings);
    const ready = await fetch(`${due.url}/health/ready`);
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('erasures')]);
    expect((await fetch(`${due.url}/health/live`)).status).toBe(200);
    const call = await makeCaller(due.url, token).post('/v1/account/who-am-i');
    expect(call).toMatchObject({ status: 429, body: { message: expect.stringContaining('restored') } });
    await due.stop();

    const told = await startNode({ ...settings, ERASURES_FILE: lines });
    expect((await fetch(`${told.url}/health/ready`)).status).toBe(200);
    expect((await makeCaller(told.url, token).post('/v1/account/who-am-i')).status).toBe(401);
    expect((await (await signIn(told.url, 'owner@demo.test')).post('/v1/account/who-am-i')).status).toBe(200);
    await told.stop();

    expect((await command('erasures', 'list')).printed).toContain(`"user_id":${member!.id},`);
    expect((await command('erasures', 'apply', lines)).printed).toMatch(
      /^Erased 0 persons again\. 1 person of the file is not in this database: /,
    );
    const empty = join(await givenDirectory(), 'cut-off.jsonl');
    await appendFile(empty, '');
    expect(await command('erasures', 'apply', empty)).toMatchObject({
      exitCode: 1,
      complaint: expect.stringContaining('has no erasures'),
    });
    await command('database', 'mark-restored');
    expect((await command('erasures', 'none')).exitCode).toBe(0);
    const free = await connect(readSettings(settings));
    expect(await query(free.db, sql`select from database_state where erasures_due_at is not null`)).toEqual([]);
    await free.close();
  });
});
