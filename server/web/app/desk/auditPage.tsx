import { EVENT_TYPES, type EventType, isOfProjects, traitsOf } from '../../../../shared/eventType.ts';
import { address, go, withQuery } from '../address.ts';
import { Hint } from '../parts/button.tsx';
import { Choice, Field } from '../parts/form.tsx';
import { usePages } from '../parts/loaded.tsx';
import { type Column, Table } from '../parts/table.tsx';
import { inDays, startOfDay, Time } from '../parts/time.tsx';
import { boards, inProject, members } from '../project.ts';
import type { client } from '../service.ts';
import { DeskPage } from './operators.tsx';

type Page = Awaited<ReturnType<typeof client.audit.list.query>>;
type Entry = Page['entries'][number];

/** A filter may match none of the entries that one call reads; after so many calls, the person decides. */
const MOST_CALLS = 10;

/** What happens outside of projects is for superadmins, on the command line. */
const TYPES = Object.entries(EVENT_TYPES)
  .filter(([type, { audit }]) => audit !== 'never' && isOfProjects(type))
  .toSorted(([, one], [, other]) => Number(!one.audit) - Number(!other.audit))
  .map(([type, { text }]): [string, string] => [type, text]);

export function AuditPage() {
  const { query } = address.value;
  const [type = '', user = '', since = ''] = ['type', 'user', 'since'].map((name) => query.get(name) ?? '');
  const pages = usePages(readEntries, [type, user, since]);
  const choose = (name: string) => (event: { currentTarget: { value: string } }) =>
    go(withQuery({ [name]: event.currentTarget.value }), { replace: true });
  const people = [...members.value.values()].map(({ user_id, name }): [string, string] => [`${user_id}`, name]);
  return (
    <DeskPage title="Audit">
      <Hint>Who did what in this project, newest first.</Hint>
      <div class="row">
        <Choice label="What" value={type} onChange={choose('type')} choices={[['', 'Anything'], ...TYPES]} />
        <Choice label="Who" value={user} onChange={choose('user')} choices={[['', 'Anybody'], ...people]} />
        <Field label="Since" type="date" max={inDays(0)} value={since} onChange={choose('since')} />
      </div>
      <Table noun="entry" pages={pages} columns={COLUMNS} none="Nothing is found." />
    </DeskPage>
  );
}

async function readEntries(cursor: string | undefined) {
  const { query } = address.peek();
  const type = query.get('type') ?? '';
  const since = query.get('since');
  const filter = {
    types: traitsOf(type) ? [type as EventType] : null,
    user_id: Number(query.get('user')) || null,
    since: since && startOfDay(since),
  };
  let page: Page = { entries: [], next_cursor: cursor ?? null };
  for (let calls = 0; calls < MOST_CALLS && page.entries.length === 0; calls++) {
    page = await inProject().audit.list.query({ ...filter, limit: 50, cursor: page.next_cursor });
    if (page.next_cursor === null) break;
  }
  return { rows: page.entries, next: page.next_cursor };
}

const COLUMNS: Column<Entry>[] = [
  ['When', ({ created_at }) => <Time at={created_at} />],
  ['Who', ({ user_id, key_id }) => [nameOf(user_id), key_id && `with key ${key_id}`].filter(Boolean).join(', ')],
  ['What', ({ type }) => traitsOf(type)?.text ?? type],
  ['Details', detailsOf],
  ['From', ({ surface, address }) => [SURFACES[surface] ?? surface, address].filter(Boolean).join(', ')],
];

const SURFACES: Record<string, string> = { rpc: 'page or client', mcp: 'assistant', command_line: 'command line' };

const nameOf = (id: number | null) =>
  id === null ? 'nobody signed in' : (members.value.get(id)?.name ?? `user ${id}`);

function detailsOf({ type, subject_id, data }: Entry): string {
  const { user_id, role, fields, board_id, product, plan, status, reason } = data;
  const board = board_id && boards.value?.find(({ id }) => id === board_id);
  const parts = [
    user_id ? nameOf(user_id) : type.startsWith('webhook.') && `webhook ${subject_id}`,
    board && `board ${board.title}`,
    fields?.length && `changed: ${fields.join(', ')}`,
    ...[role, product, plan, status, reason],
  ];
  return parts.filter(Boolean).join(' · ');
}
