import type { TemplateFileChange } from '../../../shared/templateFile.ts';
import { type DraftRow, type FileRow, rowsByKey } from './templateFileRows.ts';

/** What the file does to the draft, in the order of the file; what it deletes follows. */
export function changesOf(draft: DraftRow | undefined, file: FileRow): TemplateFileChange[] {
  const before = rowsByKey<FileRow>(draft);
  const after = rowsByKey(file);
  const movedGroups = movesIn(draft, file);
  return [
    ...changesOfRow(draft, file),
    ...file.rows.flatMap((group) => {
      const oldGroup = before.groups.get(group.key);
      const movedCards = movesIn(oldGroup, group);
      return [
        ...changesOfRow(oldGroup, group, movedGroups.get(group.key)),
        ...group.rows.flatMap((card) => {
          const old = before.cards.get(card.key);
          const isJoining = old !== undefined && old.group.key !== group.key;
          const joining = { field: 'group', before: old?.group.key, after: group.key };
          return changesOfRow(old?.card, card, isJoining ? joining : movedCards.get(card.key));
        }),
      ];
    }),
    ...[...before.groups.values()]
      .filter(({ key }) => !after.groups.has(key))
      .map((group) => changeOf(group, 'deleted')),
    ...[...before.cards.values()]
      .filter(({ card }) => !after.cards.has(card.key))
      .map(({ card }) => changeOf(card, 'deleted')),
  ];
}

type FieldChange = TemplateFileChange['fields'][number];

function changesOfRow(before: FileRow | undefined, after: FileRow, move?: FieldChange): TemplateFileChange[] {
  if (!before) return [changeOf(after, 'created')];
  const fields = changedFields(before, after);
  return [
    ...(fields.length > 0 ? [changeOf(after, 'changed', fields)] : []),
    ...(move ? [changeOf(after, 'moved', [move])] : []),
  ];
}

export const changedFields = (before: FileRow, after: FileRow): FieldChange[] =>
  Object.keys(after.content)
    .filter((field) => before.content[field] !== after.content[field])
    .map((field) => ({ field, before: before.content[field], after: after.content[field] }));

const changeOf = (
  { noun, key, content }: FileRow,
  change: TemplateFileChange['change'],
  fields: FieldChange[] = [],
): TemplateFileChange => ({ noun, key, title: content.title, change, fields });

/** The rows with another place among the siblings that stay, by their keys: as few as explain the new order. */
function movesIn(before: FileRow | undefined, after: FileRow): Map<string, FieldChange> {
  const places = new Map(before?.rows.map(({ key }, at) => [key, at + 1]));
  const kept = after.rows.flatMap(({ key }, at) => {
    const place = places.get(key);
    return place === undefined ? [] : [{ key, before: place, after: at + 1 }];
  });
  const inOrder = longestInOrder(kept.map(({ before }) => before));
  const moved = kept.filter(({ before }) => !inOrder.has(before));
  return new Map(moved.map(({ key, before, after }) => [key, { field: 'position', before, after }]));
}

/** The longest part of a list of different numbers that is in ascending order. */
function longestInOrder(list: readonly number[]): Set<number> {
  type Part = { value: number; length: number; previous: Part | undefined };
  const parts: Part[] = [];
  let longest: Part | undefined;
  for (const value of list) {
    let previous: Part | undefined;
    for (const part of parts) if (part.value < value && part.length > (previous?.length ?? 0)) previous = part;
    const part = { value, length: (previous?.length ?? 0) + 1, previous };
    parts.push(part);
    if (part.length > (longest?.length ?? 0)) longest = part;
  }
  const found = new Set<number>();
  for (let part = longest; part; part = part.previous) found.add(part.value);
  return found;
}
