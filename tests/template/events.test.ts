import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeCaller } from '../harness/caller.ts';
import { auditOf, eventsOf } from '../harness/events.ts';
import { countStatements, givenService, testDatabase } from '../harness/service.ts';
import {
  boardIn,
  copiesIn,
  givenTemplate,
  groupsIn,
  hideEarlierProjects,
  pushBoard,
  pushCard,
  pushGroup,
  sync,
  type Template,
} from '../harness/template.ts';
import { givenProject, type TestProject, testDb } from '../harness/world.ts';

hideEarlierProjects();

/** What is the same in every event outside of projects. */
const outside = ({ users }: Template) => ({
  platform_id: null,
  project_id: null,
  user_id: users.superadmin.id,
  key_id: null,
  surface: 'rpc',
  request_id: expect.any(String),
});

describe('a master card', () => {
  it('is reordered when it moves to the same position of another group, with the cards in its way', async () => {
    const template = await givenTemplate();
    const [one, two, three] = template.cards;
    const { masterCards } = template.asSuperadmin.rpc;

    const moved = await eventsOf(() =>
      masterCards.reorder.mutate({ group_id: template.groups[0], cards: [{ id: three, position: 1 }] }),
    );

    expect(moved).toMatchObject([{ type: 'master_card.reordered', data: { ids: [three, one, two] } }]);
  });
});

/**
 * The events that a run writes: the release with what changed since the last one, that it began, then one for each changed project,
 * in any order.
 */
function ofRun(template: Template, kind: string, changed: TestProject[], release?: number) {
  const { board: subject_id } = template;
  const run_id = expect.any(Number);
  const published = {
    ...outside(template),
    type: 'release.published',
    subject_id: expect.any(Number),
    data: { board_id: subject_id, number: release },
  };
  return [
    ...(release ? [published] : []),
    { ...outside(template), type: 'template.started', subject_id, data: { run_id, kind } },
    ...changed.map(({ id: project_id, platform_id }) => ({
      ...outside(template),
      type: 'template.applied',
      subject_id,
      project_id,
      platform_id,
      data: { run_id, count: expect.any(Number) },
    })),
  ].map((event) => expect.objectContaining(event));
}

/** The events of some work in the order of their projects; all of one run. */
async function runEvents(work: () => Promise<unknown>) {
  const events = await eventsOf(work);
  const ofTemplate = events.filter(({ type }) => type !== 'release.published');
  expect(new Set(ofTemplate.map(({ data }) => data.run_id)).size).toBeLessThanOrEqual(1);
  return events.toSorted((one, other) => (one.project_id ?? 0) - (other.project_id ?? 0));
}

