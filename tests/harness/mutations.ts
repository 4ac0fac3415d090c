import { sql } from 'kysely';
import { expect } from 'vitest';
import { type Procedure, procedures } from '../../server/api/procedures.ts';
import { type Given, inputFor } from '../../server/contract/input.ts';
import { query } from '../../server/database/query.ts';
import type { TestCaller } from './caller.ts';
import { codeAt, SECRET } from './codes.ts';
import { testService } from './service.ts';
import { allowedCaller, givenStartState } from './startStates.ts';
import { givenToken, givenWorld, PASSWORD, testDb, type World } from './world.ts';

/** Calls of every mutation, each of which changes something. */

/** They need an identity provider: see tests/access/sso.test.ts. */
const ELSEWHERE = ['auth.startSso', 'auth.finishSso'];

export const mutations = procedures.filter(({ type, name }) => type === 'mutation' && !ELSEWHERE.includes(name));

export type Called = { status: number; headers: Headers; body?: unknown };
export type Surface = (caller: TestCaller, procedure: Procedure, input: Given, key?: string) => Promise<Called>;

const keyHeader = (key?: string): Record<string, string> => (key === undefined ? {} : { 'Idempotency-Key': key });

export const overRest: Surface = (caller, { rest }, input, key) => caller.post(rest!.path, input, keyHeader(key));

export const overRpc: Surface = async ({ token }, { name }, input, key) => {
  const { url } = await testService();
  const headers = {
    'content-type': 'application/json',
    ...(token && { authorization: `Bearer ${token}` }),
    ...keyHeader(key),
  };
  return fetch(`${url}/trpc/${name}`, { method: 'POST', headers, body: JSON.stringify({ json: input }) });
};

/** As an assistant, which needs an API key. */
export const overMcp: Surface = async ({ token }, { name }, input) => {
  const { url } = await testService();
  const message = { name: 'operations_call', arguments: { name, input } };
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: message }),
  });
  const text = await response.text();
  if (text.includes('"isError":true')) throw new Error(text);
  return response;
};

const change = async (statement: ReturnType<typeof sql>): Promise<undefined> => {
  await query(await testDb(), statement);
};

/** Makes a start state one that the call changes, since some have the result of their call already. Returns more input. */
const BEFORE: Record<string, (world: World, given: Given) => Promise<Given | undefined>> = {
  'account.setDefaultProject': ({ users }) =>
    change(sql`update users set default_project_id = null where id = ${users.superadmin.id}`),
  'account.confirmSecondFactor': async ({ asSuperadmin }) => {
    const { secret } = await asSuperadmin.rpc.account.startSecondFactor.mutate({ password: PASSWORD });
    return { code: codeAt(0, secret) };
  },
  'account.dropSecondFactor': protectCaller,
  'account.renewRecoveryCodes': protectCaller,
  'groups.configure': async () => ({ is_active: false }),
  'tour.restart': async ({ asSuperadmin }): Promise<undefined> => {
    await asSuperadmin.rpc.tour.dismissAll.mutate();
  },
  // Without `until`, each hold ends later than the one before.
  'templates.hold': async () => ({ until: new Date(Date.now() + 86_400_000).toISOString() }),
  'templates.unhold': async ({ asSuperadmin }, { board_id }): Promise<undefined> => {
    await asSuperadmin.rpc.templates.hold.mutate({ board_id: Number(board_id) });
  },
  'templates.unpin': ({ project }, { board_id }) =>
    change(sql`
      insert into project_templates (project_id, board_id, pinned)
      select ${project.id}, master_board_id, '{1}' from boards where id = ${board_id}`),
  'themes.undoDeprecation': (_, { version_id }) =>
    change(sql`update theme_versions set theme_status = 'deprecated', deprecated_at = now() where id = ${version_id}`),
  'themes.approveVersion': (_, { version_id }) =>
    change(sql`
      update theme_versions set approval_status = 'pending', theme_status = 'draft', published_at = null where id = ${version_id}`),
  'themes.publishVersion': (_, { version_id }) =>
    change(sql`update theme_versions set theme_status = 'draft', published_at = null where id = ${version_id}`),
  'users.signOut': async (_, { id }): Promise<undefined> => {
    await givenToken({ id: Number(id), email: '' });
  },
  'users.dropSecondFactor': (_, { id }) => change(sql`update users set totp_secret = ${SECRET} where id = ${id}`),
};

async function protectCaller({ users }: World): Promise<Given> {
  await change(sql`update users set totp_secret = ${SECRET} where id = ${users.superadmin.id}`);
  return { code: codeAt(0) };
}

/** A call that changes something: its caller with their id, and its input. */
export async function givenCall(procedure: Procedure) {
  const world = await givenWorld();
  const given = await givenStartState(procedure, world);
  const more = await BEFORE[procedure.name]?.(world, given);
  const input = { ...inputFor(procedure, given), ...more };
  const caller = allowedCaller(world, procedure);
  const userId = await userOf(world, caller, input);
  return { world, caller, given, input, userId };
}

/** The user who calls; at sign-in, the one who signs in; with a link, anybody. */
async function userOf({ users, asMember, asNobody }: World, caller: TestCaller, { email }: Given): Promise<number> {
  if (caller !== asNobody) return (caller === asMember ? users.member : users.superadmin).id;
  const [user] = await query(await testDb(), sql<{ id: number }>`select id from users where email = ${email}`);
  return user?.id ?? expect.any(Number);
}
