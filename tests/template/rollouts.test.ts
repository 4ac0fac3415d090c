import { type RawBuilder, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query, transact } from '../../server/database/query.ts';
import { measureRollouts } from '../../server/domain/template/rolloutReport.ts';
import { FIELDS } from '../../server/domain/template/templateSource.ts';
import { OVERWRITABLE } from '../../shared/rollout.ts';
import {
  edit,
  givenSynced,
  plan,
  publish,
  rollBack,
  rollOut,
  stateOf,
  targetsOf,
  workOffRollouts,
} from '../harness/rollout.ts';
import { databaseUrl } from '../harness/service.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  pushCard,
  reportOf,
  sync,
  type Template,
} from '../harness/template.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenProject,
  NOWHERE,
  stored,
  type TestProject,
  testDb,
} from '../harness/world.ts';

hideEarlierProjects();

const synced = async () => givenSynced(await givenTemplate());

const rename = ({ asSuperadmin, cards }: Template, title: string) =>
  asSuperadmin.rpc.masterCards.update.mutate({ id: cards[0], title });

const copyOf = async (project: TestProject, template: Template, at = 0) =>
  (await copiesIn(project, template)).find(({ master_card_id }) => master_card_id === template.cards[at]);

const change = async (statement: RawBuilder<unknown>) => query(await testDb(), statement);

const titleIn = async (project: TestProject, template: Template) => (await copyOf(project, template))?.title;

const releaseIn = async (project: TestProject, { board }: Template) => {
  const rows = await query(
    await testDb(),
    sql<{ number: number; pinned: number[] }>`
      select r.number, t.pinned from project_templates t left join releases r on r.id = t.release_id
      where t.project_id = ${project.id} and t.board_id = ${board}`,
  );
  return rows[0];
};

const newProject = async ({ asSuperadmin, projects, tool }: Template) => {
  const { platform_id } = projects[0];
  const { project } = await asSuperadmin.rpc.projects.create.mutate({ platform_id, name: 'New', tools: [tool] });
  return { id: project.id, platform_id };
};

/** A new card in the second group. */
const addCard = async ({ asSuperadmin, groups }: Template, title = 'Four') =>
  (await asSuperadmin.rpc.masterCards.create.mutate({ group_id: groups[1], title })).card.id;

describe('releases', () => {
  it('are published by a sync, if something has changed', async () => {
    const template = await synced();
    const { releases } = template.asSuperadmin.rpc;
    await sync(template);
    const listed = async () => (await releases.list.query({ board_id: template.board })).releases;
    expect(await listed()).toMatchObject([{ number: 1, rows_count: 6, projects_count: 2 }]);

    await rename(template, 'Uno');
    await sync(template);

    expect(await listed()).toMatchObject([
      { number: 2, projects_count: 2 },
      { number: 1, projects_count: 0 },
    ]);
  });

  it('of a push differ only in its part, and move the projects that had the one before', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: template.cards[1], title: 'Due' });
    const [first] = (await template.asSuperadmin.rpc.releases.list.query({ board_id: template.board })).releases;

    await pushCard(template, template.cards[0]);

    const { releases } = await template.asSuperadmin.rpc.releases.list.query({ board_id: template.board });
    const { differences } = await template.asSuperadmin.rpc.releases.compare.query({
      id: first!.id,
      with_id: releases[0]!.id,
    });
    expect(differences).toEqual([
      {
        noun: 'card',
        master_id: template.cards[0],
        title: 'Uno',
        change: 'changed',
        fields: [{ field: 'title', before: 'One', after: 'Uno' }],
      },
    ]);
    expect(await releaseIn(template.projects[0], template)).toMatchObject({ number: 2 });
  });

  it('are compared with the draft: added, changed, moved and removed rows', async () => {
    const template = await synced();
    const id = await publish(template);
    const { masterCards, masterGroups, releases } = template.asSuperadmin.rpc;
    const four = await addCard(template);
    await rename(template, 'Uno');
    await masterCards.reorder.mutate({ group_id: template.groups[1], cards: [{ id: template.cards[1], position: 9 }] });
    await masterCards.delete.mutate({ id: template.cards[2] });
    await masterGroups.update.mutate({ id: template.groups[0], title: 'Erste' });

    const { differences } = await releases.compare.query({ id });

    expect(differences.map(({ noun, master_id, change }) => [noun, master_id, change])).toEqual([
      ['group', template.groups[0], 'changed'],
      ['card', template.cards[0], 'changed'],
      ['card', template.cards[1], 'moved'],
      ['card', four, 'added'],
      ['card', template.cards[2], 'removed'],
    ]);
  });
});

