import { hash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Client, createClient } from '../../client/client.ts';
import { startFailure } from '../runtime/startFailure.ts';
import { startBrowser } from './browser.ts';
import type { Where } from './command.ts';
import { misuse } from './misuse.ts';

const LONGEST_WAIT_MILLISECONDS = 5 * 60_000;

type Code = { code?: string; is_recovery?: boolean };

/** Signs in at an identity provider, in the browser. Returns how to finish it, with a code if the service asks for one. */
export async function startSsoLogin(url: string, issuer: string | undefined, { environment, terminal }: Where) {
  const client = createClient({ url });
  const name = issuer ?? (await onlyIssuer(client, url));
  const listener = await listenForCallback();
  try {
    const verifier = randomBytes(32).toString('base64url');
    const challenge = hash('sha256', verifier, 'base64url');
    const started = { issuer: name, challenge, loopback_port: listener.port };
    const { url: sent, state } = await client.auth.startSso.mutate(started);
    const address = pageOf(sent, url);
    terminal.write(`Sign in at this address, in a browser on this machine:\n${address}\n`);
    const callback = listener.callbackOf(state);
    // A browser that is signed in already may answer while its program is still being watched.
    const problem = await Promise.race([startBrowser(address, environment().BROWSER), callback.then(() => undefined)]);
    if (problem !== undefined) terminal.write(`No browser was opened: ${problem}. Open the address yourself.\n`);

    const finished = { state, verifier, callback: await callback };
    return async (code: Code) => {
      const { token, ...user } = await client.auth.finishSso.mutate({ ...finished, ...code });
      return { ...user, token: token ?? '' };
    };
  } finally {
    listener.close();
  }
}

/** The opener would also start programs and open files, which a service must not choose. */
function pageOf(sent: string, url: string): string {
  const page = URL.parse(sent);
  if (!page || !/^https?:$/.test(page.protocol)) throw startFailure(`${url} sent no address of an identity provider.`);
  return page.href;
}

async function onlyIssuer(client: Client, url: string): Promise<string> {
  const { issuers } = await client.auth.listIssuers.query();
  const [first, ...others] = issuers.map(({ name }) => name);
  if (first === undefined) throw startFailure(`${url} has no identity provider: sign in with --email.`);
  if (others.length > 0)
    throw misuse(`Name the identity provider, as in --sso ${first}: ${[first, ...others].join(', ')}.`);
  return first;
}

/** Waits on 127.0.0.1 for the browser. Only the sign-in with the right state ends the wait. */
async function listenForCallback() {
  let expected: string | undefined;
  let finish: (callback: string) => void = () => undefined;
  const arrived = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const server = createServer((request, response) => {
    const { pathname, search, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1');
    const isOurs = pathname === '/callback' && expected !== undefined && searchParams.get('state') === expected;
    response.writeHead(isOurs ? 200 : 404, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' });
    response.end(
      isOurs ? 'Go back to the terminal: the sign-in ends there. You can close this tab.\n' : 'Not found.\n',
    );
    if (isOurs) finish(search.slice(1));
  });
  await new Promise<void>((resolve, reject) => server.on('error', reject).listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    callbackOf: async (state: string) => {
      expected = state;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        const refuse = () => reject(startFailure('Nobody signed in within five minutes. Run the command again.'));
        timer = setTimeout(refuse, LONGEST_WAIT_MILLISECONDS);
      });
      return Promise.race([arrived, late]).finally(() => clearTimeout(timer));
    },
    close: () => void server.close(),
  };
}
