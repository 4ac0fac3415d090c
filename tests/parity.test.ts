import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { exampleOf, type Schema } from '../server/http/example.ts';
import { type Procedure, procedures, restProcedures } from '../server/http/procedures.ts';
import { SENT_AS_TEXT } from '../shared/fields.ts';
import type { TestCaller } from './harness/caller.ts';
import { databaseUrl } from './harness/service.ts';
import {
  givenBoard,
  givenCard,
  givenGroup,
  givenMasterBoard,
  givenThemeVersion,
  givenTrial,
  givenUser,
  givenWorld,
  PASSWORD,
  type World,
} from './harness/world.ts';

/**
 * Walks the router: whatever a procedure is sent, both surfaces say the same. An added procedure is covered by being
 * there; one whose example input needs a start state gets it here.
 */
const startStates: Record<string, (world: World) => Promise<object>> = {
  'auth.authenticate': async () => ({ email: (await givenUser()).email, password: PASSWORD }),
  'boards.get': async ({ project }) => ({ id: await givenBoard(project) }),
  'groups.update': async ({ project }) => ({ id: await givenGroup(project, await givenBoard(project)), title: 'x' }),
  'groups.reorder': async ({ project }) => {
    const board = await givenBoard(project);
    const ids = [await givenGroup(project, board), await givenGroup(project, board)];
    return { groups: ids.map((id, at) => ({ id, position: 9 - at })) };
  },
  'cards.delete': async ({ project }) => ({ id: await givenCard(project) }),
  'comments.create': async ({ project }) => ({ card_id: await givenCard(project), comment: 'x' }),
  'masterBoards.sync': async () => ({ board_id: (await givenMasterBoard()).board }),
  'masterBoards.delete': async () => ({ id: (await givenMasterBoard()).board }),
  'masterGroups.create': async () => ({ board_id: (await givenMasterBoard()).board, title: 'x' }),
  'masterGroups.update': async () => ({ id: (await givenMasterBoard()).group, title: 'x' }),
  'masterGroups.reorder': async () => {
    const { board, group } = await givenMasterBoard();
    return { board_id: board, groups: [{ id: group, position: 7 }] };
  },
  'masterGroups.delete': async () => ({ id: (await givenMasterBoard()).group }),
  'masterCards.create': async () => ({ group_id: (await givenMasterBoard()).group, title: 'x' }),
  'masterCards.push': async () => ({ card_id: (await givenMasterBoard()).card }),
  'masterCards.delete': async () => ({ id: (await givenMasterBoard()).card }),
  'subscriptions.upgradeTrial': async ({ project }) => {
    const { product } = await givenTrial(project);
    return { product, plan: 'pro', period: 'year' };
  },
  'themes.deprecateVersion': async ({ project }) => ({ version_id: await givenThemeVersion(project) }),
};

const jsonSchemaOf = (schema: z.ZodType): Schema =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema;

async function validInput({ name, input }: Procedure, world: World): Promise<object | undefined> {
  const state = startStates[name];
  if (state) return state(world);
  if (!input) return undefined;
  const schema = jsonSchemaOf(input);
  const required = Object.entries(schema.properties ?? {}).filter(([field]) => schema.required?.includes(field));
  return Object.fromEntries(required.map(([field, property]) => [field, exampleOf(property, {})]));
}

/** Inputs with one field after the other replaced by what it can't be; those that fit after all are made anew each time. */
function invalidInputs({ input }: Procedure): { [field: string]: unknown }[] {
  if (!input) return [];
  const fields = Object.keys(jsonSchemaOf(input).properties ?? {});
  const wrong = [2147483000, '5', true, '', null, 1.5, '\0'];
  return fields.flatMap((field) => wrong.map((value) => ({ [field]: value })));
}

