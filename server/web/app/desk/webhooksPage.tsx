import { signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { EVENT_TYPES, type EventType, isOfProjects } from '../../../../shared/eventType.ts';
import { address, go, projectAddress } from '../address.ts';
import { Action } from '../parts/action.tsx';
import { Hint, set } from '../parts/button.tsx';
import { counted } from '../parts/counted.ts';
import { Field, Form } from '../parts/form.tsx';
import { type Pages, usePages, Waiting } from '../parts/loaded.tsx';
import { say, sayFailure } from '../parts/message.tsx';
import { Secret } from '../parts/secret.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { Time, timeText } from '../parts/time.tsx';
import { inProject, members, onProjectEvent, project } from '../project.ts';
import type { client } from '../service.ts';
import { AddForm, asPage, DeskPage, Facts, Steps } from './operators.tsx';

type Webhook = Awaited<ReturnType<typeof client.webhooks.list.query>>['webhooks'][number];
type Delivery = Awaited<ReturnType<typeof client.webhooks.deliveries.query>>['deliveries'][number];
type Values = Record<string, string>;

/** A secret that was just made. */
const made = signal<{ id: number; secret: string } | undefined>(undefined);
const addressOf = (id?: number) => projectAddress(project.peek()?.id ?? 0, 'webhooks', id);
const calls = () => inProject().webhooks;

const COLUMNS: Column<Webhook>[] = [
  ['Address', ({ id, url }) => <a href={addressOf(id)}>{url}</a>],
  ['Events', ({ types }) => types?.join(', ') ?? 'all'],
  ['State', (webhook) => <span class={isWell(webhook) ? 'badge' : 'badge failed'}>{stateOf(webhook)}</span>],
  ['Changed', ({ updated_at }) => <Time at={updated_at} />],
];

export function WebhooksPage() {
  const { id } = address.value;
  const pages = usePages<Webhook>((cursor) => asPage(calls().list.query({ limit: 50, cursor })), []);
  useEvents(pages.reload);
  useEffect(() => set(made, undefined), []);
  const create = async ({ url = '' }: Values, form: HTMLFormElement) => {
    const { webhook, secret } = await calls().create.mutate({ url, types: chosenTypes(form) });
    made.value = { id: webhook.id, secret };
    await pages.reload();
    go(addressOf(webhook.id));
  };
  if (id !== undefined) {
    const webhook = pages.data.value?.find((one) => one.id === id);
    return (
      <DeskPage title={webhook?.url ?? 'Webhook'} up={{ href: addressOf(), text: 'All webhooks' }}>
        {made.value?.id === id && (
          <Secret title="The secret of this webhook" text={made.value.secret} onDone={set(made, undefined)}>
            <p>Your receiver checks the signature of each message with it.</p>
          </Secret>
        )}
        <Waiting loaded={pages}>
          {webhook ? (
            <Details key={id} webhook={webhook} pages={pages} />
          ) : (
            <p>There is no such webhook in this project.</p>
          )}
        </Waiting>
      </DeskPage>
    );
  }
  return (
    <DeskPage title="Webhooks">
      <Hint>
        A webhook sends the events of this project to an address of yours.{' '}
        <a href="/docs/guides/webhooks">How to receive them</a>
      </Hint>
      <AddForm label="New webhook" onSubmit={create}>
        <Fields url="" types={null} />
      </AddForm>
      <Table noun="webhook" pages={pages} keyOf={({ id }) => id} none="No webhook yet." columns={COLUMNS} />
    </DeskPage>
  );
}

/** Reads again after changes in the project: what they caused is sent within a second. */
function useEvents(read: () => void): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    return onProjectEvent(() => {
      clearTimeout(timer);
      timer = setTimeout(read, 1500);
    });
  }, []);
}

const OFFERED = Object.keys(EVENT_TYPES).filter(isOfProjects);

const Fields = ({ url, types }: { url: string; types: readonly string[] | null }) => (
  <>
    <Field
      label="Address"
      hint="It uses https, and is reachable from the internet."
      {...{ name: 'url', type: 'url', required: true, maxLength: 2000, defaultValue: url }}
    />
    <fieldset class="scopes">
      <legend>Events: those that you choose, or all if you choose none</legend>
      {[...new Set([...OFFERED, ...(types ?? [])])].map((type) => (
        <Field
          key={type}
          label={type}
          title={EVENT_TYPES[type as EventType]?.text}
          {...{ name: 'types', type: 'checkbox', value: type, defaultChecked: types?.includes(type) }}
        />
      ))}
    </fieldset>
  </>
);

