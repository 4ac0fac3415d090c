import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { DeckhandError } from '../../../client/client.ts';
import { account } from './account.ts';
import { Button } from './parts/button.tsx';
import { Dialog } from './parts/dialog.tsx';
import { Field, Form } from './parts/form.tsx';
import { proofAsked } from './proof.ts';
import { client, signIn } from './service.ts';
import { keepSession, session } from './session.ts';

/** E-mail address and password; the code of the second factor is asked for when the service needs it. */
export function SignInForm({ email = '' }: { email?: string | undefined }) {
  const needsCode = useSignal(false);
  const submit = async ({ email = '', password = '', code, is_recovery }: Record<string, string>) => {
    try {
      await signIn({ email, password, ...(code && { code: code.trim(), is_recovery: is_recovery === 'on' }) });
    } catch (error) {
      if ((error as DeckhandError).reason?.startsWith('code_')) needsCode.value = true;
      throw error;
    }
  };
  return (
    <Form action="Sign in" onSubmit={submit}>
      <Field label="E-mail address" name="email" type="email" autocomplete="username" required defaultValue={email} />
      <Field label="Password" name="password" type="password" autocomplete="current-password" required />
      {needsCode.value && <CodeFields />}
    </Form>
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
    <Dialog title="Sign in again" onClose={() => keepSession(undefined)}>
      <p>Your session has ended. Sign in, and go on where you were: nothing that you typed is lost.</p>
      <SignInForm email={session.value?.isSignedIn ? session.value.name : undefined} />
      <p>
        <Button as="link" onClick={() => keepSession(undefined)}>
          Sign out instead
        </Button>
      </p>
    </Dialog>
  );
}

/** Some steps need the password again. */
export function ProofDialog() {
  const answer = proofAsked.value;
  if (!answer) return null;
  const submit = async ({ password = '', code, is_recovery }: Record<string, string>) => {
    await client.account.prove.mutate({
      password,
      ...(code && { code: code.trim(), is_recovery: is_recovery === 'on' }),
    });
    answer(true);
  };
  return (
    <Dialog title="Is it you?" onClose={() => answer(false)}>
      <p>This step needs your password again.</p>
      <Form action="Go on" onSubmit={submit} onCancel={() => answer(false)}>
        <Field label="Password" name="password" type="password" autocomplete="current-password" required autofocus />
        {account.value?.has_second_factor && <CodeFields />}
      </Form>
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
