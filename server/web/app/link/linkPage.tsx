import { useSignal } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
import { account, readAccount } from '../account.ts';
import { address, go } from '../address.ts';
import { ForgottenPassword } from '../forgottenPassword.tsx';
import { Hint } from '../parts/button.tsx';
import { accessLeft } from '../parts/counted.ts';
import { Form, NewPassword } from '../parts/form.tsx';
import { say } from '../parts/message.tsx';
import { client } from '../service.ts';
import { isSignedIn, keepSession, session } from '../session.ts';
import { SignInForm } from '../signIn.tsx';
import { InvitationPage } from './invitationPage.tsx';
import { linkSecret } from './linkSecret.ts';

type Values = Record<string, string>;

const PAGES: Record<string, { title: string; show: ComponentType }> = {
  'reset-password': { title: 'Set a new password', show: ResetPassword },
  'confirm-address': { title: 'Confirm your e-mail address', show: ConfirmAddress },
  invitation: { title: 'Your invitation', show: InvitationPage },
};

/** What the link of a mail opens: it says what will happen, and does it when the button is pressed. */
export function LinkPage() {
  const page = PAGES[address.value.page ?? ''];
  const title = page?.title ?? '';
  useEffect(() => {
    document.title = `${title} · Deckhand`;
  }, [title]);
  return (
    <>
      <header class="bar">
        <a class="brand" href="/">
          Deckhand
        </a>
      </header>
      <main id="content" class="link-page" tabIndex={-1}>
        <h1>{title}</h1>
        {linkSecret.value === '' ? <Incomplete /> : page && <page.show key={linkSecret.value} />}
      </main>
    </>
  );
}

const Incomplete = () => (
  <>
    <p>This page needs the whole link of the mail. Open the mail again and click the link, or copy all of it.</p>
    {address.value.page === 'reset-password' && <AnotherMail />}
  </>
);

const AnotherMail = () => (
  <>
    <h2>Ask for another mail</h2>
    <ForgottenPassword />
  </>
);

function ResetPassword() {
  const done = useSignal<AccessLeft | undefined>(undefined);
  const reset = async ({ new_password = '' }: Values) => {
    done.value = await client.account.resetPassword.mutate({ secret: linkSecret.peek(), new_password });
  };
  if (done.value !== undefined) return <PasswordIsSet {...done.value} />;
  return (
    <>
      <p>
        You are then signed out everywhere. Your second factor and your API keys, if you have any, stay as they are.
      </p>
      <Form action="Set the new password" onSubmit={reset}>
        <NewPassword label="New password" name="new_password" />
      </Form>
      <details>
        <summary>The link does not work?</summary>
        <AnotherMail />
      </details>
    </>
  );
}

type AccessLeft = { keys_left: number; identities_left: number };
const PasswordIsSet = (left: AccessLeft) => (
  <Done action="Sign in" href="/">
    Your password is changed, and you are signed out everywhere. {accessLeft(left)}
    {(left.keys_left > 0 || left.identities_left > 0) && " Sign in, and end what you don't know."}
  </Done>
);

const Done = ({ children, action, href }: { children: ComponentChildren; action: string; href: string }) => (
  <>
    <p role="status">{children}</p>
    <p>
      <a class="button" href={href}>
        {action}
      </a>
    </p>
  </>
);

/** Only for the account that asked for the mail: otherwise a stranger's account could get this address. */
function ConfirmAddress() {
  const confirm = async () => {
    const { email } = await client.account.confirmAddress.mutate({ secret: linkSecret.peek() });
    go('/account', { replace: true });
    const kept = session.peek();
    // With another name, all tabs load again.
    if (kept) keepSession({ ...kept, name: email });
    await readAccount();
    say(`${email} is the address of your account.`);
  };
  if (!isSignedIn.value)
    return (
      <>
        <p>Sign in to the account that asked for this mail. Then confirm the address here.</p>
        <SignInForm isAgain />
      </>
    );
  return (
    <>
      <p>
        The address that this mail was sent to becomes the e-mail address of the account of{' '}
        <strong>{account.value?.name}</strong> ({account.value?.email}). If it was another one, that one is told.
      </p>
      <Form action="Confirm the address" onSubmit={confirm} />
      <Hint>If you did not ask for this mail, close the page. Nothing happens.</Hint>
    </>
  );
}
