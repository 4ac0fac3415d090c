import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { account, readAccount } from '../account.ts';
import { address, go, withQuery } from '../address.ts';
import { set } from '../parts/button.tsx';
import { Choice, Field, Form } from '../parts/form.tsx';
import { useLoaded, usePages, Waiting } from '../parts/loaded.tsx';
import { say } from '../parts/message.tsx';
import { Secret } from '../parts/secret.tsx';
import { type Column, SearchField, Table } from '../parts/table.tsx';
import { Time, timeText } from '../parts/time.tsx';
import { client } from '../service.ts';
import { AddForm, asPage, DeskPage, Facts, Steps } from './operators.tsx';
import { ProjectField } from './projectField.tsx';

type User = Awaited<ReturnType<typeof client.users.list.query>>['users'][number];
type Changes = Partial<Parameters<typeof client.users.update.mutate>[0]>;
type Values = Record<string, string>;

/** A password that was just set, to hand it over. */
const handed = signal<{ id: number; password: string } | undefined>(undefined);
const addressOf = (id: number) => `/admin/users/${id}`;

export const UsersPage = () => {
  const { id } = address.value;
  return id === undefined ? <Users /> : <OneUser key={id} id={id} />;
};

const COLUMNS: Column<User>[] = [
  ['Id', ({ id }) => id],
  ['Name', ({ id, name }) => <a href={addressOf(id)}>{name}</a>],
  ['E-mail', ({ email, kind }) => (kind === 'service' ? 'a service' : email)],
  ['Rights', (user) => RIGHTS.flatMap(([name, , short]) => (user[name] ? short : [])).join(', ')],
  ['Second factor', ({ has_second_factor }) => (has_second_factor ? 'yes' : 'no')],
  ['State', ({ is_active }) => (is_active ? 'active' : <span class="badge failed">deactivated</span>)],
  ['Created', ({ created_at }) => <Time at={created_at} />],
];

function Users() {
  const search = address.value.query.get('search') ?? '';
  const kind = useSignal('person');
  const isPerson = kind.value === 'person';
  const readPage = (cursor?: string) => asPage(client.users.list.query({ limit: 50, cursor, search: search || null }));
  const create = async ({ name = '', email = '', ...values }: Values) => {
    const password = makePassword();
    const who = isPerson ? { name, email, password } : { name, kind: 'service' as const };
    const { user } = await client.users.create.mutate({ ...who, ...furtherOf(values) });
    if (isPerson) handed.value = { id: user.id, password };
    go(addressOf(user.id));
  };
  return (
    <DeskPage title="Users">
      <AddForm label="New user" onSubmit={create}>
        <Choice label="Kind" choices={KINDS} onChange={(event) => set(kind, event.currentTarget.value)()} />
        <Field label="Name" name="name" required maxLength={255} dir="auto" />
        {isPerson && <Field label="E-mail address" name="email" type="email" required maxLength={320} />}
        <FurtherFields />
      </AddForm>
      <SearchField
        label="Search by name, e-mail address or id"
        value={search}
        onSearch={(text) => go(withQuery({ search: text }), { replace: true })}
      />
      <Table
        noun="user"
        pages={usePages<User>(readPage, [search])}
        keyOf={({ id }) => id}
        none="Nobody is found."
        columns={COLUMNS}
      />
    </DeskPage>
  );
}

const KINDS: [string, string][] = [
  ['person', 'A person, who signs in'],
  ['service', 'A service, which calls with API keys'],
];
const RIGHTS = [
  ['superadmin', 'Superadmin: every project, templates, users', 'superadmin'],
  ['superadmin_billing', 'Manages the billing of every platform', 'billing'],
  ['enable_ai', 'AI features', 'AI'],
] as const;

const FurtherFields = ({ user }: { user?: User }) => (
  <>
    <Field label="Language" name="language" maxLength={20} placeholder="en" defaultValue={user?.language ?? ''} />
    <ProjectField label="Default project" value={user?.default_project_id} none="None" isOfAll />
    <Field
      label="Calls per minute"
      name="rate_limit_per_minute"
      hint="Empty for the limit of the service."
      type="number"
      min={1}
      defaultValue={user?.rate_limit_per_minute ?? ''}
    />
    {RIGHTS.map(([name, label]) => (
      <Field key={name} {...{ name, label }} type="checkbox" defaultChecked={user?.[name]} />
    ))}
  </>
);

/** An empty field clears. */
const furtherOf = (values: Values) => ({
  language: values.language?.trim() || null,
  // Its choices may still be read.
  ...(values.project_id !== undefined && { default_project_id: Number(values.project_id) || null }),
  rate_limit_per_minute: Number(values.rate_limit_per_minute) || null,
  ...Object.fromEntries(RIGHTS.map(([name]) => [name, values[name] === 'on'])),
});

/** 20 of 32 letters and digits: 100 bits. */
const makePassword = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(20)), (byte) => 'abcdefghijkmnpqrstuvwxyz23456789'[byte % 32])
    .join('')
    .replace(/.{5}(?!$)/g, '$&-');

function OneUser({ id }: { id: number }) {
  const loaded = useLoaded(async () => {
    const { users } = await client.users.list.query({ id });
    return { user: users[0] };
  }, [id]);
  const user = loaded.data.value?.user;
  useEffect(() => set(handed, undefined), []);
  return (
    <DeskPage title={user?.name ?? 'User'} up={{ href: '/admin/users', text: 'All users' }}>
      <Waiting loaded={loaded}>
        {user ? <Details user={user} reload={loaded.reload} /> : <p>There is no such user.</p>}
      </Waiting>
    </DeskPage>
  );
}

