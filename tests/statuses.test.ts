import { beforeAll, describe, expect, it } from 'vitest';
import { type Procedure, restProcedures } from '../server/api/procedures.ts';
import type { RestOperation } from '../server/api/restOperation.ts';
import { findCaller } from '../server/domain/access/caller.ts';
import { type Answer, makeCaller } from './harness/caller.ts';
import { document } from './harness/document.ts';
import { databaseUrl, givenService, testDatabase, testService } from './harness/service.ts';
import {
  allowedCaller,
  type Given,
  givenStartState,
  inputFor,
  startStates,
  type Whose,
} from './harness/startStates.ts';
import { givenKey, givenWorld, type World } from './harness/world.ts';

/** Every documented status of every operation can be reached, with the specified body. */

/** Statuses that need a code of the second factor: tests/secondFactor.test.ts has them. */
const OTHER_SUITES: Record<string, true> = {
  'account.confirmSecondFactor 200': true,
  'account.dropSecondFactor 200': true,
  'account.renewRecoveryCodes 200': true,
};

type Operation = Procedure & { rest: RestOperation };
type Call = (operation: Operation, world: World) => Promise<Answer>;

const send = (operation: Operation, world: World, input: unknown) =>
  allowedCaller(world, operation).post(operation.rest.path, input);

/** Sends an input that refers to such a row. */
const sendFor = async (operation: Operation, world: World, whose: Whose, more: Given = {}) =>
  send(operation, world, { ...inputFor(operation, await givenStartState(operation, world, whose)), ...more });

/** How to get each error; a key with the name of an operation is for that one only. */
const ERRORS: Record<string, Call> = {
  400: (operation, world) => send(operation, world, '{'),
  401: ({ rest }, world) => world.asNobody.post(rest.path),
  'auth.authenticate 401': (operation, world) => sendFor(operation, world, 'own', { password: 'wrong' }),
  403: async ({ access, rest }, { asOwner, users, otherProject }) =>
    access === 'signedIn'
      ? makeCaller((await testService()).url, (await givenKey(users.owner, { scopes: [] })).secret).post(rest.path)
      : asOwner.in(otherProject.id).post(rest.path),
  404: (operation, world) => sendFor(operation, world, 'unknown'),
  'keys.create 404': (operation, world) => sendFor(operation, world, 'own', { user_id: 2_147_483_647 }),
  'keys.list 404': (operation, world) => sendFor(operation, world, 'own', { user_id: 2_147_483_647 }),
  'subscriptions.upgradeTrial 404': (operation, world) => sendFor(operation, world, 'foreign'),
  422: (operation, world) => send(operation, world, withObjects(inputFor(operation, {}))),
  429: (operation) => send(operation, limitedWorld, inputFor(operation, {})),
  500: (operation) => send(operation, failingWorld, inputFor(operation, {})),
};

/** The same input with an object in every field, which is invalid everywhere. */
const withObjects = (input: Given): Given => Object.fromEntries(Object.keys(input).map((field) => [field, {}]));

/** The specified fields of each error body; a key with the name of an operation is for that one only. */
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

/** A service that finds its callers, while every statement of their calls fails. */
async function givenFailingService() {
  const database = await testDatabase();
  const fail = () => {
    throw new Error('A fault of the database, with internals: table cards, line 42.');
  };
  return givenService(
    {},
    {
      database: { ...database, db: database.db.withPlugin({ transformQuery: fail, transformResult: fail }) },
      findCaller: (...call) => findCaller(database.db, ...call),
    },
  );
}

/** A world of its own for an operation that ends the session of its caller. */
const worldFor = async ({ name }: Operation) => (startStates.get(name)!.endsSession ? givenWorld() : world);

let world: World;
let limitedWorld: World;
let failingWorld: World;

// One kind of database is enough: the other suites test on both what depends on it.
describe.skipIf(databaseUrl)('every documented status', () => {
  beforeAll(async () => {
    world = await givenWorld();
    limitedWorld = await givenWorld(await givenService({ RATE_LIMIT_PER_MINUTE: '1' }));
    for (const caller of [limitedWorld.asNobody, limitedWorld.asMember, limitedWorld.asSuperadmin])
      await caller.post('/spend-the-limit');
    failingWorld = await givenWorld(await givenFailingService());
  });

  it.each(documented.filter(({ title }) => !(title in OTHER_SUITES)))(
    '$title',
    async ({ operation, status, title }) => {
      const fail = ERRORS[title] ?? ERRORS[status]!;

      const answer = await (status < 400
        ? sendFor(operation, await worldFor(operation), 'own')
        : fail(operation, world));

      expect(answer.status).toBe(status);
      if (status >= 400) expect(Object.keys(answer.body)).toEqual(BODIES[title] ?? BODIES[status]);
      if (status >= 400) expect(JSON.stringify(answer.body)).not.toMatch(/"error":false|internals/);
    },
  );
});
