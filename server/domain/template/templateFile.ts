import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { invalid } from '../../../shared/errors.ts';
import {
  type ExportedTemplate,
  FILE_CHANGES,
  FILE_DEFAULTS,
  type TemplateApply,
  type TemplateExport,
  type TemplateFile,
  type TemplateFilePlan,
  type TemplateFileResult,
  type TemplatePlan,
} from '../../../shared/templateFile.ts';
import { type Db, inOneSnapshot, query } from '../../database/query.ts';
import type { SignedInContext } from '../access/context.ts';
import { preparation } from '../access/preparation.ts';
import { sanitiseDescription } from '../board/description.ts';
import { isLiveCard } from '../board/row.ts';
import { changesOf } from './templateFileChanges.ts';
import { type DraftRow, type FileRow, fileRow, findBoardWithKey, readDraft } from './templateFileRows.ts';
import { writeDraft } from './templateFileWriting.ts';
import { templateTransaction } from './templateLock.ts';

/** The master board as a file: `planTemplate` finds nothing to change with it. */
export function exportTemplate({ db }: SignedInContext, { board_id }: TemplateExport) {
  return inOneSnapshot(db, async (db) => {
    const { rows, ...board } = await readDraft(db, board_id);
    const groups = rows.map(({ rows, ...group }) => ({ ...inFile(group), cards: rows.map(inFile) }));
    return { template: { board: { ...inFile(board), groups } } as ExportedTemplate };
  });
}

/** Without the fields that are null or have their default. */
function inFile({ key, content }: Pick<FileRow, 'key' | 'content'>): object {
  const told = Object.entries(content).filter(([name, value]) => value !== (FILE_DEFAULTS[name] ?? null));
  return { key, ...Object.fromEntries(told) };
}

/** What applying the file would change; nothing changes. */
export async function planTemplate(context: SignedInContext, { template }: TemplatePlan): Promise<TemplateFilePlan> {
  const file = await sanitiseTemplate(context, { template });
  return inOneSnapshot(context.db, async (db) => {
    const { plan, draft, changes } = await compare(db, file, await findBoardWithKey(db, file.key));
    return { plan, board_id: draft?.id ?? null, changes };
  });
}

/**
 * Makes the master board what the file says, in one transaction. Rows that the file does not name are deleted; the copies in
 * projects stay.
 */
export async function applyTemplateFile(
  context: SignedInContext,
  { template, plan: required }: TemplateApply,
): Promise<TemplateFileResult> {
  const file = await sanitiseTemplate(context, { template });
  const board_id = await findBoardWithKey(context.db, file.key);
  return templateTransaction(context.db, board_id ?? NEW_BOARDS, async (db) => {
    // It was created or deleted while this waited for the lock.
    if ((await findBoardWithKey(db, file.key)) !== board_id) throw outdated();
    const { plan, draft, changes } = await compare(db, file, board_id);
    if (required != null && required !== plan) throw outdated();

    const id = await writeDraft({ ...context, db }, draft, file);
    const counts = FILE_CHANGES.map((change) => [
      `${change}_count`,
      changes.filter((row) => row.change === change).length,
    ]);
    return { board_id: id, ...Object.fromEntries(counts) };
  });
}

/** Files that create a board wait for each other: no board has this id. */
const NEW_BOARDS = 0;

const outdated = () =>
  invalid(
    { plan: 'is outdated: the master board has changed since, or the file is another one. Plan again' },
    'unknown_reference',
  );

/** The rows of the file, with sanitised descriptions. */
export const sanitiseTemplate = preparation(async (_: object, { template }: { template: TemplateFile }) => {
  const { groups = [], key, ...board } = template.board;
  const errors: Record<string, string> = {};
  const file = fileRow('board', key, board);
  for (const [at, { cards = [], key, ...group }] of groups.entries()) {
    const inGroup = fileRow('group', key, group);
    file.rows.push(inGroup);
    for (const [place, card] of cards.entries()) {
      const { html, error } = await sanitiseDescription({}, { description: card.description ?? null });
      if (error) errors[`template.board.groups.${at}.cards.${place}.description`] = error;
      inGroup.rows.push(fileRow('card', card.key, { ...card, description: html }));
    }
  }
  if (Object.keys(errors).length > 0) throw invalid(errors);
  return file;
});

/** Compares the file with the draft of its board. The plan is a digest of both. */
async function compare(db: Db, file: FileRow, board_id: number | null) {
  const draft = board_id === null ? undefined : await readDraft(db, board_id);
  await mustBeOwnCards(db, file, draft);
  const digest = createHash('sha256').update(JSON.stringify([draft ?? null, file]));
  return { draft, changes: changesOf(draft, file), plan: digest.digest('hex').slice(0, 32) };
}

/** A card does not move between master boards: its copies would stay on the old one. */
async function mustBeOwnCards(db: Db, file: FileRow, draft: DraftRow | undefined): Promise<void> {
  const keys = file.rows.flatMap(({ rows }) => rows.map(({ key }) => key));
  const groups = draft?.rows.map(({ id }) => id) ?? [];
  const found = await query(
    db,
    sql<{ key: string }>`
      select unique_identifier as key from cards c where is_master and ${isLiveCard('c')}
        and unique_identifier = any(${keys}::text[]) and group_id <> all(${groups}::int[])`,
  );
  if (found.length === 0) return;
  const taken = new Set(found.map(({ key }) => key));
  const errors = file.rows.flatMap(({ rows }, at) =>
    rows.flatMap(({ key }, place) =>
      taken.has(key)
        ? [[`template.board.groups.${at}.cards.${place}.key`, `belongs to another master board: ${key}`]]
        : [],
    ),
  );
  throw invalid(Object.fromEntries(errors), 'already_exists');
}
