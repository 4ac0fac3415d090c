import { type RawBuilder, sql } from 'kysely';
import type { z } from 'zod';
import type { Page } from '../../shared/paging.ts';
import type {
  Theme,
  ThemeCreate,
  ThemeVersion,
  VersionChoice,
  VersionDeprecate,
  VersionList,
  VersionSubmit,
} from '../../shared/theme.ts';
import type { Provisioning } from '../context.ts';
import { type Db, orRefuse, query, transact } from '../database/query.ts';
import { badRequest, forbidden, invalid, notFound } from '../errors.ts';
import type { SignedInContext } from '../trpc.ts';
import { readCursor, toPage } from './page.ts';
import { assignments } from './row.ts';

type ThemeRow = z.input<typeof Theme>;
type VersionRow = z.input<typeof ThemeVersion>;

export async function createTheme({ db }: Provisioning, { platform_id, name }: ThemeCreate) {
  const inserted = query(
    db,
    sql<ThemeRow>`insert into themes (platform_id, name) values (${platform_id}, ${name}) returning *`,
  );
  const [theme] = await orRefuse(inserted, {
    themes_platform_id_foreign: () => invalid({ platform_id: 'names no platform' }),
  });
  return { theme: theme! };
}

/** The themes of the platform that the caller acts in; of all platforms for a superadmin. */
export async function listThemes(context: SignedInContext, { cursor, limit }: Page) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    context.db,
    sql<ThemeRow>`select t.* from themes t where t.id > ${after} and ${isOwn(context)} order by t.id limit ${limit + 1}`,
  );
  const { rows: themes, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { themes, next_cursor };
}

export async function listVersions(
  context: SignedInContext,
  { theme_id, approval_status, cursor, limit }: VersionList,
) {
  const [after] = readCursor(cursor, 1) ?? [0];
  const found = await query(
    context.db,
    sql<VersionRow>`
      select v.* from theme_versions v join themes t on t.id = v.theme_id
      where v.id > ${after} and ${isOwn(context)}
        and (${theme_id ?? null}::int is null or v.theme_id = ${theme_id ?? null})
        and (${approval_status ?? null}::text is null or v.approval_status = ${approval_status ?? null})
      order by v.id limit ${limit + 1}`,
  );
  const { rows: versions, next_cursor } = toPage(found, limit, ({ id }) => [id]);
  return { versions, next_cursor };
}

/** Submits a version for review; one that was rejected may be submitted again. */
export async function submitVersion(context: SignedInContext, { theme_id, version }: VersionSubmit) {
  const [theme] = await query(context.db, sql<ThemeRow>`select * from themes where id = ${theme_id}`);
  if (!theme) throw notFound('There is no such theme.');
  mustOwn(context, theme.platform_id);

  const [submitted] = await query(
    context.db,
    sql<VersionRow>`
      insert into theme_versions (theme_id, version) values (${theme_id}, ${version})
      on conflict (theme_id, version) do update set approval_status = 'pending', updated_at = now()
        where theme_versions.approval_status = 'rejected'
      returning *`,
  );
  if (!submitted) throw invalid({ version: 'exists already' });
  return { version: submitted };
}

export const approveVersion = (context: SignedInContext, { version_id }: VersionChoice) =>
  review(context, version_id, 'approved');

export const rejectVersion = (context: SignedInContext, { version_id }: VersionChoice) =>
  review(context, version_id, 'rejected');

/** Puts an approved version on offer. */
export async function publishVersion(context: SignedInContext, { version_id }: VersionChoice) {
  return changeVersion(context, version_id, (version) => {
    if (version.theme_status === 'published') return {};
    if (version.approval_status !== 'approved') throw badRequest('Only an approved version can be published.');
    if (version.theme_status === 'deprecated') throw badRequest('This version is deprecated: undo that instead.');
    return { theme_status: 'published', published_at: new Date() };
  });
}

/** Marks an approved version as one that should no longer be used; one that is marked already stays as it is. */
export async function deprecateVersion(context: SignedInContext, { version_id }: VersionChoice) {
  const { version } = await changeVersion(context, version_id, (version) =>
    version.theme_status === 'deprecated' ? {} : deprecation(version),
  );
  return { version_id: version.id, theme_status: version.theme_status };
}

/** The same with a reason and the version to use instead; one that is marked already gets them, too. */
export async function deprecateWithNotice(
  context: SignedInContext,
  { version_id, reason, replacement_version_id }: VersionDeprecate,
) {
  return changeVersion(context, version_id, async (version, db) => {
    if (replacement_version_id != null) await mustReplace(db, version, replacement_version_id);
    const notice = { deprecation_reason: reason, replacement_version_id };
    return version.theme_status === 'deprecated' ? notice : { ...deprecation(version), ...notice };
  });
}

/** Takes a deprecation back: the version is again what it was before. */
export async function undoDeprecation(context: SignedInContext, { version_id }: VersionChoice) {
  return changeVersion(context, version_id, (version) => {
    if (version.theme_status !== 'deprecated') return {};
    const theme_status = version.published_at === null ? 'draft' : 'published';
    return { theme_status, deprecated_at: null, deprecation_reason: null, replacement_version_id: null };
  });
}

function deprecation({ approval_status }: VersionRow): Changes {
  if (approval_status !== 'approved') throw badRequest('Only an approved version can be deprecated.');
  return { theme_status: 'deprecated', deprecated_at: new Date() };
}

async function review(context: SignedInContext, versionId: number, outcome: 'approved' | 'rejected') {
  return changeVersion(context, versionId, ({ approval_status }) => {
    if (approval_status === outcome) return {};
    if (approval_status !== 'pending') throw badRequest(`Only a version that waits for review can be ${outcome}.`);
    return { approval_status: outcome };
  });
}

type Changes = { [Column in keyof VersionRow]?: VersionRow[Column] };
type Decide = (version: VersionRow, db: Db) => Changes | Promise<Changes>;

/** Finds a version, holds it while its rule decides what changes, and answers it as it is then. */
async function changeVersion(context: SignedInContext, id: number, decide: Decide): Promise<{ version: VersionRow }> {
  return transact(context.db, async (db) => {
    const [found] = await query(
      db,
      sql<VersionRow & { platform_id: number }>`
        select v.*, t.platform_id from theme_versions v join themes t on t.id = v.theme_id where v.id = ${id} for update of v`,
    );
    if (!found) throw notFound('There is no such theme version.');
    mustOwn(context, found.platform_id);

    const changes = await decide(found, db);
    if (Object.keys(changes).length === 0) return { version: found };
    const [version] = await query(
      db,
      sql<VersionRow>`update theme_versions set ${assignments(changes)} where id = ${id} returning *`,
    );
    return { version: version! };
  });
}

async function mustReplace(db: Db, { id, theme_id }: VersionRow, replacementId: number): Promise<void> {
  const [replacement] = await query(
    db,
    sql`
      select from theme_versions
      where id = ${replacementId} and id <> ${id} and theme_id = ${theme_id} and theme_status = 'published' for share`,
  );
  if (!replacement) throw invalid({ replacement_version_id: 'names no other published version of this theme' });
}

function mustOwn({ caller }: SignedInContext, platformId: number): void {
  if (caller.superadmin || caller.project?.platform_id === platformId) return;
  throw forbidden('This theme belongs to another platform.');
}

/** Themes `t` that the caller may see. */
function isOwn({ caller }: SignedInContext): RawBuilder<unknown> {
  return caller.superadmin ? sql`true` : sql`t.platform_id = ${caller.project?.platform_id ?? null}`;
}