/** One outcome in the terms of both surfaces: what is only the surface's is taken off. */
async function overRest(caller: TestCaller, { rest, output }: Procedure, input: unknown) {
  const { status, body } = await caller.post(rest!.path, input);
  if (status >= 400) return { status, message: body.message, errors: body.errors };
  expect(status).toBe(rest!.status);
  return { data: withoutVolatile(asTyped(output, body.data)) };
}

async function overRpc(caller: TestCaller, { name, type }: Procedure, input: unknown) {
  const [router, procedure] = name.split('.') as [string, string];
  const call = (caller.rpc as any)[router][procedure][type === 'query' ? 'query' : 'mutate'];
  try {
    const result = await call(input);
    return { data: withoutVolatile(result === undefined ? [] : JSON.parse(JSON.stringify(result))) };
  } catch (error: any) {
    return { status: error.data.httpStatus, message: error.message, errors: error.data.errors };
  }
}

/** Reads what REST sent as text. */
function asTyped(schema: z.ZodType, value: any): any {
  if (z.globalRegistry.get(schema)?.[SENT_AS_TEXT] !== undefined) return JSON.parse(value);
  if (schema instanceof z.ZodArray)
    return value.map((element: unknown) => asTyped(schema.element as z.ZodType, element));
  if (!(schema instanceof z.ZodObject)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, part]) => [field, asTyped(schema.shape[field], part)]));
}

const AT_ONCE = 10;

const VOLATILE = /^(id|token|email|checkout_url|unique_identifier|created_by|.+_id|.+_at)$/;

function withoutVolatile(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, part) => (VOLATILE.test(key) && part !== null ? typeof part : part)));
}

describe.each(restProcedures.map((procedure) => [procedure.name, procedure] as const))('%s', (_, procedure) => {
  it('has the same effect and answer on both surfaces', async () => {
    const [here, there] = [await givenWorld(), await givenWorld()];

    const rest = await overRest(here.asSuperadmin, procedure, await validInput(procedure, here));
    const rpc = await overRpc(there.asSuperadmin, procedure, await validInput(procedure, there));

    expect(rest).toEqual(rpc);
  });

  // Hardly one of them gets as far as the database: on one kind of it is enough.
  it.skipIf(databaseUrl)('refuses the same inputs with the same words', async () => {
    const world = await givenWorld();
    const inputs = invalidInputs(procedure);
    const shared = await validInput(procedure, world);
    const valid = () => (procedure.name.endsWith('.delete') ? validInput(procedure, world) : shared);

    for (let at = 0; at < inputs.length; at += AT_ONCE) {
      await Promise.all(
        inputs.slice(at, at + AT_ONCE).map(async (input) => {
          const [rest, rpc] = await Promise.all([
            overRest(world.asSuperadmin, procedure, { ...(await valid()), ...input }),
            overRpc(world.asSuperadmin, procedure, { ...(await valid()), ...input }),
          ]);
          if (rest.status === undefined) expect(rpc.status, JSON.stringify(input)).toBeUndefined();
          else expect(rest, JSON.stringify(input)).toEqual(rpc);
        }),
      );
    }
  });

  it('refuses the same callers with the same words', async () => {
    const world = await givenWorld();

    for (const who of ['asNobody', 'asViewer', 'asMember', 'asOwner', 'asOutsider', 'asSuperadmin'] as const) {
      const rest = await overRest(world[who], procedure, await validInput(procedure, world));
      const rpc = await overRpc(world[who], procedure, await validInput(procedure, world));
      expect([who, rest.status, rest.message]).toEqual([who, rpc.status, rpc.message]);
    }
  });
});

describe('the router', () => {
  it('says of every procedure who may call it, and what it answers', () => {
    for (const { name, access, output } of procedures) {
      expect(access, name).toBeDefined();
      expect(output, name).toBeDefined();
    }
  });

  it('has each REST path once, below the documented areas', () => {
    const paths = restProcedures.map(({ rest }) => rest.path);

    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths)
      expect(path).toMatch(/^\/v1\/authenticate$|^\/services\/(operations|platforms|websites)\/v1\/[a-z/-]+$/);
  });
});
