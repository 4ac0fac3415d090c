import { initTRPC } from '@trpc/server';
import fc from 'fast-check';
import { pino } from 'pino';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { inputParser } from '../../server/api/parser.ts';
import { type Procedure, procedures, proceduresOf, restProcedures } from '../../server/api/procedures.ts';
import { kebab } from '../../server/cli/options.ts';
import {
  type Given,
  inputFor,
  inputSchemaOf,
  invalidInput,
  NO_CURSOR,
  withGiven,
} from '../../server/contract/input.ts';
import { comparable as hideNew, type Outcome } from '../../server/contract/outcome.ts';
import { document } from '../../server/contract/violations.ts';
import { findCaller } from '../../server/domain/access/caller.ts';
import { countInMemory, openCounters } from '../../server/limits/counters.ts';
import { makeRateLimit } from '../../server/limits/rateLimit.ts';
import { changed, validValue, wrongChange } from '../harness/arbitrary.ts';
import { makeCaller } from '../harness/caller.ts';
import { type Contents, emptyDatabase, readContents, restoreContents } from '../harness/contents.ts';
import { runs, seed } from '../harness/sample.ts';
import { givenService, testDatabase, testService, tokens, withOwnDatabase } from '../harness/service.ts';
import { givenVerifiedFlow } from '../harness/sso.ts';
import { allowedCaller, givenStartState, startStates, type Whose } from '../harness/startStates.ts';
import { overMcp, overRest, overRpc, refusedByAll, type Surface } from '../harness/surfaces.ts';
import {
  givenKey,
  givenThemeVersion,
  givenToken,
  givenUser,
  givenWorld,
  stored,
  type World,
} from '../harness/world.ts';

/**
 * What holds for every procedure: REST, RPC and MCP do and answer the same, with random inputs made from the schema, and every
 * documented status can be reached. `SEED` chooses other inputs, `RUNS` more of them.
 */

/** Without shrinking, which would need a new start state for each attempt. */
const holds = <Value>(arbitrary: fc.Arbitrary<Value>, check: (value: Value) => Promise<void>) =>
  fc.assert(fc.asyncProperty(arbitrary, check), {
    seed,
    numRuns: runs,
    endOnFailure: true,
  });

// Tests empty it, and bring back rows and ids that were there.
withOwnDatabase();

const titled = procedures.map((procedure) => [procedure.name, procedure] as const);

/**
 * Valid inputs, and ones with a change that makes most of them invalid. A specified operation ignores unknown fields on some
 * surfaces, which `unknownFields.test.ts` is about: here they make an input neither valid nor invalid.
 */
function inputsOf(procedure: Procedure) {
  const schema = inputSchemaOf(procedure);
  const parse = inputParser(procedure.input ?? z.object({}));
  const isTaken = (input: unknown, isStrict: boolean) => {
    try {
      parse(input, isStrict);
      return true;
    } catch {
      return false;
    }
  };
  const plain = validValue(schema).filter((input) => isTaken(input, true));
  const odd = fc.tuple(plain, wrongChange(schema)).map(([made, change]) => changed(made, change));
  const isRefused = (input: unknown) => !isTaken(input, !procedure.rest?.isSpecified);
  return {
    taken: fc.oneof(
      plain,
      odd.filter((input) => isTaken(input, true)),
    ),
    refused: odd.filter(isRefused),
  };
}

describe.each(titled)('%s', (name, procedure) => {
  it('writes and answers the same on all surfaces', async () => {
    await holds(inputsOf(procedure).taken, async (made) => {
      await emptyDatabase();
      const world = await givenWorld();
      const input = withGiven(made, { ...NO_CURSOR, ...(await givenStartState(procedure, world)) });
      const before = await readContents();
      const callOver = async (surface: Surface, caller = allowedCaller(world, procedure)) => {
        const outcome = await surface(caller, procedure, input);
        const after = await readContents();
        return { after, compared: { outcome: comparable(outcome, before), written: changedRows(before, after) } };
      };

      const rest = await callOver(overRest);
      await restoreContents(before, rest.after);
      const rpc = await callOver(overRpc);
      await restoreContents(before, rpc.after);
      // Assistants are always signed in, and can't call what answers with a secret.
      const mcp = procedure.hasSecret
        ? undefined
        : await callOver(overMcp, procedure.access === 'anyone' ? world.asViewer : undefined);

      if (startStates.get(name)!.success !== 400) expect(rest.compared.outcome).toHaveProperty('data');
      expect(rest.compared).toEqual(rpc.compared);
      if (mcp) expect(mcp.compared).toEqual(withoutNullContents(rpc.compared));
    });
  });
});

