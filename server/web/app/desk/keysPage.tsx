import { useSignal } from '@preact/signals';
import { isSuperadmin } from '../account.ts';
import { Hint, set } from '../parts/button.tsx';
import { Field } from '../parts/form.tsx';
import { FormButton } from '../parts/formButton.tsx';
import { useLoaded, usePages } from '../parts/loaded.tsx';
import { Secret } from '../parts/secret.tsx';
import { Table } from '../parts/table.tsx';
import { endOfDay, inDays, Time, timeText } from '../parts/time.tsx';
import { client } from '../service.ts';
import { AddForm, DeskPage, Steps } from './operators.tsx';
import { ProjectField } from './projectField.tsx';
import { sayPaused } from './sayPaused.ts';
import { SCOPES, scopesFor } from './scopes.ts';

type Key = Awaited<ReturnType<typeof client.keys.list.query>>['keys'][number];
type Made = Awaited<ReturnType<typeof client.keys.create.mutate>>;

export function KeysPage() {
  const made = useSignal<Made | undefined>(undefined);
  const pages = usePages(async (cursor) => {
    const { keys, next_cursor } = await client.keys.list.query({ limit: 50, cursor });
    return { rows: await withProjects(keys), next: next_cursor };
  }, []);
  const show = (shown: Made) => {
    made.value = shown;
    pages.reload();
  };
  return (
    <DeskPage title="API keys">
      <Hint>
        A program calls Deckhand with a key instead of your password. It can do what you can, narrowed to its scopes.{' '}
        <a href="/docs/guides/accounts">More about keys</a>
      </Hint>
      {made.value && (
        <Secret title={`Secret of ${made.value.key.name}`} text={made.value.secret} onDone={set(made, undefined)} />
      )}
      <NewKey onMade={show} />
      <Table
        noun="key"
        pages={pages}
        columns={[
          ['Name', ({ name }) => name],
          ['May', ({ scopes }) => scopes.map((scope) => SCOPES.get(scope) ?? scope).join(', ')],
          ['Project', ({ project_name }) => project_name],
          ['Ends', (key) => <End {...key} />],
          ['Last used', ({ last_used_at }) => (last_used_at ? <Time at={last_used_at} /> : 'never')],
          ['', (key) => isValid(key) && <KeySteps of={key} onMade={show} onRevoked={pages.reload} />],
        ]}
        none="You have no key."
      />
    </DeskPage>
  );
}

async function withProjects(keys: Key[]) {
  const ids = [...new Set(keys.map(({ project_id }) => project_id))].filter((id) => id !== null);
  const found = await Promise.all(ids.map((id) => client.projects.listOwn.query({ id })));
  const names = new Map(found.flatMap(({ projects }) => projects.map(({ id, name }) => [id, name])));
  const nameOf = (id: number | null) => (id === null ? 'all of yours' : (names.get(id) ?? 'one that you have left'));
  return keys.map((key) => ({ ...key, project_name: nameOf(key.project_id) }));
}

const isValid = ({ revoked_at, expires_at }: Key) => !revoked_at && (!expires_at || expires_at > new Date());

const End = ({ revoked_at, expires_at, previous_expires_at }: Key) => (
  <>
    {revoked_at ? 'revoked' : expires_at ? <Time at={expires_at} /> : 'never'}
    {!revoked_at && previous_expires_at && previous_expires_at > new Date() && (
      <Hint>The secret before works until {timeText(previous_expires_at)}.</Hint>
    )}
  </>
);

type KeyStepsProps = { of: Key; onMade: (made: Made) => void; onRevoked: () => Promise<void> };

function KeySteps({ of: { id, name }, onMade, onRevoked }: KeyStepsProps) {
  const rotate = async ({ hours }: Record<string, string>) =>
    onMade(await client.keys.rotate.mutate({ id, previous_valid_hours: Number(hours) }));
  const revoke = async () => {
    const { paused_webhooks } = await client.keys.revoke.mutate({ id });
    sayPaused(`${name} is revoked.`, paused_webhooks);
    await onRevoked();
  };
  const question = `Programs that use ${name} stop working at once. This can't be undone.`;
  const hours = { min: 0, max: 168, value: 24, hint: 'At most 168, a week; with 0 it ends at once' };
  return (
    <div class="choices">
      <FormButton as="link" action="New secret" of={name} title={`New secret of ${name}`} onSubmit={rotate}>
        <Field label="Hours that the secret of now still works" name="hours" type="number" required {...hours} />
      </FormButton>
      <Steps as="link" of={name} steps={[{ label: 'Revoke', run: revoke, question, isDestructive: true }]} />
    </div>
  );
}

function NewKey({ onMade }: { onMade: (made: Made) => void }) {
  const roles = useLoaded(
    async () => (await client.projects.listOwn.query({ limit: 200 })).projects.map(({ role }) => role),
    [],
  );
  const role = (['owner', 'member'] as const).find((one) => roles.data.value?.includes(one)) ?? 'viewer';
  const create = async ({ name = '', project_id, ends }: Record<string, string>, form: HTMLFormElement) => {
    const scopes = new FormData(form).getAll('scopes') as string[];
    if (scopes.length === 0) throw new Error('Choose what the key may do.');
    const expires_at = ends ? endOfDay(ends) : null;
    onMade(await client.keys.create.mutate({ name, scopes, project_id: Number(project_id) || null, expires_at }));
  };
  const offered = scopesFor({ isSuperadmin: isSuperadmin.value, role });
  return (
    <AddForm label="New key" onSubmit={create}>
      <Field label="Name" name="name" required maxLength={255} dir="auto" hint="What it is for: Nightly import" />
      <ProjectField label="Project" none="All of my projects" />
      <Field label="Ends on" name="ends" type="date" min={inDays(0)} hint="Never, if this is empty" />
      <fieldset class="scopes">
        <legend>What it may do</legend>
        {offered.map(([scope, text]) => (
          <Field key={scope} type="checkbox" name="scopes" value={scope} label={text} />
        ))}
      </fieldset>
    </AddForm>
  );
}
