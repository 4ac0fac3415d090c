import { account, readAccount } from '../account.ts';
import { go, projectAddress } from '../address.ts';
import { Action } from '../parts/action.tsx';
import { Hint } from '../parts/button.tsx';
import { Field, Form, NewPassword } from '../parts/form.tsx';
import { Loading, useLoaded, Waiting } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { client, signOut } from '../service.ts';
import { isSignedIn, keepSession } from '../session.ts';
import { SignInForm } from '../signIn.tsx';
import { linkSecret } from './linkSecret.ts';

type Invitation = Awaited<ReturnType<typeof client.account.showInvitation.query>>['invitation'];

/** Who is invited signs up, or signs in and accepts. */
export function InvitationPage() {
  const shown = useLoaded(() => client.account.showInvitation.query({ secret: linkSecret.peek() }), []);
  return (
    <>
      <Waiting loaded={shown}>{shown.data.value && <Shown invitation={shown.data.value.invitation} />}</Waiting>
      {shown.failure.value && (
        <p>
          If you have joined the project already, <a href="/">sign in</a>.
        </p>
      )}
    </>
  );
}

function Shown({ invitation }: { invitation: Invitation }) {
  const { project_name, role, invited_by_name, email, has_account } = invitation;
  return (
    <>
      <p>
        {invited_by_name ?? 'The operator'} invites <strong>{email}</strong> to the project{' '}
        <strong>{project_name}</strong>, with the role {role}.
      </p>
      {isSignedIn.value ? (
        <Accept invitation={invitation} />
      ) : has_account ? (
        <>
          <p>You have an account. Sign in, then accept.</p>
          <SignInForm email={email} isAgain />
        </>
      ) : (
        <SignUp email={email} project={project_name} />
      )}
    </>
  );
}

function Accept({ invitation: { id, email, project_name } }: { invitation: Invitation }) {
  const own = account.value;
  if (!own) return <Loading />;
  if (own.email.toLowerCase() !== email.toLowerCase())
    return (
      <>
        <p>
          You are signed in as {own.email}, and this invitation is for {email}. Sign out, and open the link of the mail
          again.
        </p>
        <Action as="quiet" run={signOut}>
          Sign out
        </Action>
      </>
    );
  const accept = async () => {
    const { member } = await client.account.acceptInvitation.mutate({ id, secret: linkSecret.peek() });
    await readAccount();
    go(projectAddress(member.project_id), { replace: true });
    say(`You are now a member of ${project_name}.`);
  };
  return <Form action="Accept the invitation" onSubmit={accept} />;
}

function SignUp({ email, project }: { email: string; project: string }) {
  const signUp = async ({ name = '', password = '' }: Record<string, string>) => {
    const made = await client.account.signUp.mutate({ secret: linkSecret.peek(), name, password });
    go(projectAddress(made.project_id), { replace: true });
    keepSession({ token: made.token, name: email, isSignedIn: true });
    say(`Welcome. You are now a member of ${project}.`);
  };
  return (
    <>
      <p>Make your account, and you are a member of the project.</p>
      <Form action="Sign up and join" onSubmit={signUp}>
        <Field label="E-mail address" type="email" autocomplete="username" value={email} readOnly />
        <Field label="Your name" name="name" autocomplete="name" maxLength={255} required />
        <NewPassword label="Password" name="password" />
      </Form>
      <Hint>If you don't know the project, close the page. Nothing happens.</Hint>
    </>
  );
}