describe('a rollout', () => {
  it('brings fields of cards, new rows and changed groups, and records the release', async () => {
    const template = await synced();
    const [project] = template.projects;
    await rename(template, 'Uno');
    await addCard(template);
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0], title: 'Erste' });

    const id = await rollOut(template);

    expect((await copiesIn(project, template)).map(({ title }) => title)).toEqual(['Uno', 'Two', 'Three', 'Four']);
    expect((await groupsIn(project, template)).map(({ title }) => title)).toEqual(['Erste', 'Second']);
    expect(await releaseIn(project, template)).toMatchObject({ number: 2 });
    expect(await stateOf(template, id)).toMatchObject({
      state: 'done',
      projects: { done: 2 },
      rows_added: 2,
      fields_changed: 4,
    });
  });

  it('keeps what a project edited, says what is in conflict, and brings it with overwrite', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await edit('cards', (await copyOf(first, template)).id, { title: 'Mine', short_description: 'Mine, too' });
    await rename(template, 'Uno');

    const id = await plan(template);
    const { lines } = await template.asSuperadmin.rpc.rollouts.preview.query({ id, project_id: first.id });
    expect(lines).toMatchObject([
      { noun: 'card', what: 'kept', field: 'short_description', before: 'Mine, too', after: null },
      { noun: 'card', what: 'conflict', field: 'title', before: 'Mine', after: 'Uno' },
    ]);
    await template.asSuperadmin.rpc.rollouts.start.mutate({ id });
    await workOffRollouts();
    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['Mine', 'Uno']);
    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'unchanged', fields_kept: 2, fields_in_conflict: 1 },
      { project_id: second.id, state: 'done', fields_changed: 1 },
    ]);

    await rollOut(template, { overwrite: ['title'] });

    expect(await copyOf(first, template)).toMatchObject({ title: 'Uno', short_description: 'Mine, too' });
  });

  it('takes a field that was set back to what the project got, and leaves one that was set back further', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    await rollOut(template);
    await edit('cards', (await copyOf(first, template)).id, { title: 'One' });
    await edit('cards', (await copyOf(second, template)).id, { title: 'Mine' });
    await edit('cards', (await copyOf(second, template)).id, { title: 'Uno' });
    await rename(template, 'Eins');

    await rollOut(template);

    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['One', 'Eins']);
  });

  it('never doubles anything when it runs again', async () => {
    const template = await synced();
    await addCard(template);
    await rollOut(template);
    const before = await copiesIn(template.projects[0], template);

    const id = await rollOut(template);

    expect(await copiesIn(template.projects[0], template)).toEqual(before);
    expect((await stateOf(template, id)).projects).toEqual({ unchanged: 2 });
  });

  it('goes stage by stage: it waits for its soak, or for advance', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const id = await rollOut(template, { stages: [{ projects: [first.id] }, { percent: 100 }] });
    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['Uno', 'One']);
    expect(await stateOf(template, id)).toMatchObject({ state: 'running', stage: 1, is_soaking: true, next_at: null });

    await template.asSuperadmin.rpc.rollouts.advance.mutate({ id });
    await workOffRollouts();

    expect(await titleIn(second, template)).toBe('Uno');
    expect(await stateOf(template, id)).toMatchObject({ state: 'done', stage: 2 });
  });

  it('begins the next stage by itself after the stored time of its soak', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const id = await rollOut(template, { stages: [{ projects: [first.id], soak_minutes: 60 }, { percent: 100 }] });
    expect((await stateOf(template, id)).next_at?.getTime()).toBeGreaterThan(Date.now() + 50 * 60_000);

    await edit2('rollouts', id, sql`next_at = now()`);
    await workOffRollouts();

    expect(await titleIn(second, template)).toBe('Uno');
  });

  it('stops when it is paused, goes on when resumed, and ends when aborted', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    const { rollouts } = template.asSuperadmin.rpc;
    const id = await plan(template);
    await rollouts.start.mutate({ id });
    await rollouts.pause.mutate({ id });
    await workOffRollouts();
    expect(await titleIn(template.projects[0], template)).toBe('One');

    await rollouts.resume.mutate({ id });
    await rollouts.abort.mutate({ id });
    await workOffRollouts();

    expect(await titleIn(template.projects[0], template)).toBe('One');
    await expect(rollouts.resume.mutate({ id })).rejects.toMatchObject({ status: 400, reason: 'rollout_state' });
  });

  it('is one at a time for each board', async () => {
    const template = await synced();
    const { rollouts } = template.asSuperadmin.rpc;
    const [one, two] = [await plan(template), await plan(template)];
    await rollouts.start.mutate({ id: one });

    await expect(rollouts.start.mutate({ id: two })).rejects.toMatchObject({ status: 400, reason: 'rollout_open' });
  });

  it('plans a project again that has changed, and leaves it out if it has gained a conflict, until it is retried', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const id = await plan(template);
    await edit('cards', (await copyOf(first, template)).id, { title: 'Mine' });
    await edit('cards', (await copyOf(second, template)).id, { short_description: 'Mine' });

    await template.asSuperadmin.rpc.rollouts.start.mutate({ id });
    await workOffRollouts();

    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'conflict', is_replanned: true, fields_in_conflict: 1 },
      { project_id: second.id, state: 'done', is_replanned: true },
    ]);
    await template.asSuperadmin.rpc.rollouts.retryFailed.mutate({ id });
    await workOffRollouts();
    expect(await targetsOf(template, id)).toMatchObject([{ state: 'unchanged' }, { state: 'done', attempts: 1 }]);
    expect(await titleIn(first, template)).toBe('Mine');
  });

  it.skipIf(!databaseUrl)('goes on past a project with a locked card, which fails and can be retried', async () => {
    const template = await synced();
    const [first] = template.projects;
    await rename(template, 'Uno');
    const copy = await copyOf(first, template);

    const id = await transact(await testDb(), async (db) => {
      await query(db, sql`select from cards where id = ${copy!.id} for update`);
      return rollOut(template);
    });

    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'failed', error: 'Other work kept a row of this project locked for too long.' },
      { state: 'done' },
    ]);
    await template.asSuperadmin.rpc.rollouts.resume.mutate({ id });
    await workOffRollouts();
    await template.asSuperadmin.rpc.rollouts.retryFailed.mutate({ id });
    await workOffRollouts();
    expect(await targetsOf(template, id)).toMatchObject([{ state: 'done', error: null }, { state: 'done' }]);
  });

  it('goes on past a project that a trigger refuses, and says why', async () => {
    const template = await synced();
    const [first] = template.projects;
    await rename(template, 'Uno');
    const name = sql.ref(`refuse_${template.board}`);
    await change(sql`
      create function ${name}() returns trigger language plpgsql as $$ begin
        if new.project_id = ${sql.lit(first.id)} and new.title = 'Uno' then raise exception 'Not here'; end if;
        return new; end $$`);
    await change(sql`create trigger ${name} before update on cards for each row execute function ${name}()`);

    const id = await rollOut(template);

    await change(sql`drop function ${name} cascade`);
    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'failed', error: 'The database refused a row: Not here' },
      { state: 'done' },
    ]);
  });

  it('stands still for as long as its steps fail', async () => {
    const template = await synced();
    const id = await plan(template);
    const idle = async () => (await measureRollouts(await testDb())).idleSeconds;
    await template.asSuperadmin.rpc.rollouts.start.mutate({ id });

    await change(
      sql`update rollouts set progressed_at = now() - interval '10 minutes', next_at = now() + interval '30 seconds' where id = ${id}`,
    );
    expect(await idle()).toBeGreaterThanOrEqual(600);
    await change(
      sql`update rollouts set is_soaking = true, stages = '[{"percent":50,"soak_minutes":60},{"percent":100}]' where id = ${id}`,
    );
    expect(await idle()).toBe(0);
    await workOffRollouts();
    await change(sql`update rollouts set state = 'aborted', next_at = null where id = ${id}`);
  });

  it('has an error for a project that the database refuses, pauses above its limit, and retries only that one', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const refused = `refuse_${template.board}`;
    const db = await testDb();
    await query(
      db,
      sql`alter table cards add constraint ${sql.ref(refused)} check (project_id <> ${sql.lit(first.id)} or title <> 'Uno') not valid`,
    );

    const id = await rollOut(template);

    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'failed', attempts: 1, error: `The database refused a row (${refused}).` },
      { project_id: second.id, state: 'done' },
    ]);
    expect(await stateOf(template, id)).toMatchObject({ state: 'paused', reason: 'failures' });
    await template.asSuperadmin.rpc.rollouts.resume.mutate({ id });
    await workOffRollouts();
    expect(await stateOf(template, id)).toMatchObject({ state: 'done', max_failed: 1 });
    await query(db, sql`alter table cards drop constraint ${sql.ref(refused)}`);
    await template.asSuperadmin.rpc.rollouts.retryFailed.mutate({ id });
    await workOffRollouts();
    expect(await targetsOf(template, id)).toMatchObject([
      { state: 'done', attempts: 2, error: null },
      { state: 'done', attempts: 1 },
    ]);
    expect(await stateOf(template, id)).toMatchObject({ state: 'done' });
  });

  it('pauses after a failure at the end of a stage, before the next one begins', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const refused = `refuse_end_${template.board}`;
    const db = await testDb();
    await query(
      db,
      sql`alter table cards add constraint ${sql.ref(refused)} check (project_id <> ${sql.lit(first.id)} or title <> 'Uno') not valid`,
    );

    const id = await rollOut(template, { stages: [{ projects: [first.id], soak_minutes: 0 }, { percent: 100 }] });

    expect(await stateOf(template, id)).toMatchObject({ state: 'paused', reason: 'failures', stage: 1 });
    expect(await titleIn(second, template)).toBe('One');
    await query(db, sql`alter table cards drop constraint ${sql.ref(refused)}`);
  });

  it('is aborted by a sync or push of its board, which says so', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    const id = await rollOut(template, { stages: [{ projects: [template.projects[0].id] }, { percent: 100 }] });

    await pushCard(template, template.cards[1]);

    expect(await stateOf(template, id)).toMatchObject({ state: 'aborted', reason: 'superseded' });
    const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board, limit: 1 });
    expect(runs).toMatchObject([{ aborted_rollout_id: id }]);
  });

  it('is aborted when its board is deleted', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    const id = await plan(template);
    const { rollouts, masterBoards } = template.asSuperadmin.rpc;
    await rollouts.start.mutate({ id });

    await masterBoards.delete.mutate({ id: template.board });
    await workOffRollouts();

    expect(await stateOf(template, id)).toMatchObject({ state: 'aborted' });
    expect(await titleIn(template.projects[0], template)).toBe('One');
  });

  it('reaches projects that were created meanwhile, and those created later get its release, not the draft', async () => {
    const template = await synced();
    const { rollouts } = template.asSuperadmin.rpc;
    await rename(template, 'Uno');
    const id = await plan(template);
    const create = () => newProject(template);
    await rollouts.start.mutate({ id });
    const meanwhile = await create();
    await workOffRollouts();
    await rename(template, 'Eins');

    const later = await create();

    expect([await titleIn(meanwhile, template), await titleIn(later, template)]).toEqual(['Uno', 'Uno']);
    expect(await releaseIn(later, template)).toMatchObject({ number: 2 });
    await sync(template);
    expect(await titleIn(await create(), template)).toBe('Eins');
    await rename(template, 'Not published');
    expect(await titleIn(await create(), template)).toBe('Eins');
  });

  it('skips a project that was deactivated', async () => {
    const template = await synced();
    const [first] = template.projects;
    await rename(template, 'Uno');
    const id = await plan(template);
    await template.asSuperadmin.rpc.projects.update.mutate({ id: first.id, is_active: false });
    await template.asSuperadmin.rpc.rollouts.start.mutate({ id });
    await workOffRollouts();

    expect((await targetsOf(template, id))[0]).toMatchObject({ project_id: first.id, state: 'skipped' });
    expect(await titleIn(first, template)).toBe('One');
  });

  it('reaches a project that was inactive at its turn, and one whose hold has ended', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    const { projects, rollouts, templates } = template.asSuperadmin.rpc;
    await edit('cards', (await copyOf(second, template)).id, { short_description: 'Mine' });
    const board_id = (await boardIn(second, template)).id;
    await templates.hold.mutate({ board_id });
    await template.asSuperadmin.rpc.masterCards.update.mutate({
      id: template.cards[0],
      title: 'Uno',
      short_description: 'Brought',
    });
    const id = await plan(template, { stages: [{ projects: [first.id] }, { percent: 100 }] });
    await projects.update.mutate({ id: first.id, is_active: false });
    await rollouts.start.mutate({ id });
    await workOffRollouts();
    await projects.update.mutate({ id: first.id, is_active: true });
    await templates.unhold.mutate({ board_id });

    await rollouts.advance.mutate({ id });
    await workOffRollouts();

    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['Uno', 'Uno']);
    expect(await targetsOf(template, id)).toMatchObject([{ state: 'done' }, { state: 'done', fields_in_conflict: 1 }]);
  });

  it('leaves the order of boards in new projects as that of the master boards', async () => {
    const template = await synced();
    const later = await givenBoard(NOWHERE, {
      is_master: true,
      title: 'Later',
      tool_key: template.tool,
      position: 1_000_000,
    });
    await query(await testDb(), sql`update boards set position = 999999 where id = ${template.board}`);
    await rename(template, 'Uno');
    await rollOut(template);
    const { id } = await newProject(template);

    const boards = await query(
      await testDb(),
      sql`select master_board_id from boards where project_id = ${id} and master_board_id is not null order by position, id`,
    );

    expect(boards.slice(-2)).toEqual([{ master_board_id: template.board }, { master_board_id: later }]);
  });

  it('of cards from before the upgrade: those never edited follow, of others only fields that equal the template', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    const db = await testDb();
    await query(db, sql`update cards set base_id = null where master_card_id = any(${template.cards}::int[])`);
    await edit('cards', (await copyOf(second, template)).id, { status: 'closed' });
    await rename(template, 'Uno');

    await rollOut(template);

    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['Uno', 'One']);
  });

  it('writes an event in each project that it changed, with who is behind it', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    const id = await rollOut(template);

    const events = await query(
      await testDb(),
      sql`select type, project_id, user_id, data from events where (data->>'rollout_id')::int = ${id} order by project_id`,
    );

    expect(events).toEqual(
      template.projects.map((project) => ({
        type: 'template.rolled_out',
        project_id: project.id,
        user_id: template.users.superadmin.id,
        data: { rollout_id: id, count: 1 },
      })),
    );
  });
});

