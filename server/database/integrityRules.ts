import { type EntityMetadata, type MikroORM, ReferenceKind } from '@mikro-orm/core';
import { type RawBuilder, sql } from 'kysely';
import { LARGEST_INTEGER } from '../../shared/limits.ts';
import { allOf } from './query.ts';
import { TENANT_KEYS } from './tenantKeys.ts';

/** What every row of a table must meet. */
export type Rule = {
  table: string;
  /** A database of an earlier version may lack them. */
  columns: string[];
  /** Of a wrong row: `cards.group_id refers to …`. */
  problem: string;
  whatToDo: string;
  /** Of a wrong row `t`. */
  isWrong: RawBuilder<boolean>;
};

/** What the entities and the composite foreign keys say, and what no constraint can say. Check constraints are rules, too. */
export function integrityRules(orm: MikroORM): Rule[] {
  const entities = [...orm.getMetadata().getAll().values()];
  return [
    ...entities.flatMap(referenceRules),
    ...tenantRules(entities),
    ...entities.flatMap(positionRules),
    ...TEMPLATES.flatMap(templateRules),
    ...OTHERS,
  ];
}

type Reference = { table: string; column: string; target: string };

const referencesOf = ({ tableName, props }: EntityMetadata): Reference[] =>
  props
    .filter(({ kind }) => kind === ReferenceKind.MANY_TO_ONE)
    .map(({ fieldNames, targetMeta }) => ({
      table: tableName,
      column: fieldNames[0]!,
      target: targetMeta!.tableName,
    }));

const isOrphan = ({ column, target }: Reference) =>
  sql<boolean>`t.${sql.ref(column)} is not null and not exists (select from ${sql.table(target)} p where p.id = t.${sql.ref(column)})`;

const referenceRules = (entity: EntityMetadata): Rule[] =>
  referencesOf(entity).map((reference) => ({
    table: reference.table,
    columns: [reference.column],
    problem: `${reference.table}.${reference.column} refers to ${reference.target} that do not exist`,
    whatToDo: `Bring the missing ${reference.target} back from a backup, or clear ${reference.column}, or delete these rows.`,
    isWrong: isOrphan(reference),
  }));

/** Both rows exist, but don't belong together. */
function tenantRules(entities: EntityMetadata[]): Rule[] {
  const references = entities.flatMap(referencesOf);
  return Object.entries(TENANT_KEYS).map(([name, { table, columns, target, key, problem }]) => {
    const known = references.filter((reference) => reference.table === table && columns.includes(reference.column));
    const isSame = key.map((column, at) => sql`p.${sql.ref(column)} = t.${sql.ref(columns[at]!)}`);
    const conditions = [
      ...columns.map((column) => sql`t.${sql.ref(column)} is not null`),
      ...known.map((reference) => sql`not (${isOrphan(reference)})`),
      sql`not exists (select from ${sql.table(target)} p where ${allOf(isSame)})`,
    ];
    return {
      table,
      columns,
      problem: `${table}.${columns.join(', ')}: ${problem} (${name})`,
      whatToDo: 'Correct these columns, so that both rows belong to the same tenant.',
      isWrong: sql<boolean>`${allOf(conditions)}`,
    };
  });
}

const positionRules = ({ tableName, props }: EntityMetadata): Rule[] =>
  props
    .filter(({ name }) => name === 'position' || name === 'sort_order')
    .map(({ name }) => ({
      table: tableName,
      columns: [name],
      problem: `${tableName}.${name} is at the end of its range, so that no row fits before or behind it`,
      whatToDo: 'Move these rows: reorder them, or set another number.',
      isWrong: sql<boolean>`t.${sql.ref(name)} in (${sql.lit(-LARGEST_INTEGER - 1)}, ${sql.lit(LARGEST_INTEGER)})`,
    }));

/** Where rows refer to templates. */
const TEMPLATES: Reference[] = [
  { table: 'boards', column: 'master_board_id', target: 'boards' },
  { table: 'groups', column: 'master_group_id', target: 'groups' },
  { table: 'cards', column: 'master_card_id', target: 'cards' },
  { table: 'template_runs', column: 'board_id', target: 'boards' },
  { table: 'template_runs', column: 'group_id', target: 'groups' },
  { table: 'template_runs', column: 'card_id', target: 'cards' },
];

const templateRules = ({ table, column, target }: Reference): Rule[] => [
  {
    table,
    columns: [column],
    problem: `${table}.${column} refers to ${target} that are no templates`,
    whatToDo:
      table === 'template_runs' ? 'Delete these runs.' : `Clear ${column}: they are then rows of their project only.`,
    isWrong: sql<boolean>`exists (select from ${sql.table(target)} p where p.id = t.${sql.ref(column)} and not p.is_master)`,
  },
];

const OTHERS: Rule[] = [
  {
    table: 'comments',
    columns: ['root_comment_id', 'depth'],
    problem: 'comments.root_comment_id and depth do not follow from the parent',
    whatToDo: 'Set them to those of the parent: the same first comment, and one level deeper.',
    isWrong: sql<boolean>`exists (
      select from comments p where p.id = t.parent_comment_id
        and (coalesce(p.root_comment_id, p.id), p.depth + 1) is distinct from (t.root_comment_id, t.depth))`,
  },
  {
    table: 'theme_versions',
    columns: ['replacement_version_id'],
    problem: 'theme_versions.replacement_version_id refers to a version of another theme',
    whatToDo: 'Clear replacement_version_id.',
    isWrong: sql<boolean>`exists (
      select from theme_versions p where p.id = t.replacement_version_id and p.theme_id <> t.theme_id)`,
  },
];
