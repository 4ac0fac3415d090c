import { account, readAccount } from '../account.ts';
import { go, projectAddress } from '../address.ts';
import { Action } from '../parts/action.tsx';
import { Hint } from '../parts/button.tsx';
import { accessLeft } from '../parts/counted.ts';
import { Field, Form, NewPassword } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { usePages } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { Table } from '../parts/table.tsx';
import { client } from '../service.ts';
import { keepSession } from '../session.ts';
import { Identities } from './identities.tsx';
import { asPage, DeskPage, Steps } from './operators.tsx';
import { OwnData } from './ownData.tsx';
import { ProjectField } from './projectField.tsx';
import { SecondFactor } from './secondFactor.tsx';

type Invitation = Awaited<ReturnType<typeof client.account.listInvitations.query>>['invitations'][number];
type Values = Record<string, string>;

export const AccountPage = () => (
  <DeskPage title={account.value?.name ?? ''}>
    <Address />
    {account.value?.email_confirmed_at && <Invitations />}
    <h2>Default project</h2>
    <Form action="Set as default" class="row" onSubmit={setDefaultProject}>
      <ProjectField label="Deckhand opens with" value={account.value?.default_project_id} isOfAll />
    </Form>
    <Identities />
    <h2>Password</h2>
    {account.value?.has_password === false ? (
      <Hint>Your account has none: you sign in at an identity provider.</Hint>
    ) : (
      <PasswordForm />
    )}
    {account.value?.has_password !== false && <SecondFactor />}
    <h2>Sessions</h2>
    <FormButton action="Sign out everywhere" onSubmit={signOutEverywhere} isDestructive>
      <p>
        All your sessions end, this one included. No device is remembered any more. Accounts at identity providers that
        were linked lately are unlinked.
      </p>
      <RevokeKeys />
    </FormButton>
    <OwnData />
  </DeskPage>
);

const PasswordForm = () => (
  <Form action="Change the password" onSubmit={changePassword}>
    <Field label="Current password" name="password" type="password" autocomplete="current-password" required />
    <NewPassword label="New password" name="new_password" />
    <RevokeKeys />
  </Form>
);

/** The address, whether it is confirmed, and its change. */
const Address = () => (
  <>
    <h2>E-mail address</h2>
    <p>
      {account.value?.email} {account.value?.email_confirmed_at ? '(confirmed)' : '(not confirmed)'}
    </p>
    {!account.value?.email_confirmed_at && (
      <>
        <Hint>Until you confirm it, you can't see invitations to this address, nor reset your password.</Hint>
        <Action as="quiet" run={requestConfirmation}>
          Send me a link to confirm it
        </Action>
      </>
    )}
    <FormButton action="Change the address" title="Change your e-mail address" onSubmit={changeAddress}>
      <Field label="New e-mail address" name="email" type="email" autocomplete="email" required />
      <Hint>A mail with a link goes to the new address. It becomes yours when you confirm it there.</Hint>
    </FormButton>
  </>
);

async function requestConfirmation(): Promise<void> {
  await client.account.requestConfirmation.mutate();
  say(`A mail with a link is on its way to ${account.peek()?.email}.`);
}

async function changeAddress({ email = '' }: Values): Promise<void> {
  await client.account.changeAddress.mutate({ email });
  say(`A mail with a link is on its way to ${email}. Until you confirm it, your address stays as it is.`);
}

const RevokeKeys = () => <Field label="Revoke all my API keys, too" name="revoke_keys" type="checkbox" />;

async function setDefaultProject({ project_id }: Values): Promise<void> {
  await client.account.setDefaultProject.mutate({ project_id: Number(project_id) });
  await readAccount();
  say('Deckhand now opens with this project.');
}

async function changePassword({ password = '', new_password = '', revoke_keys }: Values, form: HTMLFormElement) {
  const changed = { password, new_password, revoke_keys: revoke_keys === 'on' };
  const { token, ...left } = await client.account.changePassword.mutate(changed);
  keepSession({ token, name: account.peek()?.email ?? '', isSignedIn: true });
  form.reset();
  say(`Your password is changed, and all other sessions have ended. ${accessLeft(left)}`);
}

async function signOutEverywhere({ revoke_keys }: Values): Promise<void> {
  await client.account.signOutEverywhere.mutate({ revoke_keys: revoke_keys === 'on' });
  keepSession(undefined);
}

function Invitations() {
  const pages = usePages((cursor) => asPage(client.account.listInvitations.query({ limit: 50, cursor })), []);
  const stepsOf = ({ id, project_id, project_name }: Invitation) => [
    {
      label: 'Accept',
      run: async () => {
        await client.account.acceptInvitation.mutate({ id });
        await readAccount();
        go(projectAddress(project_id));
      },
      done: `You are now a member of ${project_name}.`,
    },
    {
      label: 'Decline',
      run: async () => {
        await client.account.declineInvitation.mutate({ id });
        await Promise.all([readAccount(), pages.reload()]);
      },
      question: `The invitation to ${project_name} goes. Only an owner can invite you again.`,
      isDestructive: true,
      done: `You have declined the invitation to ${project_name}.`,
    },
  ];
  return (
    <>
      <h2>Invitations</h2>
      <Table
        noun="invitation"
        pages={pages}
        columns={[
          ['Project', ({ project_name, platform_name }) => `${project_name} (${platform_name})`],
          ['Role', ({ role }) => role],
          ['From', ({ invited_by_name }) => invited_by_name ?? 'the operator'],
          ['', (row) => <Steps of={row.project_name} steps={stepsOf(row)} />],
        ]}
        none="No project invites you at the moment."
      />
    </>
  );
}