let limitedWorld: World;
let failingWorld: World;

describe('errors', () => {
  beforeAll(async () => {
    await emptyDatabase();
    // A minute would end between two calls of some procedure.
    const counters = await openCounters(undefined, pino({ level: 'silent' }), (name, points) =>
      countInMemory(name, points, 3600),
    );
    limitedWorld = await givenWorld(await givenService({}, { rateLimit: makeRateLimit(counters, 1) }));
    failingWorld = await givenWorld(await givenFailingService());
  });

  describe.each(titled)('%s', (name, procedure) => {
    it.runIf(procedure.input)('422 for the same inputs, with the same message', async () => {
      const world = await givenWorld();
      const caller = allowedCaller(world, procedure);

      await holds(fc.array(inputsOf(procedure).refused, { minLength: 4, maxLength: 4 }), async (inputs) => {
        for (const input of inputs) expect((await refusedByAll(caller, procedure, input)).status).toBe(422);
      });
    });

    it('has every documented error', async () => {
      const world = await givenWorld();
      const documented = Object.keys(document.paths[procedure.rest!.path]!.post.responses);
      const errors = documented.filter((status) => Number(status) >= 400);

      const outcomes = errors.map((status) => (ERRORS[`${name} ${status}`] ?? ERRORS[status]!)(procedure, world));

      expect((await Promise.all(outcomes)).map(({ status }) => String(status))).toEqual(errors);
      expect(JSON.stringify(await Promise.all(outcomes))).not.toContain('internals');
    });

    it('needs a body if it has a required field, on both surfaces and according to the document', async () => {
      const { url } = await testService();
      const { path, status } = procedure.rest!;
      const statusOf = async (address: string) => {
        // With a caller of its own, since some calls end it.
        const { superadmin } = (await givenWorld()).users;
        const token = procedure.access === 'key' ? (await givenKey(superadmin)).secret : await givenToken(superadmin);
        const headers = { authorization: `Bearer ${token}` };
        return (await fetch(url + address, { method: 'POST', headers })).status;
      };

      const statuses = [await statusOf(`/api${path}`), await statusOf(`/trpc/${name}`)];

      expect(statuses).toEqual(procedure.needsInput ? [400, 400] : [status, 200]);
      expect(document.paths[path]!.post.requestBody?.required ?? false).toBe(procedure.needsInput);
    });
  });
});

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
    const caller = allowedCaller(limitedWorld, procedure);
    await caller.post('/spend-the-limit');
    return overRest(caller, procedure, inputFor(procedure, {}));
  },
  500: (procedure) => overRest(allowedCaller(failingWorld, procedure), procedure, inputFor(procedure, {})),
};

const mapValues = <Value>(object: Record<string, Value>, change: (value: Value, key: string) => unknown) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));

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

/** The rows of each table that are new or changed, and how many are gone. */
const changedRows = (before: Contents, after: Contents) =>
  mapValues(after, (rows, table) => {
    const old = new Set(before[table]!.map((row) => JSON.stringify(row)));
    const changed = rows.filter((row) => !old.has(JSON.stringify(row)));
    const kept = changed.map((row) => JSON.stringify(comparable(row, before))).sort();
    return { changed: kept, gone: old.size - (rows.length - changed.length) };
  });

/** For comparing the results of two calls on the same contents. */
const comparable = (value: unknown, before: Contents) => hideNew(value, JSON.stringify(before), tokens.read);

/** Assistants get no fields that are null, and no schema says which ones a release has. */
const withoutNullContents = <Value>(compared: Value): Value => {
  const withoutNulls = (content: object) =>
    Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null));
  return JSON.parse(JSON.stringify(compared, (key, part) => (key === 'content' && part ? withoutNulls(part) : part)));
};

/** The optional fields that are not changed unless they are sent; whether null clears them. */
function unchangedFields(procedure: Procedure): { name: string; isCleared: boolean }[] {
  return Object.entries(inputSchemaOf(procedure).properties ?? {})
    .filter(([, { description = '' }]) => description.includes('Not changed if not sent'))
    .map(([name, { description = '' }]) => ({ name, isCleared: description.endsWith('null clears it.') }));
}

