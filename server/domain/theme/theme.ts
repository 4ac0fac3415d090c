import { badRequest, invalid, notFound } from '../../../shared/errors.ts';
import type { Page } from '../../../shared/paging.ts';
import {
  Theme,
  type ThemeCreate,
  ThemeVersion,
  type VersionChoice,
  type VersionDeprecate,
  type VersionList,
  type VersionSubmit,
} from '../../../shared/theme.ts';
import { readPage } from '../../database/page.ts';
import { type Db, mapConstraintErrors, transact } from '../../database/query.ts';
import { insertRow, rowById, updateRow } from '../../database/rows.ts';
import type { Row, RowChanges } from '../../database/tables.ts';
import { NOW } from '../../database/timestamp.ts';
import type { ProjectContext, SignedInContext } from '../access/context.ts';
import { mustOwnPlatform, ownsPlatform } from '../access/permission.ts';
import { differingFields, type Happened, writeEvents } from '../event/event.ts';

const THEME_COLUMNS = Theme.keyof().options;
const VERSION_COLUMNS = ThemeVersion.keyof().options;
type VersionRow = Pick<Row<'theme_versions'>, (typeof VERSION_COLUMNS)[number]>;

export async function createTheme(context: SignedInContext, { platform_id, name }: ThemeCreate) {
  const { caller } = context;
  mustOwnPlatform(caller, platform_id, !caller.isProjectChosen || caller.project?.platform_id === platform_id);
  return transact(context.db, async (db) => {
    const theme = await mapConstraintErrors(insertRow(db, 'themes', { platform_id, name }, THEME_COLUMNS), {
      themes_platform_id_foreign: () => invalid({ platform_id: 'does not exist' }, 'unknown_reference'),
    });
    await writeEvents({ ...context, db }, [{ type: 'theme.created', platform_id, subject_id: theme.id }]);
    return { theme };
  });
}

/** The themes of the caller's platforms; of all platforms for a superadmin who selects no project. */
export const listThemes = (context: ProjectContext, page: Page) =>
  readPage('themes', ownThemes(context).select(THEME_COLUMNS), page);

export async function listVersions(context: ProjectContext, { theme_id, approval_status, ...page }: VersionList) {
  const versions = context.db
    .selectFrom('theme_versions')
    .select(VERSION_COLUMNS)
    .where('theme_id', 'in', ownThemes(context).select('id'))
    .where(({ and }) => and({ theme_id: theme_id ?? undefined, approval_status: approval_status ?? undefined }));
  return readPage('versions', versions, page);
}

/** Submits a version for review; one that was rejected may be submitted again. */
export async function submitVersion(context: ProjectContext, { theme_id, version }: VersionSubmit) {
  const { db, caller } = context;
  const isOwned = ownsPlatform('themes.platform_id', caller);
  const missing = () => notFound('There is no such theme.');
  const theme = await rowById(db, 'themes', theme_id, ['platform_id', isOwned.as('is_owned')], { missing });
  mustOwnPlatform(caller, theme.platform_id, theme.is_owned);

  return transact(db, async (db) => {
    const submitted = await db
      .insertInto('theme_versions')
      .values({ theme_id, version })
      .onConflict((known) =>
        known
          .columns(['theme_id', 'version'])
          .doUpdateSet({ approval_status: 'pending', updated_at: NOW })
          .where('theme_versions.approval_status', '=', 'rejected'),
      )
      .returning(VERSION_COLUMNS)
      .executeTakeFirstOrThrow(() => invalid({ version: 'already exists' }, 'already_exists'));
    await writeEvents({ ...context, db }, [versionEvent('theme_version.submitted', submitted, theme)]);
    return { version: submitted };
  });
}

const versionEvent = (
  type: Happened['type'],
  { id, theme_id }: VersionRow,
  { platform_id }: Pick<Row<'themes'>, 'platform_id'>,
): Happened => ({ type, platform_id, subject_id: id, data: { theme_id } });

export const approveVersion = (context: SignedInContext, { version_id }: VersionChoice) =>
  review(context, version_id, 'approved');

export const rejectVersion = (context: SignedInContext, { version_id }: VersionChoice) =>
  review(context, version_id, 'rejected');

/** Publishes an approved version. */
export async function publishVersion(context: SignedInContext, { version_id }: VersionChoice) {
  return changeVersion(context, version_id, 'theme_version.published', (version) => {
    if (version.theme_status === 'published') return {};
    if (version.approval_status !== 'approved')
      throw badRequest('Only an approved version can be published.', 'version_not_approved');
    if (version.theme_status === 'deprecated')
      throw badRequest('This version is deprecated: undo that instead.', 'version_deprecated');
    return { theme_status: 'published', published_at: new Date() };
  });
}

