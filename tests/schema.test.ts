import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { Migration20261115100300_clean_descriptions as CleanDescriptions } from '../server/database/migrations/Migration20261115100300_clean_descriptions.ts';
import { query } from '../server/database/query.ts';
import { testDatabase } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenProject,
  givenTag,
  givenTrial,
  givenUser,
  stored,
  testDb,
} from './harness/world.ts';

const refused = async (statement: RawBuilder<unknown>) =>
  query(await testDb(), statement).then(
    () => 'accepted',
    ({ code }) => code,
  );

const FOREIGN_KEY = '23503';
const UNIQUE = '23505';
const CHECK = '23514';

describe('the migration that cleans descriptions', () => {
  it('sanitises those of cards that were stored as sent, and keeps as text what is too deep', async () => {
    const { orm } = await testDatabase();
    const project = await givenProject();
    const given = (description: string) => givenCard(project, { description });
    const [plain, harmful, empty, deep] = [
      await given('plain'),
      await given('<p onclick="x()">a & b</p>'),
      await given('<script>x</script>'),
      await given('<b>'.repeat(101)),
    ];

    await new CleanDescriptions(orm.em.getDriver() as never, orm.config).up();

    const after = async (id: number) => (await stored('cards', id)).description;
    expect(await after(plain)).toBe('plain');
    expect(await after(harmful)).toBe('<p>a &amp; b</p>');
    expect(await after(empty)).toBeNull();
    expect(await after(deep)).toBe('&lt;b&gt;'.repeat(101));
  });
});

describe('the tables', () => {
  it('are what the entities say, but for the references that keep tenants apart and the index of searches', async () => {
    const { orm } = await testDatabase();

    const difference = (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split('\n').filter(Boolean);

    const known = /drop constraint "\w+_same_tenant_\w+"|drop index "cards_search_index"/;
    const unknown = difference.filter((statement) => !known.test(statement));
    expect(unknown).toEqual([]);
  });

  it('refuse a card in a group, with a tag or an owner of another project', async () => {
    const [project, other] = [await givenProject(), await givenProject()];
    const card = await givenCard(project);
    const change = (column: string, id: number) =>
      refused(sql`update cards set ${sql.ref(column)} = ${id} where id = ${card}`);

    expect(await change('group_id', await givenGroup(other, await givenBoard(other)))).toBe(FOREIGN_KEY);
    expect(await change('tag_id', await givenTag(other))).toBe(FOREIGN_KEY);
    expect(await change('owner_id', (await givenUser({ project: other })).id)).toBe(FOREIGN_KEY);
    expect(await change('platform_id', other.platform_id)).toBe(FOREIGN_KEY);
  });

  it('refuse a second copy of a master card in one project, deleted or not', async () => {
    const project = await givenProject();
    const { card: master_card_id } = await givenMasterBoard();
    await givenCard(project, { master_card_id, deleted_at: new Date() });

    const second = sql`insert into cards (project_id, platform_id, title, master_card_id) values (${project.id}, ${project.platform_id}, 'x', ${master_card_id})`;
    expect(await refused(second)).toBe(UNIQUE);
  });

  it('refuse a master card of a project, and a regular one of none', async () => {
    const { id, platform_id } = await givenProject();

    expect(
      await refused(
        sql`insert into cards (project_id, platform_id, title, is_master) values (${id}, ${platform_id}, 'x', true)`,
      ),
    ).toBe(CHECK);
    expect(await refused(sql`insert into cards (title) values ('x')`)).toBe(CHECK);
  });

  it('refuse two users with one e-mail address, in any case', async () => {
    const { email } = await givenUser();

    expect(
      await refused(sql`insert into users (name, email, password_hash) values ('x', ${email.toUpperCase()}, 'x')`),
    ).toBe(UNIQUE);
  });

  it('refuse a version that is published without approval', async () => {
    const { platform_id } = await givenProject();
    const theme = sql`with theme as (insert into themes (platform_id, name) values (${platform_id}, 'x') returning id)`;

    expect(
      await refused(
        sql`${theme} insert into theme_versions (theme_id, version, theme_status) select id, '1', 'published' from theme`,
      ),
    ).toBe(CHECK);
  });

  it('refuse a trial that has a plan, and a subscription of any other status without one', async () => {
    const { id } = await givenTrial(await givenProject());
    const change = (status: string, plan: RawBuilder<unknown>, paidAt: RawBuilder<unknown>) =>
      refused(
        sql`update subscriptions set status = ${status}, plan_id = ${plan}, paid_at = ${paidAt} where id = ${id}`,
      );
    const [none, plan, now] = [sql`null`, sql`(select min(id) from plans)`, sql`now()`];

    expect(await change('trial', plan, now)).toBe(CHECK);
    for (const status of ['paid', 'past_due', 'ended']) {
      expect(await change(status, none, now)).toBe(CHECK);
      expect(await change(status, plan, none)).toBe(CHECK);
      expect(await change(status, plan, now)).toBe('accepted');
    }
    expect(await change('gone', plan, now)).toBe(CHECK);
  });

  it('free the cards of a member who leaves', async () => {
    const project = await givenProject();
    const user = await givenUser({ project });
    const card = await givenCard(project, { owner_id: user.id });

    await query(await testDb(), sql`delete from members where user_id = ${user.id}`);

    expect(await stored('cards', card)).toMatchObject({ owner_id: null, project_id: project.id });
  });
});