describe('a sync or push', () => {
  it('has an event for its release, one when it began, and one for each project that it changed', async () => {
    const template = await givenTemplate();
    const { projects, groups, cards } = template;

    expect(await runEvents(() => pushCard(template, cards[0]))).toEqual(ofRun(template, 'push', projects, 1));
    expect(await runEvents(() => pushGroup(template, groups[1]))).toEqual(ofRun(template, 'push_group', projects));
    expect(await runEvents(() => sync(template))).toEqual(ofRun(template, 'sync', projects));
  });

  it('names its run', async () => {
    const template = await givenTemplate();

    const [, started] = await eventsOf(() => pushBoard(template));

    const { runs } = await template.asSuperadmin.rpc.templateRuns.list.query({ board_id: template.board });
    expect(started?.data).toEqual({ run_id: runs[0]!.id, kind: 'push_board' });
  });

  it('has none for unchanged projects: those that have it already, edited it, deleted it, or have no access', async () => {
    const template = await givenTemplate();
    await sync(template);
    const later = await givenProject({ tools: [template.tool] });
    const [first, second] = template.projects;
    const { boards, groups } = template.asSuperadmin.rpc;

    expect(await runEvents(() => sync(template))).toEqual(ofRun(template, 'sync', [later]));

    await boards.update.mutate({ id: (await boardIn(first, template)).id, title: 'Mine' });
    await groups.delete.mutate({ id: (await groupsIn(second, template))[0].id });
    await template.asSuperadmin.rpc.masterBoards.update.mutate({ id: template.board, title: 'New' });
    expect(await runEvents(() => pushBoard(template))).toEqual(ofRun(template, 'push_board', [second, later], 2));
    await template.asSuperadmin.rpc.masterGroups.configure.mutate({ id: template.groups[0], color: 'red' });
    expect(await runEvents(() => pushGroup(template, template.groups[0]))).toEqual(
      ofRun(template, 'push_group', [first, later], 3),
    );
  });

  it('has one for each project in every step, also if a step is retried or the run is started again', async () => {
    const template = await givenTemplate();
    template.projects.push(await givenProject({ tools: [template.tool] }));
    const database = await testDatabase();
    const bulkPace = { ...database.bulkPace, rowsPerStep: 3, stepsAtOnce: 1 };
    const { url } = await givenService({}, { database: { ...database, bulkPace } });
    const caller = makeCaller(url, template.asSuperadmin.token);
    // The copy of the second project fails: once as after a deadlock, then for good, then not at all.
    const db = await testDb();
    const failIn = (project: TestProject, condition: string, code: string) =>
      query(
        db,
        sql.raw(`create or replace function fail_copy() returns trigger language plpgsql as $$ begin
          if new.project_id = ${project.id} and ${condition} then raise exception 'failed' using errcode = '${code}'; end if;
          return new; end $$`),
      );
    await query(db, sql`create sequence attempts`);
    await failIn(template.projects[1], `nextval('attempts') = 1`, '40P01');
    await query(
      db,
      sql`create trigger fail_copy before insert on boards for each row when (new.project_id is not null) execute function fail_copy()`,
    );
    try {
      const retried = await runEvents(() => caller.rpc.masterBoards.push.mutate({ board_id: template.board }));
      const [attempts] = await query(db, sql<{ last: number }>`select last_value::int as last from attempts`);

      expect(attempts!.last).toBe(2);
      expect(retried).toEqual(ofRun(template, 'push_board', template.projects, 1));

      const interrupted = await givenTemplate();
      await failIn(interrupted.projects[1], 'true', 'P0001');
      const run = () => caller.rpc.masterBoards.sync.mutate({ board_id: interrupted.board });
      const failed = await runEvents(() => run().catch(() => undefined));
      await failIn(interrupted.projects[1], 'false', 'P0001');
      const again = await runEvents(run);

      const mine = { ...interrupted, users: template.users };
      expect(failed).toEqual(ofRun(mine, 'sync', [interrupted.projects[0]], 1));
      expect(again).toEqual(ofRun(mine, 'sync', [interrupted.projects[1]]));
    } finally {
      await query(db, sql`drop trigger fail_copy on boards`);
      await query(db, sql`drop function fail_copy`);
      await query(db, sql`drop sequence attempts`);
    }
  });

  it('needs as many statements for many projects as for few', async () => {
    const template = await givenTemplate();
    // The first sync also publishes the release.
    await sync(template);
    await givenProject({ tools: [template.tool] });
    const few = await countStatements(() => sync(template));
    for (let number = 0; number < 20; number++) await givenProject({ tools: [template.tool] });

    expect(await countStatements(() => sync(template))).toBe(few);
  });

  it('is once in the audit trail, after its release: who began it', async () => {
    const template = await givenTemplate();
    const [card] = template.cards;

    const audit = await auditOf(async () => {
      await sync(template);
      await template.asSuperadmin.rpc.masterCards.delete.mutate({ id: card, delete_from_projects: true });
    });

    expect(audit).toMatchObject([
      { ...outside(template), type: 'release.published', data: { board_id: template.board, number: 1 } },
      { ...outside(template), type: 'template.started', subject_id: template.board },
    ]);
  });
});

describe('a master card that is created with push_to_projects', () => {
  it('has its own event, those of its release and its run, and one for each changed project', async () => {
    const template = await givenTemplate();
    const { masterCards } = template.asSuperadmin.rpc;

    const [created, ...ofPush] = await eventsOf(() =>
      masterCards.create.mutate({ group_id: template.groups[0], title: 'New', push_to_projects: true }),
    );

    expect(created).toMatchObject({ type: 'master_card.created' });
    expect(ofPush).toEqual(ofRun(template, 'push', template.projects, 1));
  });
});

describe('a master card that is deleted with delete_from_projects', () => {
  it('has its own event, and one for each project that still had a copy', async () => {
    const template = await givenTemplate();
    const [card] = template.cards;
    const [first, second] = template.projects;
    const { cards, masterCards } = template.asSuperadmin.rpc;
    await sync(template);
    await cards.delete.mutate({ id: (await copiesIn(first, template))[0].id });

    const events = await eventsOf(() => masterCards.delete.mutate({ id: card, delete_from_projects: true }));

    expect(events).toMatchObject([
      { type: 'master_card.deleted', subject_id: card },
      {
        ...outside(template),
        type: 'template.removed',
        subject_id: template.board,
        project_id: second.id,
        platform_id: second.platform_id,
        data: { card_id: card },
      },
    ]);
  });
});

describe('a new identifier of a master card', () => {
  it('has its own event, and one for each project whose copy has it now', async () => {
    const template = await givenTemplate();
    const [card] = template.cards;
    const { masterCards } = template.asSuperadmin.rpc;
    await pushCard(template, card);
    const unique_identifier = randomUUID();

    const events = await eventsOf(() => masterCards.update.mutate({ id: card, unique_identifier }));

    expect(events).toMatchObject([
      { type: 'master_card.updated', subject_id: card, data: { fields: ['unique_identifier'] } },
      ...template.projects.map(({ id: project_id, platform_id }) => ({
        ...outside(template),
        type: 'template.applied',
        subject_id: template.board,
        project_id,
        platform_id,
        data: { card_id: card },
      })),
    ]);
    expect(await eventsOf(() => masterCards.update.mutate({ id: card, unique_identifier }))).toEqual([]);
  });
});