/** Deprecates an approved version; does nothing if it is already deprecated. */
export async function deprecateVersion(context: SignedInContext, { version_id }: VersionChoice) {
  const { version } = await changeVersion(context, version_id, 'theme_version.deprecated', (version) =>
    version.theme_status === 'deprecated' ? {} : deprecation(version),
  );
  return { version_id: version.id, theme_status: version.theme_status };
}

/** The same with a reason and a replacement, which are also set on an already deprecated version. */
export async function deprecateWithNotice(
  context: SignedInContext,
  { version_id, reason, replacement_version_id }: VersionDeprecate,
) {
  return changeVersion(context, version_id, 'theme_version.deprecated', async (version, db) => {
    if (replacement_version_id != null) await mustReplace(db, version, replacement_version_id);
    const notice = { deprecation_reason: reason, replacement_version_id };
    return version.theme_status === 'deprecated' ? notice : { ...deprecation(version), ...notice };
  });
}

/** Undoes a deprecation: restores the previous status. */
export async function undoDeprecation(context: SignedInContext, { version_id }: VersionChoice) {
  return changeVersion(context, version_id, 'theme_version.restored', (version) => {
    if (version.theme_status !== 'deprecated') return {};
    const theme_status = version.published_at === null ? 'draft' : 'published';
    return { theme_status, deprecated_at: null, deprecation_reason: null, replacement_version_id: null };
  });
}

function deprecation({ approval_status }: VersionRow): Changes {
  if (approval_status !== 'approved')
    throw badRequest('Only an approved version can be deprecated.', 'version_not_approved');
  return { theme_status: 'deprecated', deprecated_at: new Date() };
}

async function review(context: SignedInContext, versionId: number, outcome: 'approved' | 'rejected') {
  return changeVersion(context, versionId, `theme_version.${outcome}`, ({ approval_status }) => {
    if (approval_status === outcome) return {};
    if (approval_status !== 'pending')
      throw badRequest(`Only a pending version can be ${outcome}.`, 'version_not_pending');
    return { approval_status: outcome };
  });
}

type Changes = RowChanges<'theme_versions'>;
type Decide = (version: VersionRow, db: Db) => Changes | Promise<Changes>;

/** Locks a version, applies the changes that the rule decides, and returns it. The event is written if these change something. */
async function changeVersion(
  context: SignedInContext,
  id: number,
  type: Happened['type'],
  decide: Decide,
): Promise<{ version: VersionRow }> {
  const { caller } = context;
  const isOwned = ownsPlatform('themes.platform_id', caller);
  return transact(context.db, async (db) => {
    const found = await db
      .selectFrom('theme_versions')
      .select(VERSION_COLUMNS)
      .select(({ selectFrom }) => {
        const theme = selectFrom('themes').whereRef('themes.id', '=', 'theme_id');
        return [
          theme.select('platform_id').$asScalar().$notNull().as('platform_id'),
          theme.select(isOwned.as('is_owned')).$asScalar().$notNull().as('is_owned'),
        ];
      })
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirstOrThrow(() => notFound('There is no such theme version.'));
    const { is_owned, platform_id, ...version } = found;
    mustOwnPlatform(caller, platform_id, is_owned);

    const changes = await decide(version, db);
    if (Object.keys(changes).length === 0) return { version };
    const changed = await updateRow(db, 'theme_versions', id, { ...changes, updated_at: NOW }, VERSION_COLUMNS);
    const isOther = differingFields(version, changed).length > 0;
    if (isOther) await writeEvents({ ...context, db }, [versionEvent(type, changed, { platform_id })]);
    return { version: changed };
  });
}

async function mustReplace(db: Db, { id, theme_id }: VersionRow, replacementId: number): Promise<void> {
  const replacement = await db
    .selectFrom('theme_versions')
    .select('id')
    .where('id', '=', replacementId)
    .where('id', '<>', id)
    .where('theme_id', '=', theme_id)
    .where('theme_status', '=', 'published')
    .forShare()
    .executeTakeFirst();
  if (!replacement)
    throw invalid({ replacement_version_id: 'is not another published version of this theme' }, 'unknown_reference');
}

/** Themes that the caller may see. */
const ownThemes = ({ db, caller }: ProjectContext) =>
  db.selectFrom('themes').where(ownsPlatform('themes.platform_id', caller));
