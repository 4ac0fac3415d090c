import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import { invalid, notFound } from '../../../shared/errors.ts';
import type {
  ReleaseCompare,
  ReleaseList,
  ReleasePublish,
  ReleaseRow,
  RowDifference,
} from '../../../shared/release.ts';
import { levelOf } from '../../database/level.ts';
import { readPage } from '../../database/page.ts';
import { type Db, oneRow, query } from '../../database/query.ts';
import type { Removal } from '../../database/removal.ts';
import { daysBefore } from '../../database/timestamp.ts';
import { LARGEST_RESPONSE_BYTES } from '../../limits/unsentResponses.ts';
import type { SignedInContext } from '../access/context.ts';
import { mustFitResponse } from '../board/responseSize.ts';
import { writeEvents } from '../event/event.ts';
import { findMaster } from './masterRow.ts';
import { templateTransaction } from './templateLock.ts';
import { type Part, RELEASED, templatesOf, valuesOf } from './templateSource.ts';

/** The level of a database from which on releases are announced and rolled out (`level.ts`). */
export const RELEASE_LEVEL = 2;

/** The release with what a sync or push is about to bring, and the one before it. */
export type Published = { id: number; number: number; is_new: boolean; previous_id: number | null };

/** Publishes the draft of a master board, unless it equals the last release. */
export async function publishRelease(context: SignedInContext, { board_id, note }: ReleasePublish) {
  await findMaster(context.db, 'boards', board_id, ['id']);
  return templateTransaction(context.db, board_id, async (db) => {
    const { id, is_new } = await publish({ ...context, db }, { kind: 'sync', board_id }, note);
    return { release: await findRelease(db, id), is_new };
  });
}

/** Rows of the draft that a push publishes; the others stay as they were in the last release. */
function isInPart({ kind, group_id, card_id }: Part): RawBuilder<unknown> {
  if (kind === 'push') return sql`d.card_id = ${card_id}`;
  if (kind === 'push_group') return sql`d.group_id = ${group_id}`;
  return kind === 'push_board' ? sql`d.card_id is null` : sql`true`;
}

/** The rows of the draft with their contents: `row_id` is null where the content was never published. */
const draftOf = (board_id: number) => sql`
  ${templatesOf({ boards: [board_id] }, {})}, draft as materialized (
    select id as board_id, null::int as group_id, null::int as card_id, row_id, null::int as parent_id, position, ${valuesOf(RELEASED.boards, 'm')} as released from master_board m
    union all
    select null, id, null, row_id, board_id, position, ${valuesOf(RELEASED.groups, 'm')} from master_group m
    union all
    select null, null, id, row_id, group_id, position, ${valuesOf(RELEASED.cards, 'm')} from master_card m
  )`;

/** Which row it is, over all three tables. */
const KEY = sql`concat_ws('-', board_id, 'g' || group_id, 'c' || card_id)`;

/**
 * Publishes the draft or a part of it, in a transaction that has the lock of the board. The first release of a board has all of
 * it, and so does a later one for rows whose parents are not in the last one.
 */
export async function publish(
  context: SignedInContext,
  part: Part & { board_id: number },
  note: string | null | undefined,
): Promise<Published> {
  const { db, caller } = context;
  const { board_id } = part;
  const published = await query(
    db,
    sql<Published>`
      with ${draftOf(board_id)}, created as (
        insert into template_rows (board_id, group_id, card_id, digest, content)
        select board_id, group_id, card_id, md5(released::text), released from draft where row_id is null
        returning id, ${KEY} as key
      ), stored as materialized (
        select d.board_id, d.group_id, d.card_id, d.parent_id, d.position, coalesce(d.row_id, c.id) as row_id
        from (select *, ${KEY} as key from draft) as d left join created c using (key)
      ), last as (
        select id, number from releases where board_id = ${board_id} order by number desc limit 1
      ), before as materialized (
        select r.board_id, r.group_id, r.card_id, p.row_id, p.parent_id, p.position
        from last join release_rows p on p.release_id = last.id join template_rows r on r.id = p.row_id
      ), wanted as materialized (
        select d.row_id, d.parent_id, d.position from stored d
        where ${isInPart(part)} or not exists (select from last) or (d.card_id is null and not exists (
          select from before b where (b.board_id, b.group_id) is not distinct from (d.board_id, d.group_id)))
        union all
        select d.row_id, d.parent_id, d.position from before d
        where (${isInPart(part)}) is not true
      ), published as (
        insert into releases (board_id, number, note, user_id)
        select ${board_id}, coalesce((select number from last), 0) + 1, ${note ?? null}, ${caller.id}::int
        where exists (select row_id, parent_id, position from wanted except select row_id, parent_id, position from before)
          or exists (select row_id, parent_id, position from before except select row_id, parent_id, position from wanted)
        returning id, number
      ), filled as (
        insert into release_rows (release_id, row_id, parent_id, position)
        select p.id, w.row_id, w.parent_id, w.position from wanted w cross join published p
      )
      select coalesce(p.id, last.id) as id, coalesce(p.number, last.number) as number, p.id is not null as is_new,
        last.id as previous_id
      from (select) as one left join last on true left join published p on true`,
  );
  const release = oneRow(published);
  if (release.is_new && (await levelOf(db)) >= RELEASE_LEVEL) {
    const data = { board_id, number: release.number };
    await writeEvents(context, [{ type: 'release.published', subject_id: release.id, data }]);
  }
  return release;
}

