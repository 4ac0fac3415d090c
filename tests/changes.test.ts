import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { type Procedure, procedures } from '../server/api/procedures.ts';
import type { Given } from '../server/contract/input.ts';
import { entities } from '../server/database/entities.ts';
import { query } from '../server/database/query.ts';
import type { EventRow } from '../server/domain/event/feed.ts';
import { eventsOf } from './harness/events.ts';
import { givenCall, mutations, overMcp, overRest, overRpc, type Surface } from './harness/mutations.ts';
import { withOwnDatabase } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenInvitation,
  givenMasterBoard,
  givenTag,
  insert,
  NOWHERE,
  testDb,
  type World,
} from './harness/world.ts';

/** No change without its event: all rows before and after each mutation are compared with the events that it wrote. */

withOwnDatabase();

type Row = Record<string, unknown> & { id?: number };
type Changed = { table: string; row: Row };

/** Tables whose rows are no change of their own. */
const WITHOUT_EVENTS: Record<string, string> = {
  events: 'the events themselves',
  audit_entries: 'a copy of some events',
  deletions: 'the records that trash.list reads, of rows whose events say the same',
  idempotency_keys: 'the stored response of a call',
  idempotency_usage: 'how many of these a user has',
  sessions: 'session.*, sessions.ended and user.updated name their user',
  recovery_codes: 'recovery_codes.renewed and second_factor.* name their user',
  checkouts: 'the subscription of its event names them',
  template_runs: 'template.started names the run, which then counts its progress',
  template_outcomes: 'template.applied names their run',
  webhook_deliveries: 'attempts, which webhooks.deliveries lists',
};

/** Columns that tell nothing to callers, or change with every write. */
const INTERNAL = new Set(
  (
    'updated_at brought last_used_at password_hash code_failures code_failed_at last_code_step is_clearing ' +
    'leased_until next_attempt_at deliveries template_group_id deletion_id'
  )
    .split(' ')
    .filter(Boolean),
);

/** The table of the subject of an event, by the noun of its type. */
const SUBJECTS: Record<string, string> = {
  master_board: 'boards',
  master_group: 'groups',
  master_card: 'cards',
  key: 'api_keys',
  template: 'boards',
};
const tableOf = (noun: string) => SUBJECTS[noun] ?? `${noun}s`;

/** The table of the rows that an event names besides its subject, if it is not that of the subject. */
const FURTHER: Record<string, string> = { 'tag.deleted': 'cards', 'tag.restored': 'cards', 'member.removed': 'cards' };

/** The columns that say in which row a row lies. */
const PARENTS: Record<string, string> = {
  project_id: 'projects',
  board_id: 'boards',
  group_id: 'groups',
  card_id: 'cards',
  parent_comment_id: 'comments',
  webhook_id: 'webhooks',
};

const tables = entities.map(({ meta }) => meta.tableName).filter((name) => !(name in WITHOUT_EVENTS));

/** All rows, by table and id; those without an id by all their keys. */
async function readRows(): Promise<Map<string, Changed>> {
  const db = await testDb();
  const found = new Map<string, Changed>();
  for (const table of tables) {
    const rows = await query(db, sql<{ row: Row }>`select to_jsonb(t) as row from ${sql.table(table)} t`);
    for (const { row } of rows)
      found.set(`${table} ${row.id ?? `${row.project_id ?? ''} ${row.user_id ?? ''} ${row.tool_key ?? row.card_id}`}`, {
        table,
        row,
      });
  }
  return found;
}

const visible = ({ row }: Changed) => JSON.stringify(Object.entries(row).filter(([column]) => !INTERNAL.has(column)));

/** Added, removed and changed rows; a changed one as it was before. */
function changedRows(before: Map<string, Changed>, after: Map<string, Changed>): Changed[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((key) => {
    const [old, now] = [before.get(key), after.get(key)];
    if (old && now && visible(old) === visible(now)) return [];
    return [(old ?? now)!];
  });
}

const nounOf = ({ type }: EventRow) => type.split('.')[0]!;

