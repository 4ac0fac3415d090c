import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { DeckhandError } from '../../../client/client.ts';
import { account } from './account.ts';
import { ForgottenPassword } from './forgottenPassword.tsx';
import { set, TextButton } from './parts/button.tsx';
import { Dialog } from './parts/dialog.tsx';
import { Field, Form } from './parts/form.tsx';
import { useLoaded } from './parts/loaded.tsx';
import { proofAsked } from './proof.ts';
import { client, signIn } from './service.ts';
import { keepSession, session } from './session.ts';
import { SsoButton, useIssuers } from './sso.tsx';

/** E-mail address and password; the code of the second factor is asked for when the service needs it. */
export function SignInForm({ email = '', isAgain }: { email?: string | undefined; isAgain?: boolean }) {
  const needsCode = useSignal(false);
  const issuers = useIssuers();
  const isForgotten = useSignal(false);
  const submit = async ({ email = '', password = '', code, is_recovery }: Record<string, string>) => {
    try {
      await signIn({ email, password, ...(code && { code: code.trim(), is_recovery: is_recovery === 'on' }) });
    } catch (error) {
      if ((error as DeckhandError).reason?.startsWith('code_')) needsCode.value = true;
      throw error;
    }
  };
  if (isForgotten.value) return <ForgottenPassword email={email} onCancel={set(isForgotten, false)} />;
  return (
    <>
      <Form action="Sign in" onSubmit={submit}>
        <Field label="E-mail address" name="email" type="email" autocomplete="username" required defaultValue={email} />
        <Field label="Password" name="password" type="password" autocomplete="current-password" required />
        {needsCode.value && <CodeFields />}
      </Form>
      <div class="choices">
        {issuers.map(({ name, title }) => (
          <SsoButton key={name} issuer={name} purpose="sign_in" text={`Continue with ${title}`} isNewTab={isAgain} />
        ))}
      </div>
      <p>
        <TextButton text="Forgot your password?" onClick={set(isForgotten, true)} />
      </p>
    </>
  );
}

export const CodeFields = () => (
  <>
    <Field label="Code of the second factor" name="code" autocomplete="one-time-code" autofocus />
    <Field label="It is a recovery code" name="is_recovery" type="checkbox" />
  </>
);

/** The session has ended: what is on the screen, and what was typed, stays. */
export function SignInAgain() {
  return (
    <Dialog title="Sign in again">
      <p>Your session has ended. Sign in, and go on where you were: nothing that you typed is lost.</p>
      <SignInForm email={session.value?.isSignedIn ? session.value.name : undefined} isAgain />
      <p>
        <TextButton text="Sign out instead" onClick={() => keepSession(undefined)} />
      </p>
    </Dialog>
  );
}

/** Some steps need the password again. */
export function ProofDialog() {
  const answer = proofAsked.value;
  return answer && <Proof answer={answer} />;
}

function Proof({ answer }: { answer: (isGiven: boolean) => void }) {
  const identities = useLoaded(async () => (await client.account.listIdentities.query({ limit: 50 })).identities, []);
  const linked = (identities.data.value ?? []).filter(({ issuer_name }) => issuer_name !== null);
  const hasPassword = account.value?.has_password !== false;
  const submit = async ({ password = '', code, is_recovery }: Record<string, string>) => {
    await client.account.prove.mutate({
      password,
      ...(code && { code: code.trim(), is_recovery: is_recovery === 'on' }),
    });
    answer(true);
  };
  return (
    <Dialog title="Is it you?" onClose={() => answer(false)}>
      <p>{hasPassword ? 'This step needs your password again.' : 'This step needs a fresh sign-in.'}</p>
      {hasPassword && (
        <Form action="Go on" onSubmit={submit} onCancel={() => answer(false)}>
          <Field label="Password" name="password" type="password" autocomplete="current-password" required autofocus />
          {account.value?.has_second_factor && <CodeFields />}
        </Form>
      )}
      <div class="choices">
        {linked.map(({ id, issuer_name, issuer_title }) => (
          <SsoButton
            {...{ purpose: 'prove', isNewTab: true, issuer: issuer_name ?? '', onDone: () => answer(true) }}
            key={id}
            text={`Sign in at ${issuer_title} again`}
          />
        ))}
      </div>
    </Dialog>
  );
}

type DemoUser = { name: string; email: string; password: string };

/** The accounts of the demo data; none on other services. */
export function useDemoUsers() {
  const users = useSignal<DemoUser[] | undefined>(undefined);
  useEffect(() => {
    fetch('/pages/demo-users.json')
      .then((response) => (response.ok ? response.json() : []))
      .catch(() => [])
      .then((read) => {
        users.value = read;
      });
  }, []);
  return users;
}
