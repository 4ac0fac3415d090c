import { type Client, createClient, type DeckhandError } from '../../client/client.ts';
import { unauthorized } from '../../shared/errors.ts';
import type { Call, ReadEnvironment, Where } from './command.ts';
import { keepLogin, readLogins } from './logins.ts';
import { askSecret, type Terminal } from './terminal.ts';
import { isOnThisMachine, plainUrl } from './url.ts';

/** Calls procedures over RPC, with the API key of the environment, or as the user who signed in. */
export async function callsOnService(
  url: string,
  { chosen, environment, terminal }: Where,
  isQuery: (procedure: string) => boolean,
): Promise<Call> {
  const { token, email } = await credentialFor(url, environment);
  const client = createClient({ url, token, projectId: chosen.project });
  return async (procedure, input) => {
    const attempt = () => send(client, procedure, isQuery(procedure) ? 'query' : 'mutate', input);
    const result = await withProof(client, terminal, attempt).catch((error: DeckhandError) => {
      throw withRemedy(error, url, email);
    });
    if (procedure === CHANGES_TOKEN && email !== undefined) {
      await keepLogin(environment, url, { email, ...(result as { token: string }) });
    }
    return result;
  };
}

/** On a terminal, asks for the proof that a call needs, and repeats the call. Programs call `account prove` first. */
async function withProof(client: Client, terminal: Terminal, attempt: () => Promise<unknown>): Promise<unknown> {
  const isAskedFor = ({ reason }: DeckhandError) => reason === 'proof_required' && terminal.canReply;
  try {
    return await attempt();
  } catch (error) {
    if (!isAskedFor(error as DeckhandError)) throw error;
  }
  terminal.write('This needs your password again; it then counts for ten minutes.\n');
  const password = await askSecret(terminal, 'password', false);
  await client.account.prove.mutate({ password }).catch(async (error: DeckhandError) => {
    if (!isAskedFor(error)) throw error;
    const code = (await terminal.ask('code of the authenticator app: ')).trim();
    await client.account.prove.mutate({ password, code });
  });
  return attempt();
}

/** `email` is undefined for an API key. */
export async function credentialFor(
  url: string,
  environment: ReadEnvironment,
): Promise<{ token: string; email?: string }> {
  const { DECKHAND_KEY, DECKHAND_URL } = environment();
  // A key is for one service: another one could use it there.
  const isKeyForIt = !DECKHAND_URL || plainUrl(DECKHAND_URL) === url;
  if (DECKHAND_KEY && isKeyForIt) return { token: DECKHAND_KEY };
  const { [url]: login } = await readLogins(environment);
  if (login) return login;
  const hint = DECKHAND_KEY
    ? '(DECKHAND_KEY was not sent: it is for the service of DECKHAND_URL)'
    : '(programs: set DECKHAND_KEY to an API key)';
  throw unauthorized(`You are not signed in to ${url}. ${signInFirst(url, 'EMAIL')} ${hint}`, 'not_signed_in');
}

/** Says what to do about a service that can't be reached, or that did not accept the key or the login of this address. */
export function withRemedy(error: DeckhandError, url: string, email: string | undefined): Error {
  if (error.status !== 401) return withStartHint(error, url);
  return unauthorized(
    email === undefined
      ? `${url} did not accept the key in DECKHAND_KEY: ${error.message}`
      : `Your login to ${url} has expired or was ended. ${signInFirst(url, email)}`,
    error.reason ?? 'not_signed_in',
  );
}

/** Says how to start a service on this machine that can't be reached. */
export function withStartHint(error: DeckhandError, url: string): DeckhandError {
  const isSilent = error.name === 'DeckhandError' && error.status === undefined;
  if (isSilent && isOnThisMachine(url)) error.message += ' Start it with npm start.';
  return error;
}

/** Ends all sessions, and opens a new one. */
const CHANGES_TOKEN = 'account.changePassword';

const signInFirst = (url: string, email: string) => `Run: npx deckhand login --url ${url} --email ${email}`;

type Untyped = Record<string, Record<string, Record<'query' | 'mutate', (input: unknown) => Promise<unknown>>>>;

function send(client: Client, procedure: string, kind: 'query' | 'mutate', input: unknown): Promise<unknown> {
  const [noun, verb] = procedure.split('.');
  return (client as unknown as Untyped)[noun!]![verb!]![kind](input);
}
