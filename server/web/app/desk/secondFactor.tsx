import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { account, readAccount } from '../account.ts';
import { Hint, set } from '../parts/button.tsx';
import { Field, Form } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { say } from '../parts/message.tsx';
import { Secret } from '../parts/secret.tsx';
import { client } from '../service.ts';
import { CodeFields } from '../signIn.tsx';

type Values = Record<string, string>;
type CodesProps = { onCodes: (shown: { recovery_codes: string[] }) => Promise<void> };
type Started = Awaited<ReturnType<typeof client.account.startSecondFactor.mutate>>;

/** An app that shows codes, which a sign-in needs beside the password; recovery codes replace it. */
export function SecondFactor() {
  const codes = useSignal<string[]>([]);
  const show: CodesProps['onCodes'] = async ({ recovery_codes }) => {
    await readAccount();
    codes.value = recovery_codes;
  };
  const isEnabled = account.value?.has_second_factor;
  const file = 'deckhand-recovery-codes.txt';
  return (
    <section>
      <h2>Second factor</h2>
      {isEnabled && codes.value.length > 0 && (
        <Secret title="Recovery codes" text={codes.value.join('\n')} file={file} onDone={set(codes, [])}>
          <p>Each replaces a code of the app once, if you lose your phone. Earlier recovery codes no longer work.</p>
        </Secret>
      )}
      {isEnabled ? <Enabled onCodes={show} /> : <SetUp onCodes={show} />}
    </section>
  );
}

const PasswordField = () => (
  <Field label="Password" name="password" type="password" autocomplete="current-password" required />
);

function SetUp({ onCodes }: CodesProps) {
  const started = useSignal<Started | undefined>(undefined);
  useEffect(() => document.querySelector<HTMLElement>('[name="code"]')?.focus(), [started.value]);
  const start = async ({ password = '' }: Values) => {
    started.value = await client.account.startSecondFactor.mutate({ password });
  };
  const confirm = async ({ code = '' }: Values) =>
    onCodes(await client.account.confirmSecondFactor.mutate({ code: code.trim() }));
  if (!started.value)
    return (
      <>
        <Hint>Off. With it, signing in needs a code of an authenticator app beside the password.</Hint>
        <Form key="start" action="Set it up" onSubmit={start}>
          <PasswordField />
        </Form>
      </>
    );
  const { qr_svg, secret, otpauth_uri } = started.value;
  return (
    <>
      <p>
        Scan this with an authenticator app, or <a href={otpauth_uri}>open the app on this device</a>.
      </p>
      <img class="qr" src={`data:image/svg+xml,${encodeURIComponent(qr_svg)}`} alt="QR code for the app" />
      <p>
        Or type this secret into it: <code>{secret}</code>
      </p>
      <Form key="confirm" action="Switch it on" onSubmit={confirm} onCancel={set(started, undefined)}>
        <Field label="Code that the app shows" name="code" autocomplete="one-time-code" inputMode="numeric" required />
      </Form>
    </>
  );
}

function Enabled({ onCodes }: CodesProps) {
  const proofOf = ({ password = '', code = '', is_recovery }: Values) => ({
    ...{ password, code: code.trim() },
    is_recovery: is_recovery === 'on',
  });
  const drop = async (values: Values) => {
    await client.account.dropSecondFactor.mutate(proofOf(values));
    await readAccount();
    say('The second factor is off.');
  };
  const renew = async (values: Values) => onCodes(await client.account.renewRecoveryCodes.mutate(proofOf(values)));
  return (
    <>
      <Hint>On. You have {account.value?.recovery_codes_left} unused recovery codes.</Hint>
      <div class="choices">
        <FormButton action="Renew the recovery codes" onSubmit={renew}>
          <p>Those that you have stored no longer work.</p>
          <PasswordField />
          <CodeFields />
        </FormButton>
        <FormButton action="Drop the second factor" onSubmit={drop} isDestructive>
          <p>Your password alone is then enough to sign in.</p>
          <PasswordField />
          <CodeFields />
        </FormButton>
      </div>
    </>
  );
}