const edit2 = async (table: string, id: number, set: ReturnType<typeof sql>) =>
  query(await testDb(), sql`update ${sql.table(table)} set ${set} where id = ${id}`);

it('a rollout can overwrite each field that it can bring', () => {
  expect(new Set<string>(OVERWRITABLE)).toEqual(new Set(Object.values(FIELDS).flat()));
});

it('stages must go up, and name a project once', async () => {
  const template = await synced();
  const [first] = template.projects;
  const wrong = [
    [{ percent: 0 }],
    [{ percent: 50 }, { percent: 50 }],
    [{ projects: [first.id] }, { projects: [first.id] }],
    [{ projects: [first.id], percent: 10 }],
    [{}],
  ];

  for (const stages of wrong)
    await expect(plan(template, { stages }), JSON.stringify(stages)).rejects.toMatchObject({ status: 422 });
});

describe('a hold', () => {
  it('leaves the project out of syncs, pushes and rollouts, which say so, until it ends', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    const board_id = (await boardIn(first, template)).id;
    const { templates } = template.asSuperadmin.rpc;
    await templates.hold.mutate({ board_id, note: 'Launch' });
    await rename(template, 'Uno');
    await addCard(template);

    await sync(template);
    expect(await reportOf(template)).toMatchObject([
      { project_id: first.id, outcome: 'skipped', reason: 'held' },
      { project_id: second.id, outcome: 'added' },
      { reason: 'no_access' },
    ]);
    await pushCard(template, template.cards[0]);
    const id = await rollOut(template);

    expect(await targetsOf(template, id)).toMatchObject([
      { project_id: first.id, state: 'held', is_held: true },
      { project_id: second.id },
    ]);
    expect((await copiesIn(first, template)).map(({ title }) => title)).toEqual(['One', 'Two', 'Three']);
    await templates.unhold.mutate({ board_id });
    await template.asSuperadmin.rpc.rollouts.retryFailed.mutate({ id });
    await workOffRollouts();
    expect((await copiesIn(first, template)).map(({ title }) => title)).toEqual(['Uno', 'Two', 'Three', 'Four']);
  });

  it('must end in the future, within a year, and be of a board from a template', async () => {
    const template = await synced();
    const board_id = (await boardIn(template.projects[0], template)).id;
    const { templates, boards } = template.asSuperadmin.rpc;
    const hold = (until: Date) => templates.hold.mutate({ board_id, until });

    await expect(hold(new Date(Date.now() - 1000))).rejects.toMatchObject({ status: 422 });
    await expect(hold(new Date(Date.now() + 400 * 86_400_000))).rejects.toMatchObject({ status: 422 });
    const { board } = await boards.create.mutate({ title: 'Own' });
    await expect(templates.hold.mutate({ board_id: board.id })).rejects.toMatchObject({ reason: 'not_from_template' });
  });
});

