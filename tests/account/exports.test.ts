import { sql } from 'kysely';
import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { query } from '../../server/database/query.ts';
import { removeSome } from '../../server/database/removal.ts';
import { callForAccountWork } from '../../server/domain/account/accountCall.ts';
import { startAccountWork } from '../../server/domain/account/accountWork.ts';
import { EXPORT_REMOVAL, makeExport } from '../../server/domain/account/export.ts';
import type { ExportedRow } from '../../server/domain/account/personalRows.ts';
import { errorOf } from '../harness/client.ts';
import { withOwnDatabase } from '../harness/service.ts';
import {
  givenCard,
  givenComment,
  givenInvitation,
  givenKey,
  givenLink,
  givenMasterBoard,
  givenProject,
  givenWebhook,
  givenWorld,
  insert,
  PASSWORD,
  testDb,
} from '../harness/world.ts';

withOwnDatabase();

const change = async (statement: ReturnType<typeof sql>) => query(await testDb(), statement);

/** The contents of the test that it has. */
const textOf = (rows: ExportedRow[]) =>
  [...new Set(JSON.stringify(rows).match(/Of the \w+|Of superadmins|Their own words|of-owners/g))].toSorted();

describe('account.startExport', () => {
  it('has all rows about the caller, in parts, without secrets and without those of others', async () => {
    const { asMember, project, users } = await givenWorld();
    const card = await givenCard(project, { created_by: users.member.id, title: 'Theirs' });
    await givenCard(project, { created_by: users.owner.id, title: 'Of another' });
    for (let count = 0; count < 12; count++)
      await givenComment(project, card, users.member, { comment: `${count} ${'x'.repeat(100_000)}` });
    await givenComment(project, card, users.owner, { comment: 'Of another' });
    await givenKey(users.member, { name: 'Their key' });
    await change(sql`insert into recovery_codes (user_id, code_hash) values (${users.member.id}, 'a hash')`);

    expect(await asMember.rpc.account.startExport.mutate()).toEqual({ state: 'waiting' });
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'waiting', parts: 0, rows: [] });
    await makeExport(await testDb());

    const first = await asMember.rpc.account.getExport.query({});
    expect(first).toMatchObject({ state: 'ready', parts: expect.any(Number), expires_at: expect.any(Date) });
    expect(first.parts).toBeGreaterThan(2);
    const others = Array.from({ length: first.parts - 1 }, (_, at) =>
      asMember.rpc.account.getExport.query({ part: at + 2 }),
    );
    const rows = [first, ...(await Promise.all(others))].flatMap((part) => part.rows);
    const of = (table: string) => rows.filter((row) => row.table === table).map(({ row }) => row);
    expect(of('users')).toEqual([expect.objectContaining({ id: users.member.id, email: users.member.email })]);
    expect(of('comments')).toHaveLength(12);
    expect(of('cards')).toMatchObject([{ id: card, title: 'Theirs' }]);
    expect(of('api_keys')).toMatchObject([{ name: 'Their key' }]);
    expect(of('members')).toMatchObject([{ project_id: project.id, role: 'member' }]);
    expect(of('recovery_codes')).toHaveLength(1);
    expect(of('audit_entries')).toContainEqual(expect.objectContaining({ type: 'export.started' }));
    expect(JSON.stringify(rows)).not.toMatch(/argon2|password_hash|secret_hash|code_hash|Of another/);
    expect(await errorOf(asMember.rpc.account.getExport.query({ part: 99 }))).toMatchObject({ status: 422 });
  });

  it('has contents of projects and templates only for who may read them when it is made, and when it is fetched', async () => {
    const { asMember, asOwner, project, users } = await givenWorld();
    const { id: user_id } = users.member;
    const card = await givenCard(project, { created_by: user_id, title: 'Of the project' });
    const assigned = await givenCard(project, {
      owner_id: user_id,
      created_by: users.owner.id,
      title: 'Of the project',
    });
    await givenCard(project, { created_by: user_id, title: 'Of the trash', deleted_at: new Date() });
    await givenComment(project, card, users.member, { comment: 'Their own words' });
    await givenWebhook(project, { created_by: user_id, url: 'https://of-owners.example.test' });
    await givenMasterBoard({ board: { created_by: user_id, title: 'Of superadmins' } });
    await givenInvitation(project, { email: 'of-owners@example.test' }, { invited_by: user_id });
    const made = async (): Promise<ExportedRow[]> => {
      await asMember.rpc.account.startExport.mutate();
      await makeExport(await testDb());
      return (await asMember.rpc.account.getExport.query({})).rows;
    };
    const fetched = async () => (await asMember.rpc.account.getExport.query({})).rows;
    const set = async (role: 'owner' | 'viewer') =>
      asOwner.rpc.members.set.mutate({ user_id, role, project_id: project.id });

    expect(textOf(await made())).toEqual(['Of the project', 'Their own words']);
    await set('owner');
    expect(textOf(await made())).toEqual(['Of the project', 'Their own words', 'of-owners']);
    await set('viewer');
    expect(textOf(await fetched())).toEqual(['Of the project', 'Their own words']);
    await asOwner.rpc.members.remove.mutate({ user_id, project_id: project.id });

    const rows = await fetched();
    expect(textOf(rows)).toEqual(['Their own words']);
    const ofCards = rows.filter(({ table }) => table === 'cards').map(({ row }) => row);
    expect(ofCards).toContainEqual({ id: card, created_at: expect.any(String), created_by: user_id });
    expect(ofCards).toContainEqual({ id: assigned, created_at: expect.any(String), owner_id: user_id });
    await change(sql`delete from exports`);
    expect(textOf(await made())).toEqual(['Their own words']);
    await change(sql`update users set superadmin = true where id = ${user_id}`);
    await change(sql`delete from exports`);
    expect(textOf(await made())).toEqual([
      'Of superadmins',
      'Of the project',
      'Of the trash',
      'Their own words',
      'of-owners',
    ]);
    await change(sql`update users set superadmin = false where id = ${user_id}`);
    expect(textOf(await fetched())).toEqual(['Their own words']);
  });

  it('has nothing that is known of an address which the caller has not confirmed', async () => {
    const { asMember, project, users } = await givenWorld();
    await givenInvitation(await givenProject(), users.member);
    await givenLink({ kind: 'password_reset', email: users.member.email });
    const tables = async () => {
      await asMember.rpc.account.startExport.mutate();
      await makeExport(await testDb());
      return (await asMember.rpc.account.getExport.query({})).rows.map(({ table }) => table);
    };

    expect(await tables()).toEqual(expect.arrayContaining(['invitations', 'mails']));
    await change(sql`update users set email_confirmed_at = null where id = ${users.member.id}`);
    await givenInvitation(project, { email: 'sent@example.test' }, { invited_by: users.member.id });
    expect((await tables()).filter((table) => ['invitations', 'mails'].includes(table))).toEqual(['invitations']);
  });

  it('does not tell whether somebody else has an address, by what became of a mail to it', async () => {
    const { asMember, users } = await givenWorld();
    for (const state of ['dropped', 'sent'] as const)
      await givenLink({
        kind: 'address_confirmation',
        email: `${state}@example.test`,
        user_id: users.member.id,
        state,
      });
    await asMember.rpc.account.startExport.mutate();
    await makeExport(await testDb());

    const { rows } = await asMember.rpc.account.getExport.query({});
    const mails = rows.filter(({ table }) => table === 'mails').map(({ row }) => row);
    expect(mails).toMatchObject([{ email: 'dropped@example.test' }, { email: 'sent@example.test' }]);
    for (const field of ['state', 'sent_at', 'failures', 'error', 'next_attempt_at', 'leased_until'])
      expect(mails[0]).not.toHaveProperty(field);
  });

  it('is made once at a time, and three times a day', async () => {
    const { asMember, users } = await givenWorld();
    const count = async () => (await change(sql`select from exports where user_id = ${users.member.id}`)).length;

    await Promise.all([asMember, asMember.alone()].map(({ rpc }) => rpc.account.startExport.mutate()));
    expect(await count()).toBe(1);
    for (let made = 1; made < 3; made++) {
      await makeExport(await testDb());
      await asMember.rpc.account.startExport.mutate();
    }
    await makeExport(await testDb());
    expect(await errorOf(asMember.rpc.account.startExport.mutate())).toMatchObject({ reason: 'place_full' });
  });

  it('begins again after a kill, from the beginning, and fails after three of them', async () => {
    const { asMember } = await givenWorld();
    await asMember.rpc.account.startExport.mutate();
    const killed = async (attempts: number) =>
      change(
        sql`update exports set attempts = ${attempts}, leased_until = now() - interval '1 s' where state = 'waiting'`,
      );
    await killed(1);
    await change(sql`insert into export_parts select id, 7, '[]' from exports where state = 'waiting'`);

    await makeExport(await testDb());
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'ready', parts: 1 });

    await asMember.rpc.account.startExport.mutate();
    await killed(3);
    await makeExport(await testDb());
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'failed', parts: 0, rows: [] });
  });

  it('is left alone by a process that another one took over from, and while that one works', async () => {
    const { asMember } = await givenWorld();
    await asMember.rpc.account.startExport.mutate();
    await change(
      sql`update exports set attempts = 1, leased_until = now() + interval '1 minute' where state = 'waiting'`,
    );

    await makeExport(await testDb());

    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'waiting' });
    await change(sql`delete from exports`);
  });

  it('is removed after a day, and goes with the person', async () => {
    const { asMember, users } = await givenWorld();
    await asMember.rpc.account.startExport.mutate();
    await makeExport(await testDb());
    await removeSome(await testDb(), EXPORT_REMOVAL, { rows: 100 });
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'ready' });

    await change(sql`update exports set expires_at = now() - interval '1 s' where user_id = ${users.member.id}`);
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'none', parts: 0, rows: [] });
    await removeSome(await testDb(), EXPORT_REMOVAL, { rows: 100 });
    expect(await change(sql`select from exports where user_id = ${users.member.id}`)).toEqual([]);

    await insert('exports', { user_id: users.member.id });
    await makeExport(await testDb());
    await asMember.rpc.account.erase.mutate();
    expect(await change(sql`select from export_parts`)).toEqual([]);
  });

  it('needs fresh proof, to start and to fetch: a stolen token gets nothing', async () => {
    const { asMember, users } = await givenWorld();
    await asMember.rpc.account.startExport.mutate();
    await change(sql`update sessions set proven_at = null where user_id = ${users.member.id}`);

    expect(await errorOf(asMember.rpc.account.startExport.mutate())).toMatchObject({ reason: 'proof_required' });
    expect(await errorOf(asMember.rpc.account.getExport.query({}))).toMatchObject({ reason: 'proof_required' });
    await asMember.rpc.account.prove.mutate({ password: PASSWORD });
    expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'waiting' });
  });
});

it.each([
  ['', undefined],
  [', also if it can not write the file of erasures', import.meta.dirname],
])('a process makes exports when it is woken%s', async (_, file) => {
  const { asMember } = await givenWorld();
  const work = startAccountWork({
    db: await testDb(),
    log: pino({ level: 'silent' }),
    file,
    onDue: () => undefined,
  });
  await asMember.rpc.account.startExport.mutate();
  callForAccountWork();
  work.wake();

  await vi.waitFor(
    async () => expect(await asMember.rpc.account.getExport.query({})).toMatchObject({ state: 'ready' }),
    5000,
  );

  await work.stop();
});
