import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findProcedure } from '../../server/api/procedures.ts';
import { workOff } from '../../server/database/background.ts';
import { query } from '../../server/database/query.ts';
import { ERASURE_SWEEP } from '../../server/domain/account/erasure.ts';
import { PERSONAL_DATA } from '../../server/domain/account/personalData.ts';
import { makeCaller, refusalOf } from '../harness/caller.ts';
import { errorOf } from '../harness/client.ts';
import { CARD_DATA, eventsOf } from '../harness/events.ts';
import { databaseUrl, testService, withOwnDatabase } from '../harness/service.ts';
import {
  givenCard,
  givenComment,
  givenInvitation,
  givenKey,
  givenLink,
  givenMember,
  givenProject,
  givenToken,
  givenUser,
  givenWebhook,
  givenWorld,
  PASSWORD,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

withOwnDatabase();

const callerOf = async (user: TestUser) => makeCaller((await testService()).url, await givenToken(user));
const rowsOf = async (statement: ReturnType<typeof sql>) => query(await testDb(), statement);

describe('the list of personal data', () => {
  it('has every column of the database, once', async () => {
    const found = (await rowsOf(sql`
      select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and table_name <> 'mikro_orm_migrations'`)) as { name: string }[];
    const listed = Object.entries(PERSONAL_DATA).flatMap(([table, { about, secret, text, copies, other }]) =>
      [about, secret, text, copies, other].flat().map((column) => `${table}.${column}`),
    );

    expect(listed.toSorted()).toEqual(found.map(({ name }) => name).toSorted());
  });

  it('knows the primary keys, and every reference to a user', async () => {
    const keys = (await rowsOf(sql`
      select c.conrelid::regclass::text as table, array(select attname::text from unnest(c.conkey) with ordinality as k (number, at)
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number order by at) as columns
      from pg_constraint c where c.contype = 'p' and c.connamespace = 'public'::regnamespace`)) as Named[];
    const references = (await rowsOf(sql`
      select c.conrelid::regclass::text as table, array(select attname::text from pg_attribute a where a.attrelid = c.conrelid and a.attnum = any(c.conkey)) as columns
      from pg_constraint c where c.contype = 'f' and c.confrelid in ('users'::regclass)`)) as Named[];
    type Named = { table: string; columns: string[] };
    const nameOf = ({ table }: Named) => table.replaceAll('"', '');

    for (const key of keys.filter((key) => nameOf(key) in PERSONAL_DATA))
      expect([nameOf(key), PERSONAL_DATA[nameOf(key)]!.key]).toEqual([nameOf(key), key.columns]);
    for (const reference of references) {
      const column = reference.columns.find((name) => /user_id|_by$|owner_id/.test(name));
      expect([nameOf(reference), PERSONAL_DATA[nameOf(reference)]!.by]).toEqual([
        nameOf(reference),
        expect.arrayContaining([column]),
      ]);
    }
  });
});

describe('account.erase', () => {
  it('blanks the person and keeps the id, what they wrote, and who they were for others', async () => {
    const { asMember, asOwner, project, users } = await givenWorld();
    const card = await givenCard(project, { owner_id: users.member.id, title: `For ${users.member.email}` });
    const comment = await givenComment(project, card, users.member);
    const webhook = await givenWebhook(project, { created_by: users.member.id });
    await givenInvitation(project, users.member);
    const sent = await givenInvitation(project, { email: 'somebody@example.test' }, { invited_by: users.member.id });
    const { secret } = await givenKey(users.member);
    const before = await stored('users', users.member.id);

    const erased = await asMember.rpc.account.erase.mutate();

    expect(erased).toMatchObject({
      user_id: users.member.id,
      review: [{ table: 'cards', column: 'title', ids: [card] }],
      paused_webhooks: [webhook],
      removed: expect.arrayContaining([
        { table: 'sessions', rows: 1 },
        { table: 'api_keys', rows: 1 },
      ]),
    });
    expect(await stored('users', users.member.id)).toMatchObject({
      name: 'Erased user',
      email: `erased-${users.member.id}@erased.invalid`,
      is_active: false,
      email_confirmed_at: null,
    });
    expect(await stored('comments', comment)).toMatchObject({ user_id: users.member.id });
    expect(await stored('cards', card)).toMatchObject({ owner_id: null });
    expect(await stored('invitations', sent)).toBeUndefined();
    expect((await asOwner.rpc.members.list.query({})).members.map(({ user_id }) => user_id)).not.toContain(
      users.member.id,
    );
    expect(
      await rowsOf(sql`select user_created_at, erased_by from erasures where user_id = ${users.member.id}`),
    ).toEqual([{ user_created_at: new Date(before.created_at), erased_by: users.member.id }]);
    const { url } = await testService();
    for (const caller of [asMember.alone(), makeCaller(url, secret)])
      expect(await errorOf(caller.rpc.account.whoAmI.query())).toMatchObject({ status: 401 });
    const signIn = { email: users.member.email, password: PASSWORD };
    expect((await makeCaller(url).post('/v1/authenticate', signIn)).status).toBe(401);
  });

  it('writes events with ids alone, and leaves no address and no request id of the person', async () => {
    const { asMember, users } = await givenWorld();
    await asMember.post(
      '/services/operations/v1/operations/cards/create',
      { title: 'A card' },
      { 'X-Request-Id': 'chosen-by-them' },
    );

    const events = await eventsOf(() => asMember.post('/v1/account/erase', {}, { 'X-Request-Id': 'chosen-by-them' }));

    expect(events.map(({ type }) => type)).toEqual(['member.removed', 'user.erased']);
    expect(events.at(-1)).toMatchObject({
      user_id: users.member.id,
      subject_id: users.member.id,
      data: {},
      request_id: null,
    });
    const left = sql`select from audit_entries where user_id = ${users.member.id} and num_nonnulls(address, request_id) > 0
      union all select from events where request_id = 'chosen-by-them'`;
    expect(await rowsOf(left)).toEqual([]);
    const entries = await rowsOf(
      sql`select type from audit_entries where user_id = ${users.member.id} order by id desc limit 1`,
    );
    expect(entries).toEqual([{ type: 'user.erased' }]);
  });

  it('400 for the last owner of projects, which it names, and nothing changes', async () => {
    const { asOwner, users } = await givenWorld();
    const other = await givenProject({ name: 'Their other one' });
    await givenMember(users.owner, other, 'owner');
    await givenMember(await givenUser({ is_active: false }), other, 'owner');

    const refused = await refusalOf(asOwner.rpc.account.erase.mutate());

    expect(refused).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^This is the last owner of A project \(\d+\), Their other one \(\d+\)\. Make/),
    });
    expect(await stored('users', users.owner.id)).toMatchObject({ email: users.owner.email, is_active: true });
  });

  it('leaves invitations and mails to addresses that the person only claims to have', async () => {
    const [invited, claimed] = [await givenUser(), await givenUser({ email_confirmed_at: null })];
    const erasing = await givenUser();
    await givenLink({ kind: 'address_confirmation', email: invited.email, user_id: erasing.id });
    const project = await givenProject();
    const invitations = [await givenInvitation(project, invited), await givenInvitation(project, claimed)];
    for (const { email } of [invited, claimed]) await givenLink({ kind: 'password_reset', email });

    for (const user of [erasing, claimed]) await (await callerOf(user)).rpc.account.erase.mutate();

    for (const id of invitations) expect(await stored('invitations', id)).toBeDefined();
    const addresses = [invited.email, claimed.email];
    expect(await rowsOf(sql`select kind from mails where email = any(${addresses})`)).toEqual([
      { kind: 'password_reset' },
      { kind: 'password_reset' },
    ]);
  });

  it('422 without fresh proof', async () => {
    const { users } = await givenWorld();
    const caller = makeCaller((await testService()).url, await givenToken(users.member, { proven_at: null }));

    expect(await errorOf(caller.rpc.account.erase.mutate())).toMatchObject({ reason: 'proof_required' });
  });

  it('clears answers to calls of others that name the person, and no other ones', async () => {
    const { asOwner, asSuperadmin, project } = await givenWorld();
    const [name, email] = [`Ann "${randomUUID()}" O'Hara`, `${randomUUID()}@Example.test`];
    const create = (key: string) =>
      asSuperadmin.post(
        '/services/platforms/v1/users/create',
        { name, email, password: 'a long sentence' },
        { 'Idempotency-Key': key },
      );
    const { body } = await create('names them');
    await asOwner.post(
      '/services/operations/v1/operations/cards/create',
      { title: 'A card' },
      { 'Idempotency-Key': 'other' },
    );
    await asSuperadmin.post(
      '/services/platforms/v1/members/add',
      { email, role: 'member', project_id: project.id },
      { 'Idempotency-Key': 'a member' },
    );

    await asSuperadmin.rpc.users.erase.mutate({ id: body.data.user.id });

    expect((await create('names them')).headers.get('X-Error-Reason')).toBe('idempotency_answer_not_kept');
    expect(
      await rowsOf(
        sql`select key, answer is not null as has_answer from idempotency_keys where key in ('other', 'a member') order by key`,
      ),
    ).toEqual([
      { key: 'a member', has_answer: false },
      { key: 'other', has_answer: true },
    ]);
  });
});

