import { pino } from 'pino';
import type { Procedure } from '../../server/api/procedures.ts';
import { type Given, inputFor, invalidInput } from '../../server/contract/input.ts';
import type { Outcome } from '../../server/contract/outcome.ts';
import { document } from '../../server/contract/violations.ts';
import { findCaller } from '../../server/domain/access/caller.ts';
import { countInMemory, openCounters } from '../../server/limits/counters.ts';
import { makeRateLimit } from '../../server/limits/rateLimit.ts';
import { makeCaller } from '../harness/caller.ts';
import { givenService, type TestService, testDatabase, testService } from '../harness/service.ts';
import { givenVerifiedFlow } from '../harness/sso.ts';
import { allowedCaller, givenStartState, type Whose } from '../harness/startStates.ts';
import { overRest, refusedByAll } from '../harness/surfaces.ts';
import { givenKey, givenUser, givenWorld, type World } from '../harness/world.ts';

/** How each documented error is reached. */

export type Reached = { documented: number; outcome: Outcome };

/** The documented errors, each with the outcome of a call that should end with it. */
export async function documentedErrors(procedure: Procedure, world: World): Promise<Reached[]> {
  const { responses } = document.paths[procedure.rest!.path]!.post;
  const errors = Object.keys(responses).filter((status) => Number(status) >= 400);
  const reached: Reached[] = [];
  for (const status of errors) {
    const fail = ERRORS[`${procedure.name} ${status}`] ?? ERRORS[status]!;
    reached.push({ documented: Number(status), outcome: await fail(procedure, world) });
  }
  return reached;
}

type Fail = (procedure: Procedure, world: World) => Promise<Outcome>;

/** Sends an input that refers to such a row. */
const sendFor = async (procedure: Procedure, world: World, whose: Whose, more: Given = {}) => {
  const input = inputFor(procedure, await givenStartState(procedure, world, whose));
  return overRest(allowedCaller(world, procedure), procedure, { ...input, ...more });
};
const ofUnknownUser: Fail = (procedure, world) => sendFor(procedure, world, 'own', { user_id: 2_147_483_647 });

/** Finishes a sign-in of such a user at an identity provider, which has sent its claims already. */
async function finishSsoAs(procedure: Procedure, state: object): Promise<Outcome> {
  const { SSO_ISSUERS, input } = await givenVerifiedFlow(await givenUser(state));
  return overRest(makeCaller((await givenService({ SSO_ISSUERS })).url), procedure, input);
}

/** How to get each error, by its status, or for one operation. 401 and 403 come before the broken body is read. */
const ERRORS: Record<string, Fail> = {
  400: (procedure, world) => overRest(allowedCaller(world, procedure), procedure, '{'),
  401: (procedure, { asNobody }) => overRest(asNobody, procedure, '{'),
  'auth.authenticate 401': (procedure, world) => sendFor(procedure, world, 'own', { password: 'wrong' }),
  'auth.exchange 401': (procedure, world) => sendFor(procedure, world, 'own', { token: 'x' }),
  403: async (procedure, { asOwner, users, otherProject }) => {
    if (procedure.access !== 'signedIn') return overRest(asOwner.in(otherProject.id), procedure, '{');
    const { secret } = await givenKey(users.owner, { scopes: [] });
    return overRest(makeCaller((await testService()).url, secret), procedure, '{');
  },
  404: (procedure, world) => sendFor(procedure, world, 'unknown'),
  'auth.startSso 401': (procedure, world) => sendFor(procedure, world, 'own', { purpose: 'link' }),
  'auth.startSso 403': (procedure, { asKey }) =>
    overRest(asKey, procedure, { ...inputFor(procedure, {}), purpose: 'link' }),
  'auth.finishSso 401': (procedure) => finishSsoAs(procedure, { totp_secret: 'JBSWY3DPEHPK3PXP' }),
  'auth.finishSso 403': (procedure) => finishSsoAs(procedure, { is_active: false }),
  'keys.create 404': ofUnknownUser,
  'keys.list 404': ofUnknownUser,
  'subscriptions.upgradeTrial 404': (procedure, world) => sendFor(procedure, world, 'foreign'),
  412: async (procedure, world) => {
    const input = inputFor(procedure, await givenStartState(procedure, world));
    return refusedByAll(allowedCaller(world, procedure), procedure, { ...input, if_version: '1' });
  },
  'cards.updateMany 412': async (procedure, world) => {
    const { cards } = inputFor(procedure, await givenStartState(procedure, world)) as { cards: object[] };
    const input = { cards: cards.map((card) => ({ ...card, if_version: '1' })) };
    return refusedByAll(allowedCaller(world, procedure), procedure, input);
  },
  422: (procedure, world) => {
    const input = { ...invalidInput(procedure), an_unknown_field: null };
    return overRest(allowedCaller(world, procedure), procedure, input);
  },
  429: async (procedure) => {
    limited ??= givenLimitedService();
    const caller = allowedCaller(await givenWorld(await limited), procedure);
    await caller.post('/spend-the-limit');
    return overRest(caller, procedure, inputFor(procedure, {}));
  },
  500: async (procedure) => {
    failing ??= givenFailingService();
    return overRest(allowedCaller(await givenWorld(await failing), procedure), procedure, inputFor(procedure, {}));
  },
};

let limited: Promise<TestService> | undefined;
let failing: Promise<TestService> | undefined;

/** A service with one call for each user and hour: a minute would end between two calls of some operation. */
async function givenLimitedService() {
  const counters = await openCounters(undefined, pino({ level: 'silent' }), (name, points) =>
    countInMemory(name, points, 3600),
  );
  return givenService({}, { rateLimit: makeRateLimit(counters, 1) });
}

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