/** Whether an event is about this row. */
function isNamed({ table, row }: Changed, event: EventRow): boolean {
  const { subject_id, data, project_id } = event;
  const isSubject = table === tableOf(nounOf(event)) && row.id === subject_id;
  const isFurther = table === (FURTHER[event.type] ?? tableOf(nounOf(event))) && data.ids?.includes(row.id as number);
  const isUser = table === 'users' && row.id === (data.user_id ?? event.user_id);
  const isMember = table === 'members' && row.user_id === data.user_id && row.project_id === project_id;
  const isInvitation = table === 'invitations' && row.id === data.invitation_id;
  const isTool = table === 'project_tools' && nounOf(event) === 'project' && row.project_id === subject_id;
  return Boolean(isSubject || isFurther || isUser || isMember || isInvitation || isTool);
}

/** Whether a row lies inside the subject of an event that created or deleted it. */
function isInside(changed: Changed, event: EventRow, all: Map<string, Changed>): boolean {
  if (!/\.(created|deleted|restored)$/.test(event.type)) return false;
  return Object.entries(PARENTS).some(([column, table]) => {
    const id = changed.row[column];
    if (id == null) return false;
    if (table === tableOf(nounOf(event)) && id === event.subject_id) return true;
    const parent = all.get(`${table} ${id}`);
    // A project is the parent of all its rows: only its own creation counts.
    return parent !== undefined && table !== 'projects' && isInside(parent, event, all);
  });
}

const projectOf = ({ row }: Changed, all: Map<string, Changed>) =>
  row.project_id ?? all.get(`cards ${row.card_id}`)?.row.project_id;

/** The changed rows that no event names, has inside of its subject, or counts. */
async function unexplained(call: () => Promise<{ status: number }>, success: number) {
  const before = await readRows();
  let status = 0;
  const events = await eventsOf(async () => {
    ({ status } = await call());
  });
  expect(status).toBe(success);
  const after = await readRows();
  const all = new Map([...before, ...after]);
  const changed = changedRows(before, after);
  const left = changed.filter((row) => !events.some((event) => isNamed(row, event) || isInside(row, event, all)));
  const counts = new Map<number | null, number>();
  for (const { project_id, data } of events) counts.set(project_id, (counts.get(project_id) ?? 0) + (data.count ?? 0));
  const uncounted = left.filter((row) => {
    const project = (projectOf(row, all) ?? null) as number | null;
    const count = counts.get(project) ?? 0;
    counts.set(project, count - 1);
    return count <= 0;
  });
  return { changed, uncounted: uncounted.map(({ table, row }) => `${table} ${JSON.stringify(row)}`), counts, events };
}

type More = (world: World, given: Given) => Promise<Given | undefined>;

/** Three siblings in the way of a row that is put first. */
const siblings = async (make: (position: number) => Promise<unknown>): Promise<Given> => {
  for (const position of [1, 2, 3]) await make(position);
  return { position: 1 };
};

const change = async (statement: ReturnType<typeof sql>): Promise<undefined> => {
  await query(await testDb(), statement);
};

