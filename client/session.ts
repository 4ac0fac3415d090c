import { type Call, isSignIn } from './call.ts';
import { DeckhandError, errorOfOwn, isRefusal } from './errors.ts';
import type { Procedures } from './procedures.ts';

/** Who calls: a token, or how to sign in. */
export type SessionOptions = {
  /** The Bearer token that `auth.authenticate` returned, or an API key; a function is called before each request, and awaited. */
  token?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Lets the client sign in by itself: before its first call, and again when its token has expired. */
  signIn?: SignIn | undefined;
  /** Called after each sign-in by `signIn`, and awaited. Store its token and pass it as `token` to skip the second factor later. */
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

type Authenticate = Procedures['auth']['authenticate']['mutate'];

export type Session = {
  token: () => Promise<string | undefined>;
  /** Signs in again; concurrent calls share one sign-in. Undefined without `signIn`. */
  renew: (() => Promise<void>) | undefined;
};

export function openSession({ token, signIn, onSignIn }: SessionOptions, authenticate: Authenticate): Session {
  let renewed: string | undefined;
  const current = async () =>
    sendable(renewed ?? (await (typeof token === 'function' ? askedFor('token', token) : token)));
  if (!signIn) return { token: current, renew: undefined };

  const { email, password, code, is_recovery = false } = signIn;
  let underWay: Promise<void> | undefined;

  async function renew() {
    const isUnused = typeof code === 'string' && renewed === undefined;
    try {
      await signInWith(isUnused ? code : undefined);
    } catch (error) {
      const asked = typeof code === 'function' && isCodeRequired(error) && (await askedFor('signIn.code', code));
      if (!asked) throw error;
      await signInWith(asked);
    }
  }

  /** Sends the earlier token, so that a remembered device needs no code. */
  async function signInWith(code: string | undefined) {
    const earlier = await current();
    const user = await authenticate({
      email,
      password,
      ...(earlier && { token: earlier }),
      ...(code && { code, is_recovery }),
    });
    renewed = user.token;
    await askedFor('onSignIn', () => onSignIn?.(user));
  }

  return {
    token: current,
    renew: () => {
      underWay ??= renew().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
  };
}

/** Signs in before the first call, and again after a 401; a second 401 is thrown. */
export async function signedIn<Result>(
  { token, renew }: Session,
  call: Call,
  send: () => Promise<Result>,
): Promise<Result> {
  if (!renew || isSignIn(call)) return send();

  const signIn = async () => {
    call.stopwatch.wait();
    await renew();
    call.signal.throwIfAborted();
  };
  if (!(await token())) await signIn();
  const used = await token();
  try {
    return await send();
  } catch (error) {
    if (!isRefusal(error) || error.status !== 401) throw error;
    if ((await token()) === used) await signIn();
    return send();
  }
}

/** Throws for a token that no header can have: the error of `fetch` would contain it, and end up in logs. */
function sendable(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x20-\x7e]*$/.test(token.trimEnd())) return token;
  throw new DeckhandError('token must have only printable ASCII characters.');
}

async function askedFor<Answer>(name: string, ask: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    throw errorOfOwn(name, error);
  }
}

const isCodeRequired = (error: unknown) => isRefusal(error) && error.reason === 'code_required';
