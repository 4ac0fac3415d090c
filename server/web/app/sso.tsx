import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { DeckhandError } from '../../../client/client.ts';
import { address, currentPlace } from './address.ts';
import { Action } from './parts/action.tsx';
import { Form } from './parts/form.tsx';
import { client, explain } from './service.ts';
import { storeSession } from './session.ts';
import { CodeFields } from './signIn.tsx';

/** Sign-ins at identity providers. What only this browser knows of one that is under way is kept until it is finished. */

type Purpose = 'sign_in' | 'link' | 'prove';
type Kept = { verifier: string; purpose: Purpose; back: string; isNewTab: boolean };

const KEY = 'deckhand.sso.';
/** Changes when another tab has finished one. */
const DONE = 'deckhand.sso-done';

const issuers = signal<{ name: string; title: string }[] | undefined>(undefined);

/** The identity providers of the service; none until they are read. */
export function useIssuers() {
  useEffect(() => {
    if (issuers.peek()) return;
    issuers.value = [];
    client.auth.listIssuers.query().then((read) => {
      issuers.value = read.issuers;
    }, ignore);
  }, []);
  return issuers.value ?? [];
}
const ignore = () => undefined;

/** In a new tab, so that what was typed in this one stays. */
type Start = { issuer: string; purpose: Purpose; isNewTab?: boolean };

async function start({ issuer, purpose, isNewTab = false }: Start): Promise<void> {
  // Opened at once: later, browsers take it for an advertisement.
  const tab = isNewTab ? open('', '_blank') : window;
  if (!tab) throw new Error('The browser opened no tab: allow pop-ups for this page.');
  try {
    const verifier = toText(crypto.getRandomValues(new Uint8Array(32)));
    const challenge = toText(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))));
    const { url, state } = await client.auth.startSso.mutate({ issuer, purpose, challenge });
    for (const key of Object.keys(localStorage)) if (key.startsWith(KEY)) localStorage.removeItem(key);
    const kept: Kept = { verifier, purpose, back: currentPlace(), isNewTab };
    localStorage.setItem(KEY + state, JSON.stringify(kept));
    if (isNewTab) tab.opener = null;
    tab.location.assign(url);
  } catch (error) {
    if (isNewTab) tab.close();
    throw error;
  }
}

/** As base64url. */
const toText = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes)).replace(/[+/=]/g, (sign) => ({ '+': '-', '/': '_' })[sign] ?? '');

type SsoButtonProps = Start & { text: string; onDone?: () => void };

/** A button that leads to an identity provider. `onDone` is called when another tab has finished it. */
export function SsoButton({ text, onDone, ...started }: SsoButtonProps) {
  useEffect(() => {
    const listen = ({ key }: StorageEvent) => void (key === DONE && onDone?.());
    addEventListener('storage', listen);
    return () => removeEventListener('storage', listen);
  }, []);
  return (
    <Action as="quiet" run={() => start(started)}>
      {text}
    </Action>
  );
}

const readKept = (state: string): Kept | undefined =>
  JSON.parse(localStorage.getItem(KEY + state) ?? 'null') ?? undefined;

/** Where an identity provider sends people back to. */
export function SsoCallback() {
  const state = address.value.query.get('state') ?? '';
  const failure = useSignal('');
  const needsCode = useSignal(false);
  const isDone = useSignal(false);
  const finish = async ({ code, is_recovery }: Record<string, string> = {}) => {
    const kept = readKept(state);
    if (!kept) throw new Error('This sign-in was started in another browser, or is finished. Start it again.');
    const { verifier, purpose, back, isNewTab } = kept;
    const callback = location.search.slice(1);
    const codes = code ? { code: code.trim(), is_recovery: is_recovery === 'on' } : {};
    try {
      const { token, email } = await client.auth.finishSso.mutate({ state, verifier, callback, ...codes });
      localStorage.removeItem(KEY + state);
      if (token) storeSession({ token, name: email, isSignedIn: true });
      localStorage.setItem(DONE, `${purpose} ${Date.now()}`);
    } catch (error) {
      needsCode.value = (error as DeckhandError).reason?.startsWith('code') ?? false;
      throw error;
    }
    isDone.value = true;
    if (isNewTab) close();
    else location.replace(back);
  };
  useEffect(() => {
    finish().catch((error) => {
      failure.value = explain(error);
    });
  }, []);
  return (
    <main class="empty" id="content">
      <h1>{isDone.value ? 'Done' : failure.value && !needsCode.value ? 'Not signed in' : 'Signing in …'}</h1>
      {isDone.value && <p>You can close this tab.</p>}
      {needsCode.value && !isDone.value ? (
        <Form action="Go on" onSubmit={finish}>
          <CodeFields />
        </Form>
      ) : (
        <p class="failure" role="alert">
          {failure}
        </p>
      )}
      {failure.value && !isDone.value && (
        <p>
          <a class="button quiet" href="/" target="_self">
            To the start
          </a>
        </p>
      )}
    </main>
  );
}