export const noSuchRelease = () => notFound('There is no such release.');

const releases = (db: Db) =>
  db
    .selectFrom('releases as r')
    .leftJoin('users as u', 'u.id', 'r.user_id')
    .select(['r.id', 'r.board_id', 'r.number', 'r.note', 'r.user_id', 'u.name as user_name', 'r.created_at'])
    .select([
      sql<number>`(select count(*)::int from release_rows p where p.release_id = r.id)`.as('rows_count'),
      sql<number>`(select count(*)::int from project_templates t where t.release_id = r.id)`.as('projects_count'),
    ]);

/** The releases of a master board, or of all, newest first. */
export async function listReleases({ db }: SignedInContext, { board_id, ...page }: ReleaseList) {
  const found = releases(db).where(({ and }) => and({ 'r.board_id': board_id ?? undefined }));
  return readPage('releases', found, page, ['r.id'], 'desc');
}

const findRelease = (db: Db, id: number) => releases(db).where('r.id', '=', id).executeTakeFirstOrThrow(noSuchRelease);

const ORDER = sql`r.board_id nulls last, r.group_id nulls last, r.card_id`;

/** A release with its rows. */
export async function getRelease({ db }: SignedInContext, { id }: { id: number }) {
  const release = await findRelease(db, id);
  const size = await query(
    db,
    sql<{ is_too_large: boolean }>`
      select sum(octet_length(r.content::text)) > ${sql.lit(LARGEST_RESPONSE_BYTES)} as is_too_large
      from release_rows p join template_rows r on r.id = p.row_id where p.release_id = ${id}`,
  );
  mustFitResponse(size[0], 'This release is too large for one answer. Shorten descriptions of its master cards.');
  const rows = await query(
    db,
    sql<z.output<typeof ReleaseRow>>`
      select ${NOUN} as noun, coalesce(r.board_id, r.group_id, r.card_id) as master_id, p.parent_id, p.position, r.content
      from release_rows p join template_rows r on r.id = p.row_id where p.release_id = ${id} order by ${ORDER}`,
  );
  return { release, rows };
}

const NOUN = sql`case when r.board_id is not null then 'board' when r.group_id is not null then 'group' else 'card' end`;

type Compared = { noun: string; master_id: number; parent_id: number | null; position: number; content: Content };
type Content = Record<string, unknown>;

/** What differs between a release and another one of its board, or the draft. */
export async function compareReleases(context: SignedInContext, { id, with_id }: ReleaseCompare) {
  const { db } = context;
  const { release, rows: before } = await getRelease(context, { id });
  if (with_id == null) return { differences: differencesOf(before, await draftRows(db, release.board_id)) };
  const other = await getRelease(context, { id: with_id });
  if (other.release.board_id !== release.board_id)
    throw invalid({ with_id: 'is a release of another board' }, 'unknown_reference');
  return { differences: differencesOf(before, other.rows) };
}

const draftRows = (db: Db, board_id: number) =>
  query(
    db,
    sql<Compared>`
      with ${draftOf(board_id)}
      select ${NOUN} as noun, coalesce(r.board_id, r.group_id, r.card_id) as master_id, r.parent_id, r.position, r.released as content
      from draft r order by ${ORDER}`,
  );

function differencesOf(before: Compared[], after: Compared[]): RowDifference[] {
  const keyOf = ({ noun, master_id }: Compared) => `${noun} ${master_id}`;
  const old = new Map(before.map((row) => [keyOf(row), row]));
  const kept = new Set(after.map(keyOf));
  const asDifference = (
    { noun, master_id, content }: Compared,
    change: string,
    fields: RowDifference['fields'] = [],
  ) => ({
    noun,
    master_id,
    title: String(content.title),
    change,
    fields,
  });
  const ofLater = after.flatMap((row) => {
    const earlier = old.get(keyOf(row));
    if (!earlier) return [asDifference(row, 'added')];
    const fields = changedFields(earlier.content, row.content);
    if (fields.length > 0) return [asDifference(row, 'changed', fields)];
    const isMoved = earlier.parent_id !== row.parent_id || earlier.position !== row.position;
    return isMoved ? [asDifference(row, 'moved')] : [];
  });
  return [...ofLater, ...before.filter((row) => !kept.has(keyOf(row))).map((row) => asDifference(row, 'removed'))];
}

const changedFields = (before: Content, after: Content) =>
  Object.keys(after)
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, before: inShort(before[field] ?? null), after: inShort(after[field]) }));

/** The longest text that a comparison or a preview shows. */
export const LONGEST_SHOWN = 1000;

const inShort = (value: unknown) =>
  typeof value === 'string' && value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value;

/** Releases that nobody has and nothing refers to any more; never the last one of a board. */
export const releaseRemoval = (days: number): Removal => ({
  table: 'releases',
  due: (now) => sql`t.created_at < ${daysBefore(now, days)}`,
  by: 'created_at',
  isFree: sql`exists (select from releases n where n.board_id = t.board_id and n.number > t.number)
    and not exists (select from project_templates p where p.release_id = t.id)
    and not exists (select from rollouts o where o.release_id = t.id)
    and not exists (select from rollouts o where o.previous_release_id = t.id)
    and not exists (select from boards b where b.id = t.board_id and b.rolled_out_id = t.id)`,
});
