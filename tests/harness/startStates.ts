import { randomUUID } from 'node:crypto';
import { exampleOf } from '../../server/openapi/example.ts';
import { type Procedure, restProcedures } from '../../server/procedures.ts';
import { inputSchemaOf } from './arbitrary.ts';
import {
  givenBoard,
  givenCard,
  givenComment,
  givenGroup,
  givenTag,
  givenThemeVersion,
  givenTrial,
  givenUser,
  insert,
  NOWHERE,
  PASSWORD,
  type World,
} from './world.ts';

/** The part of an input that names what is there. */
export type Given = Record<string, unknown>;

/**
 * For each documented operation, a state that it can act on, and the part of its input that names that state; the rest of
 * the input comes from its schema. A new operation needs a line here, or the suites that walk the router fail.
 */
const startStates: Record<string, (world: World) => Promise<Given>> = {
  'auth.authenticate': async () => ({ email: (await givenUser()).email, password: PASSWORD }),
  'boards.get': async (world) => ({ id: (await givenFullBoard(world)).board }),
  'boards.list': async (world) => {
    await givenFullBoard(world);
    return {};
  },
  'groups.update': async ({ project }) => ({ id: await givenGroup(project, await givenBoard(project)) }),
  'groups.reorder': async ({ project }) => {
    const board = await givenBoard(project);
    return { groups: [{ id: await givenGroup(project, board) }, { id: await givenGroup(project, board) }] };
  },
  'cards.create': async (world) => {
    const { group, tag } = await givenFullBoard(world);
    return { group_id: group, tag_id: tag, owner_id: world.users.member.id };
  },
  'cards.delete': async ({ project }) => ({ id: await givenCard(project) }),
  'comments.create': async ({ project, users }) => {
    const card_id = await givenCard(project);
    return { card_id, parent_comment_id: await givenComment(project, card_id, users.viewer) };
  },
  'tags.create': async ({ project }) => {
    await givenTag(project);
    return {};
  },
  'tour.dismissAll': async (world) => {
    await givenFullBoard(world);
    return {};
  },
  'masterBoards.list': async (world) => {
    await givenTemplate(world);
    return {};
  },
  'masterBoards.sync': async (world) => ({ board_id: (await givenTemplate(world)).board }),
  'masterBoards.delete': async (world) => ({ id: (await givenTemplate(world)).board }),
  'masterGroups.create': async (world) => ({ board_id: (await givenTemplate(world)).board }),
  'masterGroups.update': async (world) => ({ id: (await givenTemplate(world)).group }),
  'masterGroups.reorder': async (world) => {
    const { board, group } = await givenTemplate(world);
    return { board_id: board, groups: [{ id: group }] };
  },
  'masterGroups.delete': async (world) => ({ id: (await givenTemplate(world)).group }),
  'masterCards.create': async (world) => ({ group_id: (await givenTemplate(world)).group }),
  'masterCards.push': async (world) => ({ card_id: (await givenTemplate(world)).card }),
  'masterCards.delete': async (world) => ({ id: (await givenTemplate(world)).copied }),
  'subscriptions.upgradeTrial': async ({ project }) => ({ product: (await givenTrial(project)).product, plan: 'pro' }),
  'themes.deprecateVersion': async ({ project }) => ({ version_id: await givenThemeVersion(project) }),
};

/** A board with a tour card and another in its group, and a tag. */
async function givenFullBoard({ project }: World) {
  const board = await givenBoard(project);
  const group = await givenGroup(project, board);
  await givenCard(project, { group_id: group });
  await givenCard(project, { group_id: group, tour_key: 'welcome' });
  return { board, group, tag: await givenTag(project) };
}

/** A master board with two cards, which the project alone has access to; it has a copy of the second. */
async function givenTemplate({ project }: World) {
  const is_master = true;
  const tool_key = randomUUID();
  await insert('project_tools', { project_id: project.id, tool_key });
  const board = await givenBoard(NOWHERE, { is_master, tool_key });
  const group = await givenGroup(NOWHERE, board, { is_master });
  const card = await givenCard(NOWHERE, { is_master, group_id: group });
  const copied = await givenCard(NOWHERE, { is_master, group_id: group });
  await givenCard(project, { master_card_id: copied });
  return { board, group, card, copied };
}

/** Brings a world into a state that the operation can act on. */
export function givenStartState({ name }: Procedure, world: World): Promise<Given> {
  const startState = startStates[name];
  if (!startState) throw new Error(`${name} has no start state: add one to startStates.`);
  return startState(world);
}

/** Operations that are named here, and no longer there. */
export const staleStartStates = () =>
  Object.keys(startStates).filter((name) => !restProcedures.some((procedure) => procedure.name === name));

/** An input that the operation takes: what is given, and examples of the rest. */
export function inputFor(procedure: Procedure, given: Given): Given {
  return withGiven(exampleOf(inputSchemaOf(procedure), {}), given) as Given;
}

/** Puts what is given in the place of what was made; what was left out, or is null, stays so. */
export function withGiven(made: unknown, given: unknown): unknown {
  if (made === null || made === undefined) return made;
  if (Array.isArray(given)) {
    const elements = made as unknown[];
    return elements.length === 0 ? [] : given.map((part, at) => withGiven(elements[at % elements.length], part));
  }
  if (typeof given !== 'object' || given === null) return given;
  const fields = Object.entries(made).map(([field, part]) => {
    const known = (given as Given)[field];
    return [field, known === undefined ? part : withGiven(part, known)];
  });
  return Object.fromEntries(fields);
}
