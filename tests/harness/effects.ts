import { expect } from 'vitest';
import type { EventRow } from '../../server/domain/event/feed.ts';
import { type Contents, readContents } from './contents.ts';
import { eventsOf } from './events.ts';

/** Which rows a call changes, and which events it writes about them. */

type Row = Record<string, unknown> & { id?: number };
type Changed = { table: string; row: Row };

/** Tables whose rows are no change of their own. */
const WITHOUT_EVENTS: Record<string, string> = {
  events: 'the events themselves',
  audit_entries: 'a copy of some events',
  deletions: 'the records that trash.list reads, of rows whose events say the same',
  idempotency_keys: 'the stored response of a call',
  idempotency_usage: 'how many of these a user has',
  sessions: 'session.*, sessions.ended and user.updated name their user',
  sso_flows: 'sign-ins that are under way',
  logout_tokens_used: 'sessions.ended names whom they signed out',
  recovery_codes: 'recovery_codes.renewed and second_factor.* name their user',
  exports: 'export.started names their user',
  export_parts: 'what an export has found',
  erasures: 'user.erased names their user',
  checkouts: 'the subscription of its event names them',
  template_runs: 'template.started names the run, which then counts its progress',
  template_outcomes: 'template.applied names their run',
  template_rows: 'contents of releases, which release.published names',
  mails: 'about what an event says, which names their user, their invitation or the mail',
  mail_links: 'the same',
  webhook_deliveries: 'attempts, which webhooks.deliveries lists',
};

/** Columns that tell nothing to callers, or change with every write. */
const INTERNAL = new Set(
  (
    'updated_at version brought base_id base_values last_used_at password_hash code_failures code_failed_at last_code_step is_clearing ' +
    'leased_until next_attempt_at deliveries template_group_id deletion_id'
  )
    .split(' ')
    .filter(Boolean),
);

/** The table of the subject of an event, by the noun of its type. */
const SUBJECTS: Record<string, string> = {
  master_board: 'boards',
  master_group: 'groups',
  master_card: 'cards',
  key: 'api_keys',
  template: 'boards',
  identity: 'identities',
};
const tableOf = (noun: string) => SUBJECTS[noun] ?? `${noun}s`;

/** The table of the rows that an event names besides its subject, if it is not that of the subject. */
const FURTHER: Record<string, string> = { 'tag.deleted': 'cards', 'tag.restored': 'cards', 'member.removed': 'cards' };

/** The columns that say in which row a row lies. */
const PARENTS: Record<string, string> = {
  project_id: 'projects',
  board_id: 'boards',
  group_id: 'groups',
  card_id: 'cards',
  parent_comment_id: 'comments',
  webhook_id: 'webhooks',
};

/** The columns of the primary keys of tables without an id. */
const KEYS = 'project_id user_id tool_key card_id board_id release_id row_id rollout_id noun copy_id'.split(' ');

/** All rows, by table and id; those without an id by all their keys. */
function rowsOf(contents: Contents): Map<string, Changed> {
  const found = new Map<string, Changed>();
  for (const [table, rows] of Object.entries(contents)) {
    if (table in WITHOUT_EVENTS) continue;
    for (const row of rows as Row[]) {
      const id = row.id ?? KEYS.map((column) => row[column] ?? '').join(' ');
      found.set(`${table} ${id}`, { table, row });
    }
  }
  return found;
}

const visible = ({ row }: Changed) => JSON.stringify(Object.entries(row).filter(([column]) => !INTERNAL.has(column)));

/** Added, removed and changed rows; a changed one as it was before. */
function changedRows(before: Map<string, Changed>, after: Map<string, Changed>): Changed[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((key) => {
    const [old, now] = [before.get(key), after.get(key)];
    if (old && now && visible(old) === visible(now)) return [];
    return [(old ?? now)!];
  });
}

const nounOf = ({ type }: EventRow) => type.split('.')[0]!;