describe('an update', () => {
  const updates = procedures.filter((procedure) => unchangedFields(procedure).length > 0);
  /** The field of the answer that shows a field of the input. */
  const ANSWERED_AS: Record<string, string> = { reason: 'deprecation_reason' };

  it('has such fields in cards.update and plans.set', () => {
    expect(updates.map(({ name }) => name)).toEqual(expect.arrayContaining(['cards.update', 'plans.set']));
  });

  it.each(updates)('$name changes an absent field never, and a null one as its description says', async (procedure) => {
    const world = await givenWorld();
    const given = await givenStartState(procedure, world);
    // Another published version of the same theme.
    if ('replacement_version_id' in given)
      given.replacement_version_id = await givenThemeVersion(world.project, {
        theme_id: (await stored('theme_versions', given.version_id as number)).theme_id,
      });
    const full = { ...inputFor(procedure, given), ...given };
    const { required = [] } = inputSchemaOf(procedure);
    const needed = Object.fromEntries(required.map((name) => [name, full[name]]));
    const call = async (input: Given): Promise<Given> => {
      const { data } = await overRest(world.asSuperadmin, procedure, input);
      return Object.values(data as Record<string, Given>)[0]!;
    };

    const fields = unchangedFields(procedure);
    const before = await call(full);
    const whenAbsent = await call(needed);
    const whenNull = await call({ ...needed, ...Object.fromEntries(fields.map(({ name }) => [name, null])) });

    for (const { name, isCleared } of fields) {
      const shown = ANSWERED_AS[name] ?? name;
      if (!(shown in before)) continue;
      expect(before[shown], `${name} has a value`).not.toBeNull();
      expect(whenAbsent[shown], `${name} is absent`).toEqual(before[shown]);
      expect(whenNull[shown], `${name} is null`).toEqual(isCleared ? null : before[shown]);
    }
  });
});

/** `cards.move` is `cards/move` below the segment of its area. */
function pathOf(name: string): string {
  const [noun, verb] = kebab(name).split('.') as [string, string];
  if (noun === 'account' || noun === 'auth') return `/v1/${noun}/${verb}`;
  if (noun === 'themes') {
    const isOfVersion = /-versions?$|^deprecate-|^undo-/.test(verb);
    return `/services/websites/v1/themes/${isOfVersion ? 'versions/' : ''}${verb.replace(/-versions?$/, '')}`;
  }
  if (/^(master-|template-(runs|files)|releases|rollouts)/.test(noun))
    return `/services/operations/v1/admin/${noun}/${verb}`;
  const isOperation = ['boards', 'groups', 'cards', 'comments', 'tags', 'tour', 'trash', 'templates'].includes(noun);
  return `/services/${isOperation ? 'operations/v1/operations' : 'platforms/v1'}/${noun}/${verb}`;
}

describe('the router', () => {
  it('throws for a procedure without an access level', () => {
    const { router, procedure } = initTRPC.create();
    const withoutAccess = router({ tags: router({ list: procedure.query(() => []) }) });

    expect(() => proceduresOf(withoutAccess)).toThrow('tags.list has no access level');
  });

  it('throws for a procedure without a REST path that does not say why', () => {
    const { router, procedure } = initTRPC.meta<object>().create();
    const withMeta = (meta: object) =>
      router({ tags: router({ list: procedure.meta({ access: 'viewer', ...meta }).query(() => []) }) });

    expect(() => proceduresOf(withMeta({}))).toThrow('tags.list has no REST path');
    expect(proceduresOf(withMeta({ rpcOnly: 'It streams.' }))).toMatchObject([{ name: 'tags.list', rest: undefined }]);
  });

  it('has an output schema for each procedure', () => {
    expect(procedures.filter(({ output }) => output === undefined)).toEqual([]);
  });

  it('has each REST path once, in a documented area', () => {
    const paths = restProcedures.map(({ rest }) => rest.path);

    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths)
      expect(path).toMatch(
        /^\/v1\/(authenticate|(account|auth)\/[a-z-]+)$|^\/services\/(operations|platforms|websites)\/v1\/[a-z/-]+$/,
      );
  });

  it('has paths beyond the specification that follow from the names of the procedures', () => {
    const others = restProcedures.filter(({ rest }) => !rest.isSpecified);

    expect(others.length).toBeGreaterThan(60);
    for (const { name, rest } of others) expect(rest.path, name).toBe(pathOf(name));
  });
});
