import { effect, signal } from '@preact/signals';
import { type Client, createClient, DeckhandError } from '../../../client/client.ts';
import { askForProof } from './proof.ts';
import { endSession, keepSession, session, token, untilSignedIn } from './session.ts';

/** A change without a response by then is undone. */
const LONGEST_WAIT_MILLISECONDS = 15_000;
const MOST_SHOWN = 50;
/** What fails for a moment is tried again so much later. */
export const RETRY_MILLISECONDS = 5000;

export type RecordedCall = { id: number; code: string; outcome: string; hasFailed: boolean };

/** The calls of this page, newest first; shown below "Calls". */
export const calls = signal<RecordedCall[]>([]);
/** Whether the last request reached the service. */
export const isConnected = signal(true);

/** Until when the service wants no more calls (429): those that wait are sent then. */
export const pausedUntil = signal<Date | undefined>(undefined);

/** The requests of this page that changed something: their events need no second look. */
const own = new Set<string | undefined>();
export const isOwnRequest = (id: string | null) => own.has(id ?? undefined);

const plain = createClient({
  url: location.origin,
  token,
  timeoutMilliseconds: LONGEST_WAIT_MILLISECONDS,
  onRequest: ({ kind, requestId }) => {
    if (kind === 'mutation') own.add(requestId);
  },
  onResponse: ({ status }) => {
    isConnected.value = status !== undefined;
  },
  onRetry: ({ status, waitMilliseconds }) => {
    if (status === undefined) isConnected.value = false;
    if (status === 429) showPause(waitMilliseconds);
  },
  warn: false,
});
addEventListener('offline', () => {
  isConnected.value = false;
});

/** Some pages send nothing by themselves: they would not notice that the service is back. */
const reach = () => plain.account.whoAmI.query().catch(() => undefined);
addEventListener('online', reach);
effect(() => {
  if (isConnected.value) return;
  const timer = setInterval(reach, RETRY_MILLISECONDS);
  return () => clearInterval(timer);
});

function showPause(milliseconds: number): void {
  const until = new Date(Date.now() + milliseconds);
  pausedUntil.value = until;
  setTimeout(() => {
    if (pausedUntil.peek() === until) pausedUntil.value = undefined;
  }, milliseconds);
}

/**
 * The typed client. Each call is recorded. One that is refused because the session ended, or because the password was not given
 * lately, is repeated as soon as the person has signed in or given it.
 */
export const client = wrapped(plain, 'client') as Client;

export async function signIn(credentials: Parameters<Client['auth']['authenticate']['mutate']>[0]): Promise<void> {
  const user = await client.auth.authenticate.mutate(credentials);
  keepSession({ token: user.token, name: user.email, isSignedIn: true });
}

/** Ends the session at the service, too; a pasted token or key is only forgotten. */
export const signOut = () =>
  endSession(async () => {
    if (session.peek()?.isSignedIn) await plain.account.signOut.mutate();
  });

function wrapped(member: unknown, path: string): unknown {
  return new Proxy(member as (...parts: unknown[]) => unknown, {
    get: (target, name) => {
      const inner = Reflect.get(target, name);
      return typeof name === 'symbol' || inner === undefined ? inner : wrapped(inner, `${path}.${name}`);
    },
    apply: (call, _, parts: unknown[]) => {
      if (path.endsWith('.follow') || path.endsWith('.each')) return call(...parts);
      const code = `${path}(${parts.map(inline).join(', ')})`;
      if (path.endsWith('.as')) return wrapped(call(...parts), code);
      return allowed(path, () => recorded(`await ${code};`, () => call(...parts) as Promise<unknown>));
    },
  });
}

async function allowed(path: string, call: () => Promise<unknown>): Promise<unknown> {
  const used = token();
  try {
    return await call();
  } catch (error) {
    const { status, reason } = error as DeckhandError;
    const isAboutCredentials = /\.(authenticate|finishSso|prove|signOut)\.mutate$/.test(path);
    if (isAboutCredentials || !used || !(status === 401 || reason === 'proof_required')) throw error;
    if (status === 401) await untilSignedIn(used);
    else if (!(await askForProof())) throw error;
    return call();
  }
}

let latest = 0;

async function recorded(code: string, call: () => Promise<unknown>): Promise<unknown> {
  const id = ++latest;
  calls.value = [{ id, code, outcome: 'waiting …', hasFailed: false }, ...calls.peek()].slice(0, MOST_SHOWN);
  const started = performance.now();
  const end = (text: string, hasFailed: boolean) => {
    const outcome = `${text}, ${Math.round(performance.now() - started)} ms`;
    calls.value = calls.peek().map((one) => (one.id === id ? { ...one, outcome, hasFailed } : one));
  };
  try {
    const result = await call();
    end('done', false);
    return result;
  } catch (error) {
    const { status, reason } = error as DeckhandError;
    end(status ? `${status} ${reason ?? ''}` : 'no response', true);
    throw error;
  }
}

/** Passwords, codes, keys and addresses of webhooks are not shown. */
const inline = (input: unknown) =>
  JSON.stringify(input, (name, value) =>
    /password|code|secret|token|url|state|verifier|callback/.test(name) && value ? '…' : value,
  ) ?? 'undefined';

/** Runs it again once the service may work again; does nothing for errors that stay. Returns how to give up. */
export function retryLater(error: unknown, run: () => unknown): () => void {
  const wait = Math.max(RETRY_MILLISECONDS, 1000 * ((error as DeckhandError).retryAfterSeconds ?? 0));
  const timer = isPassing(error) ? setTimeout(run, wait) : undefined;
  return () => clearTimeout(timer);
}

/** Whether the service could not be reached, or is overloaded: it may work in a moment. */
export function isPassing(error: unknown): boolean {
  const { status } = error as DeckhandError;
  return error instanceof DeckhandError && (status === undefined || status === 429 || status >= 500);
}

/** What to tell people about a failed call. */
export function explain(error: unknown): string {
  if (!(error instanceof DeckhandError)) return (error as Error).message;
  if (!error.data) return 'The service could not be reached.';
  if (error.reason === 'role_missing') return 'Your role in this project does not allow that.';
  const [first] = Object.values(error.fields).flat();
  return forPeople(first ?? error.message);
}

/** `new_password is …` names a field as programs know it. */
const forPeople = (text: string) =>
  text.replace(/^[a-z_]+/, (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' '));
