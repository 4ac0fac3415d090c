import { beforeAll, describe, expect, it } from 'vitest';
import { findCaller } from '../server/domain/caller.ts';
import { type Procedure, restProcedures } from '../server/procedures.ts';
import type { RestOperation } from '../server/restOperation.ts';
import type { Answer } from './harness/caller.ts';
import { document } from './harness/document.ts';
import { databaseUrl, givenService, testDatabase } from './harness/service.ts';
import { allowedCaller, type Given, givenStartState, inputFor, type Whose } from './harness/startStates.ts';
import { givenWorld, type World } from './harness/world.ts';

/**
 * Walks the document: every status of every operation is really answered, in the body that the specification has for it.
 * That the rest of the answer is as documented is checked for every call of every test.
 */

/** Statuses that the interface lists for an operation, and that it can never answer. */
const IMPOSSIBLE: Record<string, string> = {
  'boards.list 404': 'It acts on no single thing: a project without boards has an empty list.',
  'tour.dismissAll 404': 'It acts on no single thing: a project without tour cards dismisses none.',
  'tour.dismissAll 422': 'It takes no field that could be refused.',
  'masterBoards.list 404': 'It acts on no single thing: without master boards the list is empty.',
  'masterBoards.list 422': 'It takes no field that could be refused.',
};

type Operation = Procedure & { rest: RestOperation };
type Call = (operation: Operation, world: World) => Promise<Answer>;

const send = (operation: Operation, world: World, input: unknown) =>
  allowedCaller(world, operation).post(operation.rest.path, input);

/** Sends an input that names such a row. */
const sendFor = async (operation: Operation, world: World, whose: Whose, more: Given = {}) =>
  send(operation, world, { ...inputFor(operation, await givenStartState(operation, world, whose)), ...more });

/** How each error comes about; where an operation needs another way, its name stands before the status. */
const ERRORS: Record<string, Call> = {
  400: (operation, world) => send(operation, world, '{'),
  401: ({ rest }, world) => world.asNobody.post(rest.path),
  'auth.authenticate 401': (operation, world) => sendFor(operation, world, 'own', { password: 'wrong' }),
  403: ({ rest }, world) => world.asOwner.in(world.otherProject.id).post(rest.path),
  404: (operation, world) => sendFor(operation, world, 'unknown'),
  'subscriptions.upgradeTrial 404': (operation, world) => sendFor(operation, world, 'foreign'),
  422: (operation, world) => send(operation, world, withObjects(inputFor(operation, {}))),
  429: (operation) => send(operation, limitedWorld, inputFor(operation, {})),
  500: (operation) => send(operation, failingWorld, inputFor(operation, {})),
};

/** The same input, with an object in every field: none takes one. */
const withObjects = (input: Given): Given => Object.fromEntries(Object.keys(input).map((field) => [field, {}]));

/** The fields of each error body, as specified; where an operation differs, its name stands before the status. */
const BODIES: Record<string, string[]> = {
  400: ['error', 'message', 'data'],
  401: ['error', 'message'],
  403: ['error', 'message'],
  404: ['error', 'message', 'data'],
  422: ['message', 'errors'],
  429: ['error', 'message'],
  500: ['error', 'message', 'data'],
  'auth.authenticate 400': ['error', 'message'],
  'auth.authenticate 500': ['error', 'message'],
  'cards.delete 403': ['error', 'message', 'data'],
  'groups.update 403': ['error', 'message', 'data'],
  'subscriptions.upgradeTrial 401': ['message'],
  'subscriptions.upgradeTrial 403': ['error', 'message', 'data'],
};

const documented = restProcedures.flatMap((operation) =>
  Object.keys(document.paths[operation.rest.path]!.post.responses).map((status) => ({
    operation,
    status: Number(status),
    title: `${operation.name} ${status}`,
  })),
);

/** A service that finds its callers, and fails at every statement of what they call. */
async function givenFailingService() {
  const database = await testDatabase();
  const fail = () => {
    throw new Error('A fault of the database, with internals: table cards, line 42.');
  };
  return givenService(
    {},
    {
      database: { ...database, db: database.db.withPlugin({ transformQuery: fail, transformResult: fail }) },
      findCaller: (claims, chosenProjectId) => findCaller(database.db, claims, chosenProjectId),
    },
  );
}

let world: World;
let limitedWorld: World;
let failingWorld: World;

// One kind of database is enough: what depends on it here, the other suites try on both.
describe.skipIf(databaseUrl)('every documented status', () => {
  beforeAll(async () => {
    world = await givenWorld();
    limitedWorld = await givenWorld(await givenService({ RATE_LIMIT_PER_MINUTE: '1' }));
    for (const caller of [limitedWorld.asNobody, limitedWorld.asSuperadmin]) await caller.post('/spend-the-limit');
    failingWorld = await givenWorld(await givenFailingService());
  });

  it.each(documented.filter(({ title }) => !(title in IMPOSSIBLE)))('$title', async ({ operation, status, title }) => {
    const fail = ERRORS[title] ?? ERRORS[status]!;

    const answer = await (status < 400 ? sendFor(operation, world, 'own') : fail(operation, world));

    expect(answer.status).toBe(status);
    if (status >= 400) expect(Object.keys(answer.body)).toEqual(BODIES[title] ?? BODIES[status]);
    if (status >= 400) expect(JSON.stringify(answer.body)).not.toMatch(/"error":false|internals/);
  });

  it('is possible but for those that are named here, which are all documented', () => {
    const titles = documented.map(({ title }) => title);

    for (const title of Object.keys(IMPOSSIBLE)) expect(titles).toContain(title);
  });
});