describe('a rollback', () => {
  it('restores what the project did not change, and leaves what it did', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await template.asSuperadmin.rpc.masterCards.update.mutate({
      id: template.cards[0],
      title: 'Uno',
      short_description: 'Short',
    });
    await template.asSuperadmin.rpc.masterGroups.update.mutate({ id: template.groups[0], title: 'Erste' });
    const before = [await copyOf(first, template), await copyOf(second, template)];
    const id = await rollOut(template);
    await edit('cards', before[0].id, { title: 'Mine' });

    await rollBack(template, id);

    expect(await copyOf(first, template)).toMatchObject({ title: 'Mine', short_description: null });
    const internal = {
      updated_at: expect.any(Date),
      version: 3,
      base_id: expect.any(Number),
      base_values: expect.any(Object),
    };
    expect(await copyOf(second, template)).toEqual({ ...before[1], ...internal });
    expect((await groupsIn(first, template)).map(({ title }) => title)).toEqual(['First', 'Second']);
    expect(await targetsOf(template, id)).toMatchObject([
      { state: 'rolled_back', fields_restored: 2, left_by_rollback: 1 },
      { state: 'rolled_back', fields_restored: 3, left_by_rollback: 0 },
    ]);
    const { lines } = await template.asSuperadmin.rpc.rollouts.preview.query({ id, project_id: first.id });
    expect(lines.map(({ what, field }) => [what, field])).toEqual([
      ['restored', 'short_description'],
      ['left', 'title'],
      ['restored', 'title'],
    ]);
  });

  it('removes rows that it added and nobody touched, for good, and leaves those that somebody did', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    const { masterGroups, masterCards } = template.asSuperadmin.rpc;
    const { group } = await masterGroups.create.mutate({ board_id: template.board, title: 'Third' });
    const { card } = await masterCards.create.mutate({ group_id: group.id, title: 'Four' });
    const id = await rollOut(template);
    const copyIn = async ({ id: project_id }: TestProject) =>
      (
        await query(
          await testDb(),
          sql<any>`select * from cards where project_id = ${project_id} and master_card_id = ${card.id}`,
        )
      )[0];
    await givenComment(first, (await copyIn(first)).id, template.users.superadmin);

    await rollBack(template, id);

    expect(await copyIn(first)).toMatchObject({ deleted_at: null });
    expect(await copyIn(second)).toBeUndefined();
    expect(await targetsOf(template, id)).toMatchObject([
      { rows_removed: 0, left_by_rollback: 2 },
      { rows_removed: 2, left_by_rollback: 0 },
    ]);
    const { releases } = template.asSuperadmin.rpc;
    expect((await releases.list.query({ board_id: template.board })).releases[1]).toMatchObject({ projects_count: 2 });
  });

  it('stays undone after syncs, pushes and rollouts, until the content changes or is unpinned', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const four = await addCard(template);
    await rollBack(template, await rollOut(template));
    const titles = async (project: TestProject) => (await copiesIn(project, template)).map(({ title }) => title);
    const old = ['One', 'Two', 'Three'];

    for (let again = 0; again < 3; again++) await sync(template);
    expect(await releaseIn(first, template)).toMatchObject({ number: 1 });
    await pushCard(template, template.cards[0]);
    await pushCard(template, four);
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: template.cards[1], title: 'Due' });
    await rollOut(template);

    expect(await titles(first)).toEqual(['One', 'Due', 'Three']);
    expect(await releaseIn(first, template)).toMatchObject({ number: 3 });
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: four, title: 'Quattro' });
    await rollOut(template);
    expect(await titles(first)).toEqual(['One', 'Due', 'Three', 'Quattro']);
    await template.asSuperadmin.rpc.templates.unpin.mutate({ board_id: (await boardIn(second, template)).id });
    await rollOut(template);
    expect([await titles(first), await titles(second)]).toEqual([
      ['One', 'Due', 'Three', 'Quattro'],
      ['Uno', 'Due', 'Three', 'Quattro'],
    ]);
    expect(old).toContain(await titleIn(first, template));
  });

  it('lets copies from before the upgrade follow later releases again', async () => {
    const template = await synced();
    const [first] = template.projects;
    await query(
      await testDb(),
      sql`update cards set base_id = null where master_card_id = any(${template.cards}::int[])`,
    );
    await rename(template, 'Uno');
    await rollBack(template, await rollOut(template));
    expect(await titleIn(first, template)).toBe('One');

    await rename(template, 'Tre');
    await rollOut(template);

    expect(await titleIn(first, template)).toBe('Tre');
  });

  it('restores a field that a push of other fields left alone, and it follows again', async () => {
    const template = await synced();
    const [first] = template.projects;
    const update = (fields: object) =>
      template.asSuperadmin.rpc.masterCards.update.mutate({ id: template.cards[0], ...fields });
    await update({ title: 'Uno' });
    const id = await rollOut(template);
    await update({ short_description: 'Pushed' });
    await pushCard(template, template.cards[0]);

    await rollBack(template, id);
    expect(await copyOf(first, template)).toMatchObject({ title: 'One', short_description: 'Pushed' });

    await update({ title: 'Tre' });
    await rollOut(template);
    expect(await titleIn(first, template)).toBe('Tre');
  });

  it('of a plan that was never started is refused', async () => {
    const template = await synced();
    const { rollouts } = template.asSuperadmin.rpc;
    const id = await plan(template);
    await rollouts.abort.mutate({ id });

    await expect(rollouts.rollback.mutate({ id })).rejects.toMatchObject({ reason: 'rollout_state' });
  });

  it('of half a rollout takes back what was done, and new projects get what was there before', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    await rename(template, 'Uno');
    const id = await rollOut(template, { stages: [{ projects: [first.id] }, { percent: 100 }] });

    await rollBack(template, id);

    expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['One', 'One']);
    expect(await stateOf(template, id)).toMatchObject({
      state: 'rolled_back',
      projects: { rolled_back: 1, planned: 1 },
    });
    expect(await titleIn(await newProject(template), template)).toBe('One');
  });
});

