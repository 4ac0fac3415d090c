import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findProcedure, type Procedure, procedures } from '../../server/api/procedures.ts';
import { appRouter } from '../../server/api/routers/app.ts';
import type { Meta } from '../../server/api/trpc.ts';
import type { Given } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import { EVENT_TYPES, EventData, type EventType } from '../../shared/event.ts';
import { readVersions } from '../harness/contents.ts';
import { effectOf } from '../harness/effects.ts';
import { givenCall, mutations, overMcp, overRest, overRpc, type Surface } from '../harness/mutations.ts';
import { withOwnDatabase } from '../harness/service.ts';
import { startStates } from '../harness/startStates.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenInvitation,
  givenMasterBoard,
  givenTag,
  NOWHERE,
  stored,
  testDb,
  type World,
} from '../harness/world.ts';
import { inShort, WRITTEN } from '../harness/writtenEvents.ts';

/**
 * What each mutation does: it writes the events that it declares, and no row changes without one of them. All rows before and
 * after it are compared with its events. A repeat with the same idempotency key changes nothing.
 */

withOwnDatabase();

type More = (world: World, given: Given) => Promise<Given | undefined>;

type Make = (position: number) => Promise<unknown>;

/** Puts a row first, where three siblings are in the way. */
const amongSiblings = async (make: Make): Promise<Given> => {
  for (const position of [1, 2, 3]) await make(position);
  return { position: 1 };
};
/** The same for the first row of a list. */
const reorderedAmong = async (list: string, given: Given, make: Make): Promise<Given> => {
  const position = await amongSiblings(make);
  return { [list]: [{ id: (given[list] as Given[])[0]!.id, ...position }] };
};

const boardsOf =
  (project: World['project']): Make =>
  (position) =>
    givenBoard(project, { position });
const groupsOf =
  (project: World['project'], board: unknown): Make =>
  (position) =>
    givenGroup(project, board as number, { position });
const tagsOf =
  (project: World['project']): Make =>
  (position) =>
    givenTag(project, { position });
const masterBoards: Make = (position) => givenBoard(NOWHERE, { is_master: true, position });

const change = async (statement: ReturnType<typeof sql>): Promise<undefined> => {
  await query(await testDb(), statement);
};

/** Further rows that a call changes. */
const MORE: Record<string, More> = {
  'boards.create': ({ project }) => amongSiblings(boardsOf(project)),
  'boards.update': ({ project }) => amongSiblings(boardsOf(project)),
  'boards.reorder': ({ project }, given) => reorderedAmong('boards', given, boardsOf(project)),
  'boards.delete': ({ project, users }, { id }) => fillBoard(project, id as number, users.member),
  'groups.create': ({ project }, { board_id }) => amongSiblings(groupsOf(project, board_id)),
  'groups.update': async ({ project }, { id }) => amongSiblings(groupsOf(project, await boardOf(id))),
  'groups.reorder': async ({ project }, given) => {
    const board = await boardOf((given.groups as Given[])[0]!.id);
    return reorderedAmong('groups', given, groupsOf(project, board));
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
    const { card_id } = await stored('comments', id as number);
    const reply = (parent_comment_id: unknown) =>
      givenComment(project, card_id, users.member, { parent_comment_id, root_comment_id: id, depth: 1 });
    await reply(await reply(id));
  },
  'tags.create': ({ project }) => amongSiblings(tagsOf(project)),
  'tags.update': ({ project }) => amongSiblings(tagsOf(project)),
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
    const { id, platform_id } = await stored('projects', project_id as number);
    await givenCard({ id, platform_id }, { owner_id: users.member.id });
  },
  'members.add': async (_, { project_id, email }): Promise<undefined> => {
    await givenInvitation({ id: project_id as number, platform_id: 0 }, { email: String(email) });
  },
  'masterBoards.create': () => amongSiblings(masterBoards),
  'masterBoards.update': () => amongSiblings(masterBoards),
  'masterBoards.reorder': (_, given) => reorderedAmong('boards', given, masterBoards),
  'masterGroups.reorder': (_, given) =>
    reorderedAmong('groups', given, (position) =>
      givenGroup(NOWHERE, given.board_id as number, { is_master: true, position }),
    ),
  'masterCards.reorder': (_, given) =>
    reorderedAmong('cards', given, (position) =>
      givenCard(NOWHERE, { is_master: true, group_id: given.group_id, position }),
    ),
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

