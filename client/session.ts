import { type Call, isSignIn } from './call.ts';
import { isRefusal } from './errorChecks.ts';
import { callbackError, DeckhandError } from './errors.ts';
import { tellOfRetry } from './hooks.ts';
import type { Procedures } from './procedures.ts';

/** How the client authenticates. */
export type SessionOptions = {
  /** The Bearer token of a sign-in, or an API key; a function is called before each request, and awaited. */
  token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /**
   * Returns a token of another issuer, such as that of a CI job. The client exchanges it for a credential of a service account
   * before the first call, and exchanges another one before that ends, or after a 401.
   */
  identityToken?: (() => string | Promise<string>) | undefined;
  /** Signs in before the first call, and again when the token has expired. Gives the password for calls that need fresh proof, too. */
  signIn?: SignIn | undefined;
  /** Called after each sign-in by `signIn`, and awaited. Store the token and pass it as `token` to skip the second factor later. */
  onSignIn?: ((user: SignedIn) => void | Promise<void>) | undefined;
};

/** The account that the client signs in with. */
export type SignIn = {
  /** The e-mail address of the account. */
  email: string;
  /** The password of the account. */
  password: string;
  /** The second factor. A string is used for one sign-in; a function is called whenever the service asks for a code. */
  code?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Whether `code` is a recovery code. */
  is_recovery?: boolean | undefined;
};

/** The user who signed in, with the token. */
export type SignedIn = Awaited<ReturnType<Authenticate>>;

type Mutate = Procedures['auth']['authenticate']['mutate'];
type Authenticate = (...parts: Parameters<Mutate>) => ReturnType<Mutate>;
type Exchange = (token: string) => Promise<{ token: string; expires_in_seconds: number }>;
type Prove = (input: { password: string; code?: string; is_recovery?: boolean }) => Promise<unknown>;

export type Session = {
  token: () => Promise<string | undefined>;
  /** Signs in again; concurrent calls share one sign-in. Undefined without `signIn`. */
  renew: (() => Promise<void>) | undefined;
  /** Gives the proof that a call was refused for; concurrent calls share it. */
  prove: () => Promise<void>;
};

export function openSession(
  { token, signIn, onSignIn, identityToken }: SessionOptions,
  authenticate: Authenticate,
  giveProof: Prove,
  exchange: Exchange,
): Session {
  if (identityToken) return exchangedSession(identityToken, exchange);
  let renewed: string | undefined;
  const current = async () =>
    checkToken(renewed ?? (await (typeof token === 'function' ? runCallback('token', token) : token)));
  if (!signIn) return { token: current, renew: undefined, prove: async () => undefined };

  const { email, password, code, is_recovery = false } = signIn;

  async function renew() {
    const isCodeUnused = typeof code === 'string' && renewed === undefined;
    try {
      await signInWith(isCodeUnused ? code : undefined);
    } catch (error) {
      const newCode = typeof code === 'function' && isCodeRequired(error) && (await runCallback('signIn.code', code));
      if (!newCode) throw error;
      await signInWith(newCode);
    }
  }

  /** The earlier token identifies a remembered device, which needs no code. */
  async function signInWith(code: string | undefined) {
    const earlier = await current();
    const user = await authenticate({
      email,
      password,
      ...(earlier && { token: earlier }),
      ...(code && { code, is_recovery }),
    });
    renewed = user.token;
    await runCallback('onSignIn', () => onSignIn?.(user));
  }

  async function prove() {
    try {
      await giveProof({ password });
    } catch (error) {
      const newCode = typeof code === 'function' && isProofRequired(error) && (await runCallback('signIn.code', code));
      if (!newCode) throw error;
      await giveProof({ password, code: newCode, is_recovery });
    }
  }

  return { token: current, renew: shared(renew), prove: shared(prove) };
}

/** How long before its end a credential is renewed, at most; a short one, in its last fifth. */
const RENEWED_BEFORE_SECONDS = 60;

function exchangedSession(identityToken: () => string | Promise<string>, exchange: Exchange): Session {
  let current: { token: string; renewAt: number; endsAt: number } | undefined;

  async function renew() {
    const first = await nextToken();
    const begun = performance.now();
    const { token, expires_in_seconds: seconds } = await exchange(first).catch(async (error) => {
      // It may have been used up by an attempt whose answer was lost, or have expired meanwhile.
      const next = isRefusal(error) && error.status === 401 ? await nextToken() : first;
      if (next === first) throw error;
      return exchange(next);
    });
    const renewAt = begun + 1000 * (seconds - Math.min(RENEWED_BEFORE_SECONDS, seconds / 5));
    current = { token, renewAt, endsAt: begun + 1000 * seconds };
  }

  async function nextToken(): Promise<string> {
    const token = await runCallback('identityToken', identityToken);
    if (typeof token === 'string' && token.trim() !== '') return token.trim();
    throw new DeckhandError('identityToken must return the text of a token.');
  }

  const sharedRenew = shared(renew);
  const token = async () => {
    if (current && performance.now() > current.renewAt)
      await sharedRenew().catch((error) => {
        // Until it ends, the credential still works: the next call tries again.
        if (!current || performance.now() > current.endsAt) throw error;
      });
    return current?.token;
  };
  return { token, renew: sharedRenew, prove: async () => undefined };
}

/** Calls that begin while one is running share that one. */
function shared(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work().finally(() => {
      running = undefined;
    });
    return running;
  };
}

/** Signs in before the first call, and again after a 401; gives proof if it is required. A second refusal is thrown. */
export async function withSignIn<Result>(
  { token, renew, prove }: Session,
  call: Call,
  send: () => Promise<Result>,
): Promise<Result> {
  if (!renew || isSignIn(call)) return send();

  const waitFor = (work: () => Promise<void>) => {
    call.stopwatch.wait();
    return work();
  };
  const signIn = () => waitFor(renew);
  if (!(await token())) await signIn();
  const used = await token();
  try {
    return await send();
  } catch (error) {
    const needsProof = isProofRequired(error) && call.path !== 'account.prove';
    if (!isRefusal(error) || (error.status !== 401 && !needsProof)) throw error;
    tellOfRetry(call, error, 0);
    if (needsProof) await waitFor(prove);
    else if ((await token()) === used) await signIn();
    return send();
  }
}

/** Checked here, since the error of `fetch` would show an invalid token in logs. */
function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x20-\x7e]*$/.test(token.trimEnd())) return token;
  throw new DeckhandError('token must have only printable ASCII characters.');
}

async function runCallback<Result>(name: string, callback: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await callback();
  } catch (error) {
    throw callbackError(name, error);
  }
}

const isProofRequired = (error: unknown) => isRefusal(error) && error.reason === 'proof_required';
const isCodeRequired = (error: unknown) => isRefusal(error) && error.reason === 'code_required';