describe('a later rollout', () => {
  it('is rolled back first, and an earlier one is not retried after it', async () => {
    const template = await synced();
    const { rollouts, templates } = template.asSuperadmin.rpc;
    const board_id = (await boardIn(template.projects[0], template)).id;
    await templates.hold.mutate({ board_id });
    await rename(template, 'Uno');
    const first = await rollOut(template);
    await templates.unhold.mutate({ board_id });
    await rename(template, 'Eins');
    const second = await rollOut(template);

    await expect(rollouts.retryFailed.mutate({ id: first })).rejects.toMatchObject({ reason: 'rollout_state' });
    await expect(rollouts.rollback.mutate({ id: first })).rejects.toMatchObject({
      message: `Roll back rollout ${second} first, which came after this one.`,
    });
    await rollBack(template, second);
    await rollBack(template, first);
    expect(await titleIn(template.projects[1], template)).toBe('One');
  });

  it('brings the position of a group again that was rolled back, once it is another one', async () => {
    const template = await synced();
    const { masterGroups } = template.asSuperadmin.rpc;
    const [one, two] = template.groups;
    const place = (first: number, second: number) =>
      masterGroups.reorder.mutate({
        board_id: template.board,
        groups: [
          { id: one, position: first },
          { id: two, position: second },
        ],
      });
    const positions = async () =>
      (await groupsIn(template.projects[0], template)).map(({ title, position }) => [title, position]);
    await place(5, 4);
    await rollBack(template, await rollOut(template));
    const before = [
      ['First', 1],
      ['Second', 2],
    ];
    expect(await positions()).toEqual(before);
    await sync(template);
    expect(await positions()).toEqual(before);

    await place(8, 7);
    await rollOut(template);

    expect(await positions()).toEqual([
      ['Second', 7],
      ['First', 8],
    ]);
  });
});