describe('users.erase', () => {
  it('400 for the last superadmin with a password, also if two erase each other at once', async () => {
    await rowsOf(sql`update users set superadmin = false`);
    const [one, other] = [await givenUser({ superadmin: true }), await givenUser({ superadmin: true })];
    await givenUser({ superadmin: true, is_active: false });
    await givenUser({ superadmin: true, kind: 'service', password_hash: null });
    const [asOne, asOther] = [await callerOf(one), await callerOf(other)];

    const both = await Promise.allSettled([
      asOne.rpc.users.erase.mutate({ id: other.id }),
      asOther.rpc.users.erase.mutate({ id: one.id }),
    ]);

    expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const [left, asLeft] = both[0]!.status === 'fulfilled' ? [one, asOne] : [other, asOther];
    expect(await errorOf(asLeft.rpc.users.erase.mutate({ id: left.id }))).toMatchObject({ reason: 'last_superadmin' });
  });

  it('blanks a user whose new address somebody else has taken', async () => {
    const { asSuperadmin, users } = await givenWorld();
    const { id } = users.viewer;
    await givenUser({ email: `Erased-${id}@erased.invalid` });

    await asSuperadmin.rpc.users.erase.mutate({ id });

    expect(await stored('users', id)).toMatchObject({ email: expect.stringMatching(/^erased-\d+-.{36}@erased/) });
  });

  it('404 for an erased user, who can not be changed, invited, or made a member again', async () => {
    const { asSuperadmin, users, project } = await givenWorld();
    const { id } = users.viewer;
    await asSuperadmin.rpc.users.erase.mutate({ id });
    const { email } = await stored('users', id);

    expect(await errorOf(asSuperadmin.rpc.users.erase.mutate({ id }))).toMatchObject({ status: 404 });
    for (const changes of [{ is_active: true }, { name: 'Back' }, { password: 'a long sentence' }])
      expect(await errorOf(asSuperadmin.rpc.users.update.mutate({ id, ...changes }))).toMatchObject({ status: 404 });
    for (const change of ['activate', 'deactivate'] as const)
      expect(await errorOf(asSuperadmin.rpc.users[change].mutate({ id }))).toMatchObject({ status: 404 });
    const again = { project_id: project.id, role: 'member' } as const;
    expect(await errorOf(asSuperadmin.rpc.members.set.mutate({ ...again, user_id: id }))).toMatchObject({
      reason: 'unknown_reference',
    });
    expect(await errorOf(asSuperadmin.rpc.members.add.mutate({ ...again, email }))).toMatchObject({
      reason: 'not_registered',
    });
    await expect(rowsOf(sql`update users set is_active = true where id = ${id}`)).rejects.toThrow('users_erased_check');
  });

  it('needs the level of this version', () => {
    expect([findProcedure('users.erase')?.meta.level, findProcedure('account.erase')?.meta.level]).toEqual([3, 3]);
  });
});