/** Whether an event is about this row. */
function isNamed({ table, row }: Changed, event: EventRow): boolean {
  const { subject_id, data, project_id } = event;
  const isSubject = table === tableOf(nounOf(event)) && row.id === subject_id;
  const isFurther = table === (FURTHER[event.type] ?? tableOf(nounOf(event))) && data.ids?.includes(row.id as number);
  const isUser = table === 'users' && row.id === (data.user_id ?? event.user_id);
  const isMember = table === 'members' && row.user_id === data.user_id && row.project_id === project_id;
  const isInvitation = table === 'invitations' && row.id === data.invitation_id;
  const isTool = table === 'project_tools' && nounOf(event) === 'project' && row.project_id === subject_id;
  const isOfRelease = table === 'release_rows' && nounOf(event) === 'release' && row.release_id === subject_id;
  const isOfRollout = /^rollout_/.test(table) && nounOf(event) === 'rollout' && row.rollout_id === subject_id;
  const isOfTemplate =
    table === 'project_templates' &&
    nounOf(event) === 'template' &&
    (row.project_id === project_id || row.board_id === subject_id);
  return [isSubject, isFurther, isUser, isMember, isInvitation, isTool, isOfRelease, isOfRollout, isOfTemplate].some(
    Boolean,
  );
}

/** Whether a row lies inside the subject of an event that created or deleted it. */
function isInside(changed: Changed, event: EventRow, all: Map<string, Changed>): boolean {
  if (!/\.(created|deleted|restored)$/.test(event.type)) return false;
  return Object.entries(PARENTS).some(([column, table]) => {
    const id = changed.row[column];
    if (id == null) return false;
    if (table === tableOf(nounOf(event)) && id === event.subject_id) return true;
    const parent = all.get(`${table} ${id}`);
    // A project is the parent of all its rows: only its own creation counts.
    return parent !== undefined && table !== 'projects' && isInside(parent, event, all);
  });
}

const projectOf = ({ row }: Changed, all: Map<string, Changed>) =>
  row.project_id ?? all.get(`cards ${row.card_id}`)?.row.project_id;

/** What a call does: its answer, its events, and the rows that it has changed without one. */
export async function effectOf<Answer>(call: () => Promise<Answer>) {
  const before = await readContents();
  let answer!: Answer;
  const events = await eventsOf(async () => {
    answer = await call();
  });
  return { answer, events, uncounted: uncountedChanges(before, await readContents(), events) };
}

/** The rows that a call has changed without an event that names them, has them inside of its subject, or counts them. */
export function uncountedChanges(before: Contents, after: Contents, events: EventRow[]): string[] {
  const [old, now] = [rowsOf(before), rowsOf(after)];
  const all = new Map([...old, ...now]);
  const left = changedRows(old, now).filter(
    (row) => !events.some((event) => isNamed(row, event) || isInside(row, event, all)),
  );
  const counts = new Map<number | null, number>();
  for (const { project_id, data } of events) counts.set(project_id, (counts.get(project_id) ?? 0) + (data.count ?? 0));
  const uncounted = left.filter((row) => {
    const project = (projectOf(row, all) ?? null) as number | null;
    const count = counts.get(project) ?? 0;
    counts.set(project, count - 1);
    return count <= 0;
  });
  for (const event of events) expectPlaceOf(event, all);
  return uncounted.map(({ table, row }) => `${table} ${JSON.stringify(row)}`);
}

/** An event has the project, the platform and the parents of its subject. A template belongs to none of the projects it is applied to. */
function expectPlaceOf(event: EventRow, all: Map<string, Changed>) {
  const { type, project_id, platform_id, subject_id, data } = event;
  const project = project_id === null ? undefined : all.get(`projects ${project_id}`)!.row;
  if (project) expect({ type, platform_id }).toEqual({ type, platform_id: project.platform_id });
  const subject = all.get(`${tableOf(nounOf(event))} ${subject_id}`)?.row;
  if (!subject || nounOf(event) === 'template') return;
  const told: Record<string, unknown> = { ...data, project_id, platform_id };
  for (const column of Object.keys(told).filter((name) => name.endsWith('_id') && name in subject))
    expect({ type, [column]: told[column] }).toEqual({ type, [column]: subject[column] });
}