function chosenTypes(form: HTMLFormElement): EventType[] | null {
  const types = new FormData(form).getAll('types') as EventType[];
  return types.length > 0 ? types.sort() : null;
}

const isWell = ({ is_active, failures, right_lost_at, disabled_reason }: Webhook) =>
  is_active ? failures === 0 && !right_lost_at : disabled_reason === null;

const stateOf = ({ is_active, failures, disabled_reason }: Webhook) =>
  is_active ? (failures > 0 ? 'Failing' : 'Active') : disabled_reason ? 'Switched off' : 'Paused';

const OFF: Record<string, string> = {
  gone: 'Switched off, since the receiver answered 410 (gone). Check its address, then resume.',
  failing: 'Switched off after five days without a success. Repair the receiver, send a test, then resume.',
  right_lost: 'Switched off, since whoever made it may no longer read these events. Resume to take it over.',
};

/** What is the matter, and what to do. */
function explained({ is_active, disabled_reason, right_lost_at, first_failed_at, next_attempt_at, failures }: Webhook) {
  if (!is_active)
    return `${OFF[disabled_reason ?? ''] ?? 'Paused.'} Events wait, and are sent in their order when you resume it.`;
  if (first_failed_at)
    return `Failing since ${timeText(first_failed_at)}, ${counted(failures, 'time')}. The event is sent again ${next_attempt_at ? timeText(next_attempt_at) : 'soon'}; later ones wait behind it. Repair the receiver, or skip the event.`;
  if (right_lost_at)
    return `Whoever made it lost the right to these events ${timeText(right_lost_at)}: it is switched off 30 days later, unless you take it over.`;
  return 'Active. Events are sent as they happen.';
}