type Touched = Awaited<ReturnType<typeof client.users.deactivate.mutate>>;

function touchedBy(name: string, { sessions_ended, keys_refused, paused_webhooks, sole_owner_of }: Touched): string {
  const hosts = paused_webhooks.map(({ host }) => host).join(', ');
  const projects = sole_owner_of.map((project) => project.name).join(', ');
  return [
    `${name} is deactivated. Sessions ended: ${sessions_ended}, API keys refused: ${keys_refused}.`,
    hosts && `Webhooks to ${hosts} are switched off.`,
    projects && `These projects have no other active owner: ${projects}.`,
  ]
    .filter(Boolean)
    .join(' ');
}

function Details({ user, reload }: { user: User; reload: () => Promise<void> }) {
  const { id, name, email, is_active, has_second_factor } = user;
  const isOwn = id === account.value?.id;
  const isPerson = user.kind === 'person';
  const isErased = user.erased_at !== null;
  const toHandOver = handed.value?.id === id && [location.origin, email, handed.value.password].join('\n');
  const update = async (changes: Changes) => {
    await client.users.update.mutate({ ...changes, id });
    await Promise.all([reload(), isOwn && readAccount()]);
  };
  const save = async ({ name = '', email = '', ...values }: Values) => {
    const wanted = { name, ...(isPerson && { email }), ...furtherOf(values) };
    // Only what differs: some fields need the password of whoever changes them.
    const changed = Object.entries(wanted).filter(([field, value]) => value !== user[field as keyof User]);
    await update(Object.fromEntries(changed));
    say(`${name} is saved.`);
  };
  const renewPassword = async () => {
    const password = makePassword();
    await update({ password });
    handed.value = { id, password };
  };
  const eraseUser = async () => {
    const { review, is_review_complete } = await client.users.erase.mutate({ id });
    await reload();
    const texts = review.map(({ table, ids }) => `${table} ${ids.join(', ')}`).join('; ');
    const rest = is_review_complete ? '' : ' The search took too long: other texts may name them, too.';
    say(`User ${id} is erased.${texts && ` These texts name them, look at them: ${texts}.`}${rest}`);
  };
  const activate = async () => {
    const { keys_accepted, resumed_webhooks } = await client.users.activate.mutate({ id });
    await reload();
    const hosts = resumed_webhooks.map(({ host }) => host).join(', ');
    say(
      `${name} may sign in again. API keys that work again: ${keys_accepted}.${hosts && ` Webhooks to ${hosts} go on.`}`,
    );
  };
  const deactivate = async () => {
    const touched = await client.users.deactivate.mutate({ id });
    await reload();
    say(touchedBy(name, touched), { label: 'Undo', run: activate });
  };
  const steps = [
    {
      label: 'Sign out everywhere',
      run: () => client.users.signOut.mutate({ id }),
      isOffered: isPerson && !isErased,
      question: `${name} has to sign in again on every device${isOwn ? ', and so do you on this one' : ''}.`,
      done: `${name} is signed out everywhere.`,
    },
    {
      label: 'New password',
      run: renewPassword,
      isOffered: isPerson && !isOwn && !isErased,
      question: `${name} gets a password made at random, which you hand over, and is signed out everywhere.`,
    },
    {
      label: 'Drop the second factor',
      run: () => client.users.dropSecondFactor.mutate({ id }).then(reload),
      isOffered: has_second_factor && !isOwn,
      question: `${name} signs in with the password alone until they set up another one. Their recovery codes end. Make sure that it is really them who ask.`,
      isDestructive: true,
      done: `The second factor of ${name} is dropped.`,
    },
    {
      label: 'Deactivate',
      run: deactivate,
      isOffered: is_active && !isOwn,
      question: `${name} is signed out everywhere and can't sign in. Their API keys stop working, and webhooks that they answer for are switched off. What they wrote stays. You can activate them again.`,
      isDestructive: true,
    },
    { label: 'Activate', run: activate, isOffered: !is_active && !isErased },
    {
      label: 'Erase',
      run: eraseUser,
      isOffered: !isOwn && !isErased,
      question: `The name, address, sessions, keys and memberships of ${name} are deleted for good. Cards and comments stay, without the name. Nobody can undo this.`,
      isDestructive: true,
    },
  ];
  return (
    <>
      {toHandOver && (
        <Secret title={`Hand over to ${name}`} text={toHandOver} onDone={set(handed, undefined)}>
          <p>Where to sign in, and with which password. They change it in their account.</p>
        </Secret>
      )}
      <Facts
        facts={[
          ['State', is_active ? 'Active' : <span class="bad">{isErased ? ERASED : DEACTIVATED}</span>],
          ['Id', id],
          ['Created', timeText(user.created_at)],
          ['Second factor', has_second_factor ? 'Enabled' : isPerson && 'None'],
          ['Calls with', !isPerson && <code>{`API keys: deckhand keys create --user-id ${id} …`}</code>],
          ['You', isOwn && <a href="/account">Your password and second factor</a>],
        ]}
      />
      <Steps steps={steps} />
      {!isErased && (
        <Form action="Save" onSubmit={save} class="box">
          <Field label="Name" name="name" required maxLength={255} dir="auto" defaultValue={name} />
          {isPerson && <Field label="E-mail address" name="email" type="email" required defaultValue={email} />}
          <FurtherFields user={user} />
        </Form>
      )}
    </>
  );
}

const DEACTIVATED = 'Deactivated: every call is refused';
const ERASED = 'Erased for good: nothing can be changed any more';
