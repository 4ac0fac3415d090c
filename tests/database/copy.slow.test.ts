import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { connect, type Database } from '../../server/database/connect.ts';
import { IN_MEMORY } from '../../server/database/embedded/location.ts';
import { TABLES_WITHOUT_ENTITY } from '../../server/database/options.ts';
import { query } from '../../server/database/query.ts';
import { copyDatabase } from '../../server/database/transfer/copy.ts';
import {
  contentOf,
  describeTable,
  insertPage,
  readPages,
  useSameText,
} from '../../server/database/transfer/tableText.ts';
import { readSettings } from '../../server/runtime/env.ts';
import { holdTimeStep } from '../harness/codes.ts';
import {
  givenCopyOf,
  givenDemoDirectory,
  givenDirectory,
  migratedArchive,
  readRows,
  removeProcesses,
} from '../harness/process.ts';
import { findTestServer, onServer, type ServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import { givenTerminal } from '../harness/terminal.ts';
import {
  everythingIn,
  everythingOf,
  expectStillUsed,
  signInWithCode,
  startNode,
  type Used,
  useService,
} from '../harness/usedService.ts';

// The first one makes templates of databases for all.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const server = await findTestServer();
const NEW_SECRET = 'the secret of the service on the server';

holdTimeStep();

/** A stopped service with demo data that was used; tests use copies of it. */
let directory: string;
let used: Used;

beforeAll(async () => {
  directory = await givenDemoDirectory();
  const service = await startNode({ DATA_DIR: directory });
  used = await useService(service.url);
  await service.stop();
  const source = await connect(readSettings({ DATA_DIR: directory }));
  // References to later rows, a JSON null, and an id that is used up.
  await query(source.db, sql`insert into theme_versions (id, theme_id, version) values (900, 1, '9.0')`);
  await query(source.db, sql`update theme_versions set replacement_version_id = 900 where id = 1`);
  await query(source.db, sql`update boards set brought = 'null' where id = 3`);
  await query(source.db, sql`select nextval(pg_get_serial_sequence('tags', 'id'))`);
  await query(source.db, sql`insert into invitations (project_id, email, role) values (1, 'ann@demo.test', 'member')`);
  await query(
    source.db,
    sql`
      with mail as (
        insert into mails (kind, email, invitation_id) select 'invitation', email, id from invitations returning id
      )
      insert into mail_links (secret_hash, mail_id, expires_at) select 'hash', id, now() from mail`,
  );
  await query(source.db, sql`insert into deletions (project_id, noun, subject_id) values (1, 'card', 1)`);
  await query(
    source.db,
    sql`
      with issuer as (
        insert into identity_issuers (issuer, jwks) values ('https://ci.test', '{"keys": []}') returning id
      ), rule as (
        insert into identity_rules (name, issuer_id, audience, subject, claims, user_id, scopes, lifetime_seconds)
        select 'CI', id, 'a', 's', '[{"name": "n", "value": 1}]', 6, '{cards:read}', 900 from issuer returning id
      )
      insert into identity_tokens_used (rule_id, token_hash, expires_at) select id, 'hash', now() from rule`,
  );
  await query(
    source.db,
    sql`insert into identities (user_id, issuer, subject) values (6, 'https://login.test', 'ann')`,
  );
  await query(
    source.db,
    sql`insert into sso_flows (state_hash, issuer, purpose, challenge, nonce, expires_at)
      values ('hash', 'company', 'sign_in', 'challenge', 'nonce', now())`,
  );
  await query(source.db, sql`insert into logout_tokens_used (token_hash, expires_at) values ('hash', now())`);
  await query(source.db, sql`insert into recovery_codes (user_id, code_hash) values (6, 'hash')`);
  await query(
    source.db,
    sql`
      with webhook as (
        insert into webhooks (project_id, url, secret, after_transaction, after_event)
        values (1, 'https://example.com/hook', 'sealed', '3', 0) returning id
      )
      insert into webhook_deliveries (webhook_id, number, type, attempt, status, milliseconds)
      select id, 1, 'webhook.test', 1, 'delivered', 5 from webhook`,
  );
  await query(
    source.db,
    sql`
      with rollout as (
        insert into rollouts (board_id, release_id, state, stages) values (1, 1, 'done', '[{"percent": 100}]') returning id
      ), target as (
        insert into rollout_targets (rollout_id, project_id, stage, state) select id, 1, 1, 'done' from rollout returning rollout_id
      )
      insert into rollout_changes (rollout_id, project_id, noun, copy_id, row_id) select rollout_id, 1, 'board', 2, 1 from target`,
  );
  await query(
    source.db,
    sql`with made as (insert into exports (user_id) values (6) returning id) insert into export_parts select id, 1, '[]' from made`,
  );
  await query(
    source.db,
    sql`insert into erasures (user_id, user_created_at) select id, created_at from users where id = 6`,
  );
  await query(source.db, sql`insert into tour_dismissals (user_id, card_id) select 6, id from cards limit 1`);
  await query(
    source.db,
    sql`insert into checkouts (subscription_id, plan_id, provider, price_cents, currency)
      select s.id, p.id, 'test', 1900, 'EUR' from subscriptions s, plans p limit 1`,
  );
  await source.close();
});
afterAll(removeProcesses);

const open = (DATA_DIR: string) => connect(readSettings({ DATA_DIR }));

describe('copying a database', () => {
  let source: Database;
  let target: Database;
  beforeAll(async () => {
    source = await open(directory);
  });
  afterAll(() => source.close());
  // Another embedded database stands for the server, so that these tests run everywhere.
  beforeEach(async () => {
    target = await open(`${IN_MEMORY}${await migratedArchive()}`);
  });
  afterEach(() => target.close());

  it('brings all rows, sequences, constraints and triggers, and changes nothing in the source', async () => {
    const before = await everythingIn(source.db);

    const copied = await copyDatabase(source, target);

    expect(await everythingIn(target.db)).toEqual(before);
    expect(await everythingIn(source.db)).toEqual(before);
    const counts = Object.entries(before.tables)
      .filter(([name]) => !TABLES_WITHOUT_ENTITY.includes(name))
      .map(([name, rows]) => [name, rows.length]);
    expect(copied).toEqual(Object.fromEntries(counts));
    expect(Object.entries(copied).filter(([, rows]) => rows === 0)).toEqual([]);
    const state = () => query(source.db, sql`select last_value::text, is_called from themes_id_seq`);
    expect(await query(target.db, sql`select last_value::text, is_called from themes_id_seq`)).toEqual(await state());
  });

  it('is refused if the target has rows, even if not all tables exist, and changes nothing', async () => {
    await query(target.db, sql`drop table theme_versions cascade`);
    await query(target.db, sql`insert into platforms (name) values ('Somebody')`);
    const before = await everythingIn(target.db);

    await expect(copyDatabase(source, target)).rejects.toThrow(
      'DATABASE_URL: the database is not empty: platforms has rows. Choose an empty one.',
    );

    expect(await everythingIn(target.db)).toEqual(before);
  });

  it('copies nothing if it fails at a row', async () => {
    await query(target.db, sql`alter table users add constraint nobody check (email not like 'otp@%')`);
    const before = await everythingIn(target.db);

    await expect(copyDatabase(source, target)).rejects.toThrow('violates check constraint "nobody"');

    expect(await everythingIn(target.db)).toEqual(before);
  });

  it('copies nothing if a value is not the same afterwards', async () => {
    await query(target.db, sql`create rule lost as on insert to tags do instead nothing`);

    await expect(copyDatabase(source, target)).rejects.toThrow(/^The copy of tags has 0 rows instead of \d+/);

    expect((await everythingIn(target.db)).tables).toMatchObject({ boards: [], tags: [], users: [] });
  });

  it('is refused if the tables of the source are older', async () => {
    await query(target.db, sql`insert into mikro_orm_migrations (name) values ('Migration30000101000000_later')`);

    await expect(copyDatabase(source, target)).rejects.toThrow(
      'DATA_DIR: its tables are those of an earlier version. Bring them up to date first: DATABASE_URL= npx deckhand migrate',
    );
  });

  it('keeps values of every type, in pages of any size', async () => {
    const columns = sql`id int generated always as identity, at timestamptz, day date, raw bytea, json jsonb, "odd ""name" text[],
      price numeric, ratio float8, span interval, twice int generated always as (id * 2) stored`;
    for (const { db } of [source, target]) await query(db, sql`create table things (${columns})`);
    await query(
      source.db,
      sql`insert into things (at, day, raw, json, "odd ""name", price, ratio, span) values
        ('2026-01-31 09:30:00.123456+02', '0001-01-01', '\\x00ff5c', 'null', array['a,b', null, 'NULL', '"\\', ''], 1.10, 0.1, '1 mon 2 days'),
        ('infinity', '4001-02-29 BC', '', '{"a": 1.000, "b": "\\u0001"}', '{}', 'NaN', '-Infinity', null),
        (null, null, null, null, null, null, null, null)`,
    );

    const table = await describeTable(source.db, 'things');
    await source.db.transaction().execute(async (from) => {
      await useSameText(from);
      for await (const page of readPages(from, table, 2)) await insertPage(target.db, table, page);
    });

    const contents = [source, target].map(({ db }) => query(db, sql`select t::text as line from things t order by id`));
    expect(await contents[1]).toEqual(await contents[0]);
    expect(await contents[1]).toHaveLength(3);
    expect(await contentOf(target.db, table)).toEqual(await contentOf(source.db, table));
    await query(target.db, sql`update things set raw = '\\x00ff5d' where id = 1`);
    expect(await contentOf(target.db, table)).not.toEqual(await contentOf(source.db, table));
    await query(source.db, sql`drop table things`);
  });
});

describe('deckhand database copy', () => {
  const copy = (settings: Record<string, string>, terminal = givenTerminal()) =>
    runCommandLine(['database', 'copy', '--without-erasures'], () => settings, terminal);

  it('1 without DATABASE_URL', async () => {
    expect(await copy({ DATA_DIR: directory })).toEqual({
      exitCode: 1,
      complaint: 'DATABASE_URL: must be set to the empty PostgreSQL database to copy to.',
    });
  });

  describe.skipIf(!server.url)('to a PostgreSQL server', () => {
    const made: Pick<ServerDatabase, 'remove'>[] = [];
    /** With all tables already, which the copy would create. */
    const givenUrl = async () => {
      const database = await givenFilledDatabase('copy', 'migrated');
      made.push(database);
      return database.url;
    };
    afterAll(async () => {
      for (const { remove } of made) await remove();
    });

    it('brings everything, as a role that owns the database and nothing else, and the service goes on with the secret that it names', async () => {
      const [role, password] = [`deckhand_copy_${randomBytes(6).toString('hex')}`, randomBytes(12).toString('hex')];
      await onServer(server.url!, `create role ${role} login password '${password}'`);
      await onServer(server.url!, `create database ${role} owner ${role}`);
      made.push({
        remove: async () => {
          await onServer(server.url!, `drop database ${role} with (force)`);
          await onServer(server.url!, `drop role ${role}`);
        },
      });
      const DATABASE_URL = Object.assign(new URL(server.url!), { username: role, password, pathname: `/${role}` }).href;
      const DATA_DIR = await givenCopyOf(directory);
      const before = await everythingOf({ DATA_DIR });
      const terminal = givenTerminal();

      const { exitCode, printed } = await copy({ DATABASE_URL, DATA_DIR }, terminal);

      expect(exitCode).toBe(0);
      expect(printed).toMatch(/^- Webhooks have been paused since 20.* run npx deckhand webhooks resume\.$/m);
      const secretPath = join(DATA_DIR, 'jwt-secret');
      expect(printed).toContain(
        `- Set JWT_SECRET to the content of ${secretPath}: sessions and second factors need it.`,
      );
      expect(printed).toContain('- Anybody can sign in as admin@demo.test, owner@demo.test,');
      const stored = readFileSync(secretPath, 'utf8');
      expect(printed).not.toContain(stored);
      expect(terminal.shown.join('')).toMatch(/\[#+-*\] \d+ of \d+ rows \(cards\)/);
      const after = await everythingOf({ DATABASE_URL, JWT_SECRET: stored });
      expect(after).toEqual(before);
      expect(await everythingOf({ DATA_DIR })).toEqual(before);

      const service = await startNode({ DATABASE_URL, JWT_SECRET: stored });
      await expectStillUsed(service.url, used);
      await service.stop();
      expect((await copy({ DATABASE_URL, DATA_DIR })).complaint).toMatch(/^DATABASE_URL: the database is not empty/);
    });

    it('names JWT_PREVIOUS_SECRETS if there is a new JWT_SECRET, and second factors work with both', async () => {
      const DATA_DIR = await givenCopyOf(directory);
      const settings = { DATABASE_URL: await givenUrl(), DATA_DIR, JWT_SECRET: NEW_SECRET };
      const terminal = givenTerminal([], { isPerson: false });

      const { printed } = await copy(settings, terminal);

      const secretPath = join(DATA_DIR, 'jwt-secret');
      expect(printed).toContain(`- Set JWT_PREVIOUS_SECRETS to the content of ${secretPath}: `);
      expect(terminal.shown).toEqual([]);
      const service = await startNode({ ...settings, JWT_PREVIOUS_SECRETS: readFileSync(secretPath, 'utf8') });
      await expectStillUsed(service.url, used);
      await service.stop();
      const withNewAlone = await startNode(settings);
      expect((await signInWithCode(withNewAlone.url)).status).toBe(200);
      await withNewAlone.stop();
    });

    it('lets webhooks go on with --resume-webhooks, behind all events that they got', async () => {
      const settings = {
        DATABASE_URL: await givenUrl(),
        DATA_DIR: await givenCopyOf(directory),
        JWT_SECRET: NEW_SECRET,
      };

      const { printed } = await runCommandLine(
        ['database', 'copy', '--resume-webhooks', '--without-erasures'],
        () => settings,
        givenTerminal(),
      );

      expect(printed).not.toContain('paused');
      const behind = sql`select from webhooks w, events e where (w.after_transaction, w.after_event) < (e.transaction_id, e.id)`;
      const both = [settings, { ...settings, DATABASE_URL: '' }].map((of) => readRows(of, behind));
      expect(await both[0]).toHaveLength((await both[1])!.length);
      expect(
        await readRows(settings, sql`select webhooks_paused_at as at, erasures_due_at as due from database_state`),
      ).toEqual([{ at: null, due: null }]);
    });

    it('says if second factors are encrypted with a secret that is not known', async () => {
      const DATA_DIR = await givenDemoDirectory();
      await (await startNode({ DATA_DIR, JWT_SECRET: NEW_SECRET })).stop();

      const unknown = await copy({ DATABASE_URL: await givenUrl(), DATA_DIR });
      const other = await copy({ DATABASE_URL: await givenUrl(), DATA_DIR, JWT_SECRET: `not ${NEW_SECRET}` });
      const same = await copy({ DATABASE_URL: await givenUrl(), DATA_DIR, JWT_SECRET: NEW_SECRET });

      expect(unknown.printed).toContain('- Set JWT_SECRET to that of the service so far:');
      expect(other.printed).toContain(
        '- Some second factors or webhooks are encrypted with a secret that is not known here:',
      );
      expect(same.printed).not.toContain('SECRET');
    });

    it('1 while the service runs, and without an embedded database, which is not created', async () => {
      const DATA_DIR = await givenCopyOf(directory);
      const service = await startNode({ DATA_DIR });
      const DATABASE_URL = await givenUrl();
      const nowhere = join(await givenDirectory(), 'nowhere');

      expect((await copy({ DATABASE_URL, DATA_DIR })).complaint).toMatch(/^DATA_DIR: .* is in use by another process/);
      expect(await copy({ DATABASE_URL, DATA_DIR: nowhere })).toEqual({
        exitCode: 1,
        complaint: `DATA_DIR: there is no embedded database in ${nowhere}.`,
      });
      expect(existsSync(nowhere)).toBe(false);
      await service.stop();
    });
  });
});