function Details({ webhook, pages }: { webhook: Webhook; pages: Pages<Webhook> }) {
  const { id, url, types, is_active, failures, previous_expires_at: overlap } = webhook;
  const isEditing = useSignal(false);
  const sent = usePages<Delivery>((cursor) => asPage(calls().deliveries.query({ id, limit: 50, cursor })), []);
  useEvents(sent.reload);
  const read = () => Promise.all([pages.reload(), sent.reload()]);
  const due = webhook.next_attempt_at?.getTime();
  useEffect(() => {
    // A moment after the next attempt.
    const timer = due && setTimeout(read, Math.max(0, due - Date.now()) + 3000);
    return () => clearTimeout(timer);
  }, [due]);
  const stuck = sent.data.value?.find((one) => isFailed(one) && one.event_id && one.attempt === failures);
  const send = (event_id: string | null, call: () => Promise<unknown>) => sendAndTell(sent, event_id, call).then(read);
  const resend = (event_id: string) => send(event_id, () => calls().resend.mutate({ id, event_id }));
  const redeliver = (event_id: string) => send(event_id, () => calls().redeliver.mutate({ id, event_id }));
  const skip = (event_id: string) => calls().skip.mutate({ id, event_id }).then(read);
  const switchTo = (is_active: boolean) => calls().update.mutate({ id, is_active }).then(read);
  const save = async (values: Values, form: HTMLFormElement) => {
    const chosen = chosenTypes(form);
    const isOther = String(chosen) !== String(types);
    // Another address needs the password, so it is not sent without a change.
    const changes = { ...(values.url !== url && { url: values.url }), ...(isOther && { types: chosen }) };
    await calls().update.mutate({ id, ...changes });
    isEditing.value = false;
    await read();
  };
  const rotate = async () => {
    const { secret } = await calls().rotateSecret.mutate({ id });
    made.value = { id, secret };
    await pages.reload();
  };
  const remove = async () => {
    await calls().delete.mutate({ id });
    go(addressOf(), { replace: true });
    await pages.reload();
  };
  const steps = [
    { label: 'Send a test', run: () => send(null, () => calls().sendTest.mutate({ id })) },
    { label: 'Try now', run: () => redeliver(stuck?.event_id ?? ''), isOffered: !!stuck && is_active },
    {
      label: `Skip event ${stuck?.event_id}`,
      run: () => skip(stuck?.event_id ?? ''),
      isOffered: !!stuck,
      question: `${url} never gets event ${stuck?.event_id} (${stuck?.type}). The later events follow at once.`,
      isDestructive: true,
    },
    { label: 'Pause', run: () => switchTo(false), isOffered: is_active },
    { label: 'Resume', run: () => switchTo(true), isOffered: !is_active },
    { label: 'Take it over', run: () => switchTo(true), isOffered: is_active && !!webhook.right_lost_at },
    { label: 'Change', run: async () => set(isEditing, true)() },
    {
      label: 'New secret',
      run: rotate,
      question: `Messages to ${url} are signed with a new secret. For 24 hours, they are signed with the one of now, too.`,
    },
    {
      label: 'Delete',
      run: remove,
      isDestructive: true,
      question: `Events of this project are no longer sent to ${url}. The list of its deliveries goes, too.`,
      done: `The webhook to ${url} is deleted.`,
    },
  ];
  return (
    <>
      <p class={isWell(webhook) ? 'note' : 'note bad'}>{explained(webhook)}</p>
      <Facts
        facts={[
          ['Events', types?.join(', ') ?? 'all'],
          ['Answers for it', makerOf(webhook)],
          ['Created', timeText(webhook.created_at)],
          ['Previous secret', overlap && overlap > new Date() && `signs, too, until ${timeText(overlap)}`],
        ]}
      />
      {isEditing.value ? (
        <Form class="box" action="Save" onSubmit={save} onCancel={set(isEditing, false)}>
          <Fields url={url} types={types} />
        </Form>
      ) : (
        <Steps steps={steps} />
      )}
      <h2>Deliveries</h2>
      <Table
        noun="delivery"
        which="of the last 7 days"
        pages={sent}
        keyOf={({ number }) => number}
        none="Nothing was sent in the last 7 days. Send a test, or change a card."
        columns={[
          ['Time', ({ created_at }) => <Time at={created_at} />],
          ['Event', ({ type, event_id }) => `${type}${event_id ? ` · ${event_id}` : ''}`],
          ['Attempt', ({ attempt }) => attempt],
          ['Outcome', (one) => <span class={isFailed(one) ? 'bad' : 'good'}>{outcomeOf(one)}</span>],
          ['Took', ({ milliseconds }) => `${milliseconds} ms`],
          ['', ({ event_id: event }) => event && is_active && <Again event={event} run={() => resend(event)} />],
        ]}
      />
    </>
  );
}

const makerOf = ({ created_by: id, key_id }: Webhook) =>
  `${id === null ? 'the command line' : (members.peek().get(id)?.name ?? `user ${id}`)}${key_id ? `, with API key ${key_id}` : ''}`;

const isFailed = ({ status }: Delivery) => status === 'failed';
const outcomeOf = ({ status, response_status, error }: Delivery) => error ?? `${status}, ${response_status}`;

/** A receiver may take 15 seconds. */
const MOST_LOOKS = 25;

/** Sends an event, or a test, and waits until the deliveries show what came of it. */
async function sendAndTell(sent: Pages<Delivery>, event_id: string | null, send: () => Promise<unknown>) {
  await sent.reload();
  const before = sent.data.peek()?.[0]?.number ?? 0;
  await send();
  const what = event_id === null ? 'The test' : `Event ${event_id}`;
  for (let look = 0; look < MOST_LOOKS; look++) {
    await new Promise((resolve) => setTimeout(resolve, 700));
    await sent.reload();
    const found = sent.data.peek()?.find((one) => one.number > before && one.event_id === event_id);
    if (found && isFailed(found)) return sayFailure(new Error(`${what} was not taken: ${outcomeOf(found)}`));
    if (found) return say(`${what} has arrived after ${found.milliseconds} ms (${found.response_status}).`);
  }
  say(`${what} is not sent yet. It appears below.`);
}

const Again = ({ event, run }: { event: string; run: () => Promise<unknown> }) => (
  <Action as="link" of={event} run={run}>
    Resend
  </Action>
);