const boardOf = async (group: unknown): Promise<number> => (await stored('groups', group as number)).board_id;

/** A template for projects with a tool of its own. */
async function givenTemplateOfTool(): Promise<string> {
  const tool_key = `tool-${Math.random().toString(36).slice(2)}`;
  await givenMasterBoard({ board: { tool_key } });
  return tool_key;
}

function declaredBy({ name }: Procedure): readonly EventType[] {
  const definitions = appRouter._def.procedures as unknown as Record<string, { _def: { meta: Meta } }>;
  return definitions[name]!._def.meta.events ?? [];
}

/** They change nothing yet: what the link of their mail does has its event. */
const ONLY_MAILS = ['account.requestPasswordReset', 'account.changeAddress', 'account.requestConfirmation'];
const isMailOnly = ({ name }: Procedure) => ONLY_MAILS.includes(name);
const writing = mutations.filter((procedure) => !isMailOnly(procedure));

describe('the router', () => {
  it('has the events of each mutation, all of known types, and none of a query', () => {
    const isKnown = (type: EventType) => type in EVENT_TYPES;

    expect(mutations.filter((procedure) => declaredBy(procedure).length === 0)).toEqual(mutations.filter(isMailOnly));
    expect(mutations.flatMap(declaredBy).filter((type) => !isKnown(type))).toEqual([]);
    expect(procedures.filter(({ type }) => type === 'query').flatMap(declaredBy)).toEqual([]);
  });

  it('has a mutation for each type, apart from what payments and the work on rollouts cause', () => {
    const declared = new Set(mutations.flatMap(declaredBy));
    const others = (Object.keys(EVENT_TYPES) as EventType[]).filter((type) => !declared.has(type));

    expect(others).toEqual([
      ...['rollout.stage_finished', 'rollout.finished', 'rollout.rolled_back'],
      ...['template.rolled_out', 'template.rolled_back'],
      'subscription.changed',
      'identity.linked',
    ]);
  });
});

/** A call that changes further rows, too. */
async function givenFullCall(procedure: Procedure) {
  const call = await givenCall(procedure);
  const more = await MORE[procedure.name]?.(call.world, { ...call.given, ...call.input });
  return { ...call, input: { ...call.input, ...more } };
}

/** Each changed row is named or counted by an event, or lies inside its subject; the events are declared, without contents. */
async function expectEvents(procedure: Procedure, surface: keyof typeof SURFACES, key?: string) {
  const { world, caller, input, userId } = await givenFullCall(procedure);
  const call = (usedKey = key) =>
    SURFACES[surface](surface === 'mcp' ? world.asKey : caller, procedure, input, usedKey);
  const { answer, events, uncounted } = await effectOf(call);

  expect(answer.status).toBe(surface === 'rest' ? procedure.rest!.status : 200);
  expect(uncounted, JSON.stringify(events, null, 1)).toEqual([]);
  expect(events).not.toEqual([]);
  // It keeps nothing of who calls it.
  const request_id = procedure.name === 'account.erase' ? null : answer.headers.get('x-request-id');
  const key_id = procedure.access === 'key' || surface === 'mcp' ? expect.any(Number) : null;
  for (const { type, data, ...event } of events) {
    expect(declaredBy(procedure)).toContain(type);
    expect(event).toMatchObject({
      user_id: surface === 'mcp' ? world.users.superadmin.id : userId,
      key_id,
      surface,
      request_id,
    });
    expect(EventData.strict().parse(data)).toEqual(data);
    for (const field of data.fields ?? []) expect(field).toMatch(/^[a-z_]+$/);
  }
  const written = WRITTEN[procedure.name];
  // A new operation needs no row there: its events are those that its router names.
  if (!written) expect(events.map(({ type }) => type)).toEqual(declaredBy(procedure));
  else expect(events.map((event, at) => inShort(event, written[at]))).toEqual(written);
  return { answer, call };
}
const SURFACES: Record<'rest' | 'rpc' | 'mcp', Surface> = { rest: overRest, rpc: overRpc, mcp: overMcp };

