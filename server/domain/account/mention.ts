import { sql } from 'kysely';
import type { Erased } from '../../../shared/erasure.ts';
import { containsText, type Db, query, someOf, transact } from '../../database/query.ts';
import { useIndexes } from '../../database/removal.ts';
import { PERSONAL_DATA, type PersonalTable } from './personalData.ts';
import { inSlices } from './personalRows.ts';
import type { Person } from './reach.ts';

const MOST_MENTIONS = 100;
const LONGEST_SEARCH_MILLISECONDS = 5000;
const PROJECTS_AT_ONCE = 10;

/** A row, and those of its columns that name the person. */
type Mention = { id: number; columns: string[] };

/** Texts that name the person: in the projects that they are a member of, and outside of projects. A name of two letters would be everywhere. */
export async function findMentions(
  db: Db,
  { id, name, addresses }: Person & { name: string },
): Promise<Pick<Erased, 'review' | 'is_review_complete'>> {
  const wanted = [...(name.length > 2 ? [name] : []), ...addresses];
  const until = performance.now() + LONGEST_SEARCH_MILLISECONDS;
  const isLate = () => performance.now() > until;
  const members = await db.selectFrom('members').select('project_id').where('user_id', '=', id).execute();
  const projects = members.map(({ project_id }) => project_id);
  const review: Erased['review'] = [];
  let is_review_complete = true;
  for (const [table, listed] of Object.entries(PERSONAL_DATA)) {
    if (listed.text.length === 0) continue;
    const mentions: Mention[] = [];
    const isDone = await search(db, table, listed, { wanted, projects, isLate }, mentions);
    is_review_complete &&= isDone;
    for (const column of listed.text) {
      const ids = mentions.filter(({ columns }) => columns.includes(column)).map((mention) => mention.id);
      if (ids.length > 0) review.push({ table, column, ids: ids.sort((a, b) => a - b).slice(0, MOST_MENTIONS) });
    }
  }
  return { review, is_review_complete };
}

type Wanted = { wanted: string[]; projects: number[]; isLate: () => boolean };

/** Adds what one table has. False if the time did not suffice. */
async function search(
  db: Db,
  table: string,
  { key, text, flags }: PersonalTable,
  { wanted, projects, isLate }: Wanted,
  found: Mention[],
): Promise<boolean> {
  const names = text.map((column) => someOf(wanted.map((value) => containsText(value, `t.${column}`))));
  const isNamed = someOf(names);
  const columns = sql`array_remove(array[${sql.join(
    text.map((column, at) => sql`case when ${names[at]} then ${sql.lit(column)} end`),
  )}]::text[], null)`;
  const mention = sql`${sql.ref(`t.${key[0]}`)} as id, ${columns} as columns`;
  if (!flags.has('ofProject'))
    return inSlices<{ last: object | null; read: number; mentions: Mention[] | null }>(
      db,
      table,
      (slice, last) => sql`
        with slice as materialized (${slice})
        select ${last} as last, count(*)::int as read,
          (select jsonb_agg(to_jsonb(m)) from (select ${mention} from slice t where ${isNamed}) as m) as mentions from slice`,
      isLate,
      ({ mentions }) => found.push(...(mentions ?? [])),
    );

  for (let at = 0; at < projects.length; at += PROJECTS_AT_ONCE) {
    if (isLate()) return false;
    const isOfThem = sql`project_id = any(${projects.slice(at, at + PROJECTS_AT_ONCE)}::int[]) and deleted_at is null`;
    // No index has the project of a group.
    const isInBoard = table === 'groups' ? sql`board_id in (select id from boards where ${isOfThem})` : sql`true`;
    const rows = await transact(db, async (db) => {
      await useIndexes(db);
      return query(
        db,
        sql<Mention>`select ${mention} from ${sql.table(table)} t where ${isOfThem} and ${isInBoard} and (${isNamed})`,
      );
    });
    found.push(...rows);
  }
  return true;
}
