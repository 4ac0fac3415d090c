import { useSignal } from '@preact/signals';
import { Button } from './parts/button.tsx';
import { Field, Form } from './parts/form.tsx';
import { client } from './service.ts';

/** Asks for a mail with a link. The page does not find out whether the address has an account. */
export function ForgottenPassword({ email, onCancel }: { email?: string | undefined; onCancel?: () => void }) {
  const sentTo = useSignal('');
  const request = async ({ email = '' }: Record<string, string>) => {
    await client.account.requestPasswordReset.mutate({ email });
    sentTo.value = email;
  };
  if (sentTo.value)
    return (
      <>
        <p role="status">
          If an account has the address {sentTo}, a mail with a link is on its way to it. The link works once, for 30
          minutes. Look into the spam folder, too.
        </p>
        {onCancel && (
          <Button as="quiet" onClick={onCancel}>
            Back to the sign-in
          </Button>
        )}
      </>
    );
  return (
    <>
      <p>Forgot your password? You get a mail with a link, to set a new one.</p>
      <Form action="Send me a link" onSubmit={request} onCancel={onCancel}>
        <Field label="E-mail address" name="email" type="email" autocomplete="username" required defaultValue={email} />
      </Form>
    </>
  );
}
