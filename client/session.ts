import { errorOfOwn, isRefusal } from './errors.ts';
import type { Procedures } from './procedures.ts';

export type SessionOptions = {
  /** The Bearer token that `auth.authenticate` returned; a function is asked before each request. */
  token?: string | (() => string | undefined) | undefined;
  /** Lets the client sign in by itself: before its first call, and again when its token has expired. */
  signIn?: SignIn | undefined;
  /** Told of each sign-in by `signIn`, and waited for. Its token, given as `token` next time, spares the user the second factor. */
  onSignIn?: ((user: SignedIn) => void | Promise<void>) | undefined;
};

export type SignIn = {
  email: string;
  password: string;
  /** The second factor. A text serves for one sign-in; a function is asked whenever the service wants a code. */
  code?: string | (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Whether `code` is a recovery code. */
  is_recovery?: boolean | undefined;
};

/** The user who signed in, with the token. */
export type SignedIn = Awaited<ReturnType<Authenticate>>;

type Authenticate = Procedures['auth']['authenticate']['mutate'];

export type Session = {
  token: () => string | undefined;
  /** Signs in again; calls that need it at the same time share it. Absent where there is nothing to sign in with. */
  renew: (() => Promise<void>) | undefined;
};

export function openSession({ token, signIn, onSignIn }: SessionOptions, authenticate: Authenticate): Session {
  let renewed: string | undefined;
  const current = () => renewed ?? (typeof token === 'function' ? given(token) : token);
  if (!signIn) return { token: current, renew: undefined };

  const { email, password, code, is_recovery = false } = signIn;
  let underWay: Promise<void> | undefined;

  async function renew() {
    const isUnused = typeof code === 'string' && renewed === undefined;
    try {
      await signInWith(isUnused ? code : undefined);
    } catch (error) {
      const asked = typeof code === 'function' && isCodeWanted(error) && (await askedFor('signIn.code', code));
      if (!asked) throw error;
      await signInWith(asked);
    }
  }

  /** An earlier token makes this a remembered device: then the service asks for no code. */
  async function signInWith(code: string | undefined) {
    const earlier = current();
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

function given(token: () => string | undefined): string | undefined {
  try {
    return token();
  } catch (error) {
    throw errorOfOwn('token', error);
  }
}

async function askedFor<Answer>(name: string, ask: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    throw errorOfOwn(name, error);
  }
}

/** The status is that of a wrong password too; only the text tells them apart. */
function isCodeWanted(error: unknown): boolean {
  return isRefusal(error) && error.status === 401 && /\bcode\b/.test(error.message);
}