describe.skipIf(!databaseUrl)('an erasure while other calls run', () => {
  it('leaves no session, no key and no membership behind, whatever wins', async () => {
    for (let round = 0; round < 10; round++) {
      const { asSuperadmin, asMember, users, project } = await givenWorld();
      const { id, email } = users.member;
      const further = await givenProject();
      const card = await givenCard(project);
      const { url } = await testService();
      await Promise.allSettled([
        makeCaller(url).post('/v1/authenticate', { email, password: PASSWORD }),
        asMember.rpc.keys.create.mutate({ name: 'A key', scopes: ['boards:read'] }),
        asSuperadmin.rpc.users.erase.mutate({ id }),
        asSuperadmin.alone().rpc.members.set.mutate({ user_id: id, role: 'member', project_id: further.id }),
        asMember.alone().rpc.comments.create.mutate({ card_id: card, comment: 'A comment' }),
      ]);
      expect(await stored('users', id)).toMatchObject({ name: 'Erased user' });
      const left = sql`select 'session' as what from sessions where user_id = ${id} union all select 'key' from api_keys where user_id = ${id}
        union all select 'member' from members where user_id = ${id}`;
      expect(await rowsOf(left)).toEqual([]);
    }
  });
});

it('a sweep a while later removes what calls that were under way have left', async () => {
  const { asSuperadmin, users } = await givenWorld();
  const { id } = users.viewer;
  await asSuperadmin.rpc.users.erase.mutate({ id });
  await rowsOf(
    sql`insert into events (type, user_id, surface, request_id, subject_id, data)
      values ('card.created', ${id}, 'rest', 'late', 1, ${CARD_DATA})`,
  );
  await rowsOf(
    sql`insert into audit_entries (type, user_id, surface, address) values ('session.started', ${id}, 'rest', '203.0.113.9')`,
  );
  const sweep = async () =>
    workOff(await testDb(), ERASURE_SWEEP, { rows: 10, pauseMilliseconds: 0, isStopped: () => false });
  const left = async () =>
    rowsOf(
      sql`select 1 from events where request_id = 'late' union all select 1 from audit_entries where user_id = ${id} and address is not null`,
    );

  await sweep();
  expect(await left()).toHaveLength(2);
  await rowsOf(sql`update erasures set erased_at = now() - interval '3 minutes' where user_id = ${id}`);
  await sweep();

  expect(await left()).toEqual([]);
});