/** Further rows that a call changes. */
const MORE: Record<string, More> = {
  'boards.create': ({ project }) => siblings((position) => givenBoard(project, { position })),
  'boards.update': ({ project }) => siblings((position) => givenBoard(project, { position })),
  'boards.reorder': async ({ project }, { boards }): Promise<Given> => {
    await siblings((position) => givenBoard(project, { position }));
    return { boards: [{ id: (boards as Given[])[0]!.id, position: 1 }] };
  },
  'boards.delete': ({ project, users }, { id }) => fillBoard(project, id as number, users.member),
  'groups.create': ({ project }, { board_id }) =>
    siblings((position) => givenGroup(project, board_id as number, { position })),
  'groups.update': async ({ project }, { id }) => {
    const board = await boardOf(id);
    return siblings((position) => givenGroup(project, board, { position }));
  },
  'groups.reorder': async ({ project }, { groups }): Promise<Given> => {
    const [first] = groups as Given[];
    const board = await boardOf(first!.id);
    await siblings((position) => givenGroup(project, board, { position }));
    return { groups: [{ id: first!.id, position: 1 }] };
  },
  'groups.delete': async ({ project, users }, { id }): Promise<undefined> => {
    const card = await givenCard(project, { group_id: id });
    await givenComment(project, card, users.member);
  },
  'cards.move': async ({ project }, { id }): Promise<Given> => {
    const group_id = await givenGroup(project, await givenBoard(project));
    for (const position of [4, 5, 9]) await givenCard(project, { group_id, position });
    return { id, group_id, position: 2 };
  },
  'cards.delete': async ({ project, users }, { id }): Promise<undefined> => {
    await givenComment(project, id as number, users.member);
  },
  'comments.delete': async ({ project, users }, { id }): Promise<undefined> => {
    const [comment] = await query(
      await testDb(),
      sql<{ card_id: number }>`select card_id from comments where id = ${id}`,
    );
    const reply = (parent_comment_id: unknown) =>
      givenComment(project, comment!.card_id, users.member, { parent_comment_id, root_comment_id: id, depth: 1 });
    await reply(await reply(id));
  },
  'tags.create': ({ project }) => siblings((position) => givenTag(project, { position })),
  'tags.update': ({ project }) => siblings((position) => givenTag(project, { position })),
  'tags.delete': async ({ project }, { id: tag_id }): Promise<undefined> => {
    await givenCard(project, { tag_id });
    await givenCard(project, { tag_id, deleted_at: new Date() });
  },
  'tags.restore': async ({ project, asMember }): Promise<Given> => {
    const id = await givenTag(project);
    await givenCard(project, { tag_id: id });
    await asMember.rpc.tags.delete.mutate({ id });
    return { id };
  },
  'boards.restore': async ({ project, users, asMember }): Promise<Given> => {
    const id = await givenBoard(project);
    await fillBoard(project, id, users.member);
    await asMember.rpc.boards.delete.mutate({ id });
    return { id };
  },
  'groups.restore': async ({ project, asMember }): Promise<Given> => {
    const id = await givenGroup(project, await givenBoard(project));
    await givenCard(project, { group_id: id });
    await asMember.rpc.groups.delete.mutate({ id });
    return { id };
  },
  'masterBoards.restore': async ({ asSuperadmin }): Promise<Given> => {
    const { board: id } = await givenMasterBoard();
    await asSuperadmin.rpc.masterBoards.delete.mutate({ id });
    return { id };
  },
  'members.remove': async ({ project }, { user_id: owner_id }): Promise<undefined> => {
    await givenCard(project, { owner_id });
    await givenCard(project, { owner_id, deleted_at: new Date() });
    await change(sql`update users set default_project_id = ${project.id} where id = ${owner_id}`);
  },
  'members.leave': async ({ users }, { project_id }): Promise<undefined> => {
    await givenCard(
      { id: project_id as number, platform_id: await platformOf(project_id) },
      { owner_id: users.member.id },
    );
  },
  'members.add': async (_, { project_id, email }): Promise<undefined> => {
    await givenInvitation({ id: project_id as number, platform_id: 0 }, { email: String(email) });
  },
  'masterBoards.create': () => siblings((position) => givenBoard(NOWHERE, { is_master: true, position })),
  'masterBoards.update': () => siblings((position) => givenBoard(NOWHERE, { is_master: true, position })),
  'masterBoards.reorder': async (_, { boards }): Promise<Given> => {
    await siblings((position) => givenBoard(NOWHERE, { is_master: true, position }));
    return { boards: [{ id: (boards as Given[])[0]!.id, position: 1 }] };
  },
  'masterGroups.reorder': async (_, { board_id, groups }): Promise<Given> => {
    await siblings((position) => givenGroup(NOWHERE, board_id as number, { is_master: true, position }));
    return { groups: [{ id: (groups as Given[])[0]!.id, position: 1 }] };
  },
  'masterCards.reorder': async (_, { group_id, cards }): Promise<Given> => {
    await siblings((position) => givenCard(NOWHERE, { is_master: true, group_id, position }));
    return { cards: [{ id: (cards as Given[])[0]!.id, position: 1 }] };
  },
  'masterCards.update': async ({ project }, { id, unique_identifier }): Promise<undefined> => {
    const { card: deleted } = await givenMasterBoard({ card: { deleted_at: new Date() } });
    await givenCard(project, { master_card_id: id });
    await givenCard(project, { master_card_id: deleted, unique_identifier });
  },
  'masterCards.delete': async () => ({ delete_from_projects: true }),
  'projects.create': async (): Promise<Given> => ({ tools: [await givenTemplateOfTool()] }),
  'projects.update': async (): Promise<Given> => ({ tools: [await givenTemplateOfTool()] }),
};