/** Their answers have a secret, which is stored nowhere. */
const NOT_KEPT = new Set([
  'account.startSecondFactor',
  'account.confirmSecondFactor',
  'account.renewRecoveryCodes',
  'keys.create',
  'keys.rotate',
  'keys.rotateSelf',
  'webhooks.create',
  'webhooks.rotateSecret',
]);

/** Those that change something each time; the same call of any other finds nothing to change, or is refused. */
const CHANGES_ANEW = new Set([
  ...['boards', 'groups', 'cards', 'comments', 'tags', 'themes', 'platforms', 'projects'].map(
    (noun) => `${noun}.create`,
  ),
  ...['masterBoards', 'masterGroups', 'masterCards'].flatMap((noun) => [`${noun}.create`, `${noun}.push`]),
  ...['rollouts.plan', 'cards.createMany', 'masterBoards.sync', 'subscriptions.setTrial', 'account.startSecondFactor'],
  'identityRules.create',
  ...['keys.create', 'keys.rotate', 'webhooks.create', 'webhooks.rotateSecret', 'webhooks.resend', 'webhooks.sendTest'],
]);

describe.each(writing.map((procedure) => [procedure.name, procedure] as const))('%s', (name, procedure) => {
  it('changes nothing without its events, nothing when repeated with its key, and once more only if it is made for that', async () => {
    const { answer, call } = await expectEvents(procedure, 'rest', randomUUID());
    if (!procedure.isKeyed) return;
    const before = await readVersions();

    const again = await call();

    expect(await readVersions()).toEqual(before);
    if (startStates.get(name)!.endsSession) return expect(again.status).toBe(401);
    const anew = (await effectOf(() => call(randomUUID()))).events;
    const written = WRITTEN[name];
    // A repeat finds the release of the first call published.
    const repeated = written?.filter((text) => !text.startsWith('release.published')).slice(0, 1);
    if (written)
      expect(anew.map((event) => inShort(event, written[0]))).toEqual(CHANGES_ANEW.has(name) ? repeated : []);
    if (NOT_KEPT.has(name)) return expect(again.status).toBe(400);
    expect(again).toMatchObject({ status: answer.status });
    expect(JSON.stringify(again.body)).toBe(JSON.stringify(answer.body));
    expect(again.headers.get('idempotent-replayed')).toBe('true');
  });
});

it.each(['tags.delete', 'members.remove', 'cards.move', 'boards.create'])(
  '%s has the same events over RPC and MCP',
  async (name) => {
    for (const surface of ['rpc', 'mcp'] as const) await expectEvents(findProcedure(name)!, surface);
  },
);

describe('rows that an event names besides its subject', () => {
  it('are counted above 1,000: cards of a deleted tag, and of a removed member', async () => {
    const cards = (tag: unknown, owner: unknown, { project }: World) =>
      change(sql`
        insert into cards (project_id, platform_id, title, tag_id, owner_id)
        select ${project.id}, ${project.platform_id}, 'A card', ${tag}::int, ${owner}::int from generate_series(1, 1001)`);

    for (const name of ['tags.delete', 'members.remove']) {
      const procedure = findProcedure(name)!;
      const { world, caller, input } = await givenCall(procedure);
      await cards(input.id ?? null, input.user_id ?? null, world);

      const { uncounted, events } = await effectOf(() => overRpc(caller, procedure, input));

      expect(uncounted).toEqual([]);
      expect(events.at(-1)!.data).toMatchObject({ count: 1001 });
      expect(events.at(-1)!.data).not.toHaveProperty('ids');
    }
  });
});
