import { type Client, createClient, type DeckhandError } from '../../client/client.ts';
import { unauthorized } from '../errors.ts';
import { findProcedure } from '../procedures.ts';
import type { Call, Where } from './command.ts';
import { keepLogin, readLogins } from './logins.ts';

/** Calls procedures over RPC, as the user who signed in. */
export async function callsOnService(url: string, { chosen, environment }: Where): Promise<Call> {
  const { [url]: login } = await readLogins(environment);
  if (!login) throw unauthorized(`You are not signed in to ${url}. ${signInFirst(url, 'EMAIL')}`, 'not_signed_in');

  const client = createClient({ url, token: login.token, projectId: chosen.project });
  return async (procedure, input) => {
    const result = await send(client, procedure, input).catch((error: DeckhandError) => {
      if (error.status !== 401) throw error;
      throw unauthorized(
        `Your login to ${url} has expired or was ended. ${signInFirst(url, login.email)}`,
        'not_signed_in',
      );
    });
    if (procedure === CHANGES_TOKEN) await keepLogin(environment, url, { ...login, ...(result as { token: string }) });
    return result;
  };
}

/** Ends all sessions, and opens a new one. */
const CHANGES_TOKEN = 'account.changePassword';

const signInFirst = (url: string, email: string) => `Run: npx deckhand login --url ${url} --email ${email}`;

type Untyped = Record<string, Record<string, Record<'query' | 'mutate', (input: unknown) => Promise<unknown>>>>;

function send(client: Client, procedure: string, input: unknown): Promise<unknown> {
  const [noun, verb] = procedure.split('.');
  const kind = findProcedure(procedure)!.type === 'query' ? 'query' : 'mutate';
  return (client as unknown as Untyped)[noun!]![verb!]![kind](input);
}