async function fillBoard(
  project: World['project'],
  board: number,
  author: World['users']['member'],
): Promise<undefined> {
  const group_id = await givenGroup(project, board);
  const card = await givenCard(project, { group_id });
  await givenComment(project, card, author);
}

async function boardOf(group: unknown): Promise<number> {
  const [found] = await query(
    await testDb(),
    sql<{ id: number }>`select board_id as id from groups where id = ${group}`,
  );
  return found!.id;
}

async function platformOf(project: unknown): Promise<number> {
  const [found] = await query(
    await testDb(),
    sql<{ id: number }>`select platform_id as id from projects where id = ${project}`,
  );
  return found!.id;
}

/** A template for projects with a tool of its own. */
async function givenTemplateOfTool(): Promise<string> {
  const tool_key = `tool-${Math.random().toString(36).slice(2)}`;
  await givenMasterBoard({ board: { tool_key } });
  return tool_key;
}

async function expectEvents(procedure: Procedure, surface: Surface, success: number) {
  const { world, caller, given, input } = await givenCall(procedure);
  const more = await MORE[procedure.name]?.(world, { ...given, ...input });
  const found = await unexplained(
    () => surface(surface === overMcp ? world.asKey : caller, procedure, { ...input, ...more }),
    success,
  );

  expect(found.uncounted, JSON.stringify(found.events, null, 1)).toEqual([]);
  expect(found.changed.length + found.events.length).toBeGreaterThan(0);
  return found;
}

describe('each row that a mutation changes is named or counted by its events, or lies inside their subjects', () => {
  it.each(mutations.map((procedure) => [procedure.name, procedure] as const))('%s', async (_, procedure) => {
    await expectEvents(procedure, overRpc, 200);
  });

  const some = procedures.filter(({ name }) =>
    ['tags.delete', 'members.remove', 'cards.move', 'boards.create'].includes(name),
  );

  it.each(some.map((procedure) => [procedure.name, procedure] as const))(
    '%s over REST and MCP',
    async (_, procedure) => {
      await expectEvents(procedure, overRest, procedure.rest!.status);
      await expectEvents(procedure, overMcp, 200);
    },
  );
});

describe('rows that an event names besides its subject', () => {
  it('are counted above 1,000: cards of a deleted tag, and of a removed member', async () => {
    const cards = (tag: unknown, owner: unknown, { project }: World) =>
      change(sql`
        insert into cards (project_id, platform_id, title, tag_id, owner_id)
        select ${project.id}, ${project.platform_id}, 'A card', ${tag}::int, ${owner}::int from generate_series(1, 1001)`);

    for (const name of ['tags.delete', 'members.remove']) {
      const procedure = procedures.find((each) => each.name === name)!;
      const { world, caller, input } = await givenCall(procedure);
      await cards(input.id ?? null, input.user_id ?? null, world);

      const { uncounted, events } = await unexplained(() => overRpc(caller, procedure, input), 200);

      expect(uncounted).toEqual([]);
      expect(events.at(-1)!.data).toMatchObject({ count: 1001 });
      expect(events.at(-1)!.data).not.toHaveProperty('ids');
    }
  });

  it('can fail: a change without an event is found', async () => {
    const procedure = procedures.find(({ name }) => name === 'tags.delete')!;
    const { world, caller, input } = await givenCall(procedure);
    const other = await insert('boards', {
      project_id: world.project.id,
      platform_id: world.project.platform_id,
      title: 'A',
    });

    const { uncounted } = await unexplained(async () => {
      await change(sql`update boards set title = 'Another' where id = ${other}`);
      return overRpc(caller, procedure, input);
    }, 200);

    expect(uncounted).toHaveLength(1);
  });
});
