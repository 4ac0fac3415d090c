import { useSignal } from '@preact/signals';
import { account, isSuperadmin, readAccount } from '../account.ts';
import { go } from '../address.ts';
import { Initials } from '../frame.tsx';
import { Hint, set } from '../parts/button.tsx';
import { Choice, Field, Form } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { usePages } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { useReload } from '../parts/reload.ts';
import { type Column, SearchField, Table } from '../parts/table.tsx';
import { Time } from '../parts/time.tsx';
import { canManage, inProject, type Member, members, project, type Role } from '../project.ts';
import { asPage, DeskPage, Steps } from './operators.tsx';
import { sayPaused } from './sayPaused.ts';

type Values = Record<string, string>;

const ROLES: [Role, string][] = [
  ['viewer', 'Viewer: sees everything'],
  ['member', 'Member: changes boards and cards'],
  ['owner', 'Owner: also manages members, webhooks and the plan'],
];

export function MembersPage() {
  const search = useSignal('');
  const pages = usePages(
    (cursor) => asPage(inProject().members.list.query({ limit: 50, cursor, search: search.peek() || null })),
    [search.value],
  );
  useReload(/^member\./, pages.reload);
  const columns: Column<Member>[] = [
    ['Name', (member) => <Name {...member} />],
    ['E-mail', ({ email }) => email],
    ['Role', ({ role }) => role],
  ];
  if (canManage.value) columns.push(['', (member) => <MemberSteps member={member} onDone={pages.reload} />]);
  return (
    <DeskPage title="Members">
      <SearchField label="Search by name or e-mail address" onSearch={(text) => set(search, text)()} />
      <Table noun="member" pages={pages} columns={columns} keyOf={({ user_id }) => user_id} none="Nobody is found." />
      {members.value.has(account.value?.id ?? 0) && <Leave />}
      {canManage.value && <Invitations />}
    </DeskPage>
  );
}

const isSelf = ({ user_id }: Member) => user_id === account.value?.id;

const Name = (member: Member) => (
  <span class="person">
    <Initials name={member.name} /> <span dir="auto">{member.name}</span> {isSelf(member) && '(you)'}
  </span>
);

function MemberSteps({ member, onDone }: { member: Member; onDone: () => Promise<void> }) {
  const { user_id, name } = member;
  const setRole = async (values: Values) => {
    const role = values.role as Role;
    const { paused_webhooks } = await inProject().members.set.mutate({ user_id, role });
    sayPaused(`${name} now has the role ${role}.`, paused_webhooks);
    if (isSelf(member) && !isSuperadmin.peek() && project.value) project.value = { ...project.value, role };
    onDone();
  };
  const remove = async () => {
    const { paused_webhooks } = await inProject().members.remove.mutate({ user_id });
    sayPaused(`${name} is no longer a member.`, paused_webhooks);
    onDone();
  };
  const question = `${name} loses access to ${project.value?.name}. Their cards there lose their owner, and their webhooks are switched off.`;
  return (
    <div class="choices">
      <FormButton as="link" action="Change role" of={name} title={`Role of ${name}`} onSubmit={setRole}>
        <Choice label="Role" name="role" choices={ROLES} value={member.role} />
      </FormButton>
      {!isSelf(member) && (
        <Steps as="link" of={name} steps={[{ label: 'Remove', run: remove, question, isDestructive: true }]} />
      )}
    </div>
  );
}

function Leave() {
  const { id = 0, name } = project.value ?? {};
  const leave = async () => {
    await inProject().members.leave.mutate({ project_id: id });
    await readAccount();
    say(`You have left ${name}.`);
    go('/');
  };
  const question = `You lose access to ${name}. Your cards there lose their owner, and your webhooks are switched off. Only an owner can invite you again.`;
  return <Steps steps={[{ label: 'Leave the project', run: leave, question, isDestructive: true }]} />;
}

function Invitations() {
  const pages = usePages((cursor) => asPage(inProject().members.listInvitations.query({ limit: 50, cursor })), []);
  useReload(/^(invitation|member)\./, pages.reload);
  const invite = async ({ email = '', role, isAdded }: Values, form: HTMLFormElement) => {
    await inProject().members[isAdded ? 'add' : 'invite'].mutate({ email, role: role as Role });
    (form.elements.namedItem('email') as HTMLInputElement).value = '';
    say(isAdded ? `${email} is a member now.` : `${email} is invited.`);
    pages.reload();
  };
  const withdraw = (id: number, email: string) => ({
    label: 'Withdraw',
    run: () => inProject().members.withdrawInvitation.mutate({ id }).then(pages.reload),
    question: `${email} can no longer accept the invitation.`,
    isDestructive: true,
    done: `The invitation of ${email} is withdrawn.`,
  });
  return (
    <section>
      <h2>Invite somebody</h2>
      <Hint>
        They get a mail with a link, if this service sends mails, and find the invitation in their account. Who has none
        yet signs up with the link.
      </Hint>
      <Form action="Invite" class="row" onSubmit={invite}>
        <Field label="E-mail address" name="email" type="email" required />
        <Choice label="Role" name="role" choices={ROLES} value="member" />
        {isSuperadmin.value && <Field label="Add at once, without asking" name="isAdded" type="checkbox" />}
      </Form>
      <h2>Open invitations</h2>
      <Table
        noun="invitation"
        pages={pages}
        columns={[
          ['E-mail', ({ email }) => email],
          ['Role', ({ role }) => role],
          ['Invited', ({ updated_at }) => <Time at={updated_at} />],
          ['', ({ id, email }) => <Steps as="link" of={email} steps={[withdraw(id, email)]} />],
        ]}
        none="No invitation is waiting for an answer."
      />
    </section>
  );
}