it('a rollback that fails in a project can be repeated', async () => {
  const template = await synced();
  const [first, second] = template.projects;
  const { rollouts } = template.asSuperadmin.rpc;
  await rename(template, 'Uno');
  const id = await rollOut(template);
  const refused = `refuse_back_${template.board}`;
  const db = await testDb();
  await query(
    db,
    sql`alter table cards add constraint ${sql.ref(refused)} check (project_id <> ${sql.lit(first.id)} or title <> 'One') not valid`,
  );
  await rollBack(template, id);
  expect(await targetsOf(template, id)).toMatchObject([{ state: 'failed' }, { state: 'rolled_back' }]);
  await query(db, sql`alter table cards drop constraint ${sql.ref(refused)}`);

  await rollBack(template, id);

  expect(await targetsOf(template, id)).toMatchObject([{ state: 'rolled_back' }, { state: 'rolled_back' }]);
  expect([await titleIn(first, template), await titleIn(second, template)]).toEqual(['One', 'One']);
  await expect(rollouts.rollback.mutate({ id })).rejects.toMatchObject({ reason: 'rollout_state' });
});

describe('templates', () => {
  it('lists for a project which release its boards have, and why', async () => {
    const template = await synced();
    await rename(template, 'Uno');
    await publish(template, 'Shorter');
    const { rpc } = template.asSuperadmin.in(template.projects[0].id);

    expect((await rpc.templates.list.query()).templates).toMatchObject([
      { master_board_id: template.board, release_number: 1, latest_number: 2, hold_until: null, pinned_count: 0 },
    ]);
  });

  it('resets a row to the release of its project, and it follows its template again', async () => {
    const template = await synced();
    const [first] = template.projects;
    const { id } = await copyOf(first, template);
    await edit('cards', id, { title: 'Mine', status: 'closed' });

    await template.asSuperadmin.rpc.templates.reset.mutate({ noun: 'card', id });

    expect(await stored('cards', id)).toMatchObject({ title: 'One', status: 'closed' });
    await rename(template, 'Uno');
    await rollOut(template);
    expect(await titleIn(first, template)).toBe('Uno');
  });

  it('says what differs in each project: edited and outdated fields, own, deleted and missing rows', async () => {
    const template = await synced();
    const [first, second] = template.projects;
    const { id } = await copyOf(first, template);
    await edit('cards', id, { title: 'Mine' });
    await edit('cards', (await copyOf(first, template, 1)).id, { deleted_at: new Date() });
    const [group] = await groupsIn(first, template);
    await givenCard(first, { group_id: group.id });
    await template.asSuperadmin.rpc.masterCards.update.mutate({ id: template.cards[2], title: 'Tre' });
    await sync(template);

    const { projects } = await template.asSuperadmin.rpc.templates.drift.query({ board_id: template.board });

    const outdated = { noun: 'card', field: 'title', is_edited: false };
    expect(projects).toMatchObject([
      {
        project_id: first.id,
        release_number: 2,
        fields: [{ noun: 'card', id, field: 'title', is_edited: true }, outdated],
        fields_count: 2,
        rows_added: 1,
        rows_deleted: 1,
        rows_missing: 0,
      },
      { project_id: second.id, fields: [outdated], rows_added: 0, rows_deleted: 0 },
    ]);
    const behind = await template.asSuperadmin.rpc.templates.drift.query({ board_id: template.board, is_behind: true });
    expect(behind.projects).toEqual([]);
  });
});

it('a new project from the draft has the last release, if the draft has not changed since', async () => {
  const template = await synced();
  const { projects } = template.asSuperadmin.rpc;
  const create = async () => {
    const { platform_id } = await givenProject();
    const { project } = await projects.create.mutate({ platform_id, name: 'New', tools: [template.tool] });
    return releaseIn({ id: project.id, platform_id }, template);
  };

  expect(await create()).toMatchObject({ number: 1 });
  await rename(template, 'Uno');
  expect(await create()).toBeUndefined();
});
