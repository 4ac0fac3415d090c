import { createClient, type DeckhandError, type SignedIn } from '../../client/client.ts';
import type { Given, Outcome } from './command.ts';
import { keepLogin, readLogins } from './logins.ts';
import { misuse } from './misuse.ts';
import { withStartHint } from './onService.ts';
import { knownUrl } from './serviceUrl.ts';
import { askSecret, type Terminal } from './terminal.ts';
import { chosenUrl } from './url.ts';

type Input = { email?: string; sso?: boolean; issuer?: string };

/** Signs in to a service and keeps the token. */
export async function login(given: Given): Promise<Outcome> {
  const { input, chosen, environment } = given;
  const url = chosenUrl({ chosen, environment });
  if (url === undefined) throw misuse('--url is missing.');

  const { email = '', sso = false, issuer } = input as Input;
  if (issuer !== undefined && !sso) throw misuse(`Add --sso to sign in at ${issuer}.`);
  const user = await (sso ? signInBySso(url, issuer, given) : signInByPassword(url, email, given)).catch((error) => {
    throw withStartHint(error, url);
  });
  await keepLogin(environment, url, { email: user.email, token: user.token });

  const { token: _, ...profile } = user;
  const expires_at = expiryOf(user.token);
  const warning =
    user.warn_message && `\n${user.warn_message} Run: npx deckhand account renew-recovery-codes --url ${url}`;
  return {
    result: { user: profile, url, expires_at },
    message: `Signed in to ${url} as ${user.name} (${user.email}) until ${expires_at}.${warning}
Commands with --url ${url} act as you now, and so do all while DECKHAND_URL is set to it. Your projects:
npx deckhand projects list-own --url ${url}`,
  };
}

/** Ends the session on the service, and deletes the token. */
export async function logout({ chosen, environment }: Given): Promise<Outcome> {
  const logins = await readLogins(environment);
  const url = await knownUrl({ chosen, environment });
  const signedIn = url === undefined ? undefined : logins[url];
  if (url === undefined || !signedIn) return { result: { url: null }, message: 'You are not signed in.' };

  await keepLogin(environment, url, undefined);
  const client = createClient({ url, token: signedIn.token });
  await client.account.signOut.mutate().catch((error: DeckhandError) => {
    if (error.status === 401) return;
    error.message = `The token is deleted, but its session was not ended: ${error.message}`;
    throw error;
  });
  return { result: { url }, message: `Signed out of ${url}.` };
}

/** The earlier token is sent along, so that a remembered device needs no code. */
async function signInByPassword(url: string, email: string, { environment, terminal, chosen }: Given) {
  const password = await askSecret(terminal, 'password', false);
  const { [url]: earlier } = await readLogins(environment);
  const token = earlier?.email.toLowerCase() === email.toLowerCase() ? earlier.token : undefined;
  const { auth } = createClient({ url });
  return signIn((code) => auth.authenticate.mutate({ email, password, token, ...code }), chosen, terminal);
}

async function signInBySso(url: string, issuer: string | undefined, given: Given) {
  const { startSsoLogin } = await import('./ssoLogin.ts');
  return signIn(await startSsoLogin(url, issuer, given), given.chosen, given.terminal);
}

/** Asks for a code if the service does; on a terminal again while it is wrong. */
async function signIn(
  finish: (code: { code?: string; is_recovery?: boolean }) => Promise<SignedIn>,
  { recovery: is_recovery = false }: Given['chosen'],
  terminal: Terminal,
): Promise<SignedIn> {
  const attempt = (code?: string) => finish(code === undefined ? {} : { code, is_recovery });

  for (let code: string | undefined; ; ) {
    try {
      return await attempt(code);
    } catch (error) {
      const { reason, message } = error as DeckhandError;
      const isWrong = reason === 'code_wrong' && terminal.canReply;
      if (reason !== 'code_required' && !isWrong) throw error;
      if (isWrong) terminal.write(`${message}\n`);
      code = (await terminal.ask(is_recovery ? 'recovery code: ' : 'code of the authenticator app: ')).trim();
      if (code === '') throw error;
    }
  }
}

function expiryOf(token: string): string {
  const [, payload = ''] = token.split('.');
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return new Date(exp * 1000).toISOString();
}
