/** What a plan says: which tables it scans, how it looks others up, and how many rows it reads. Nothing depends on cost units. */

export type Plan = {
  'Node Type': string;
  'Plan Rows': number;
  'Parent Relationship'?: string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Filter?: string;
  Plans?: Plan[];
};

/** How many rows a table has. */
export type Sizes = Map<string, number>;

/** Indexes of few rows: a scan of all of one is cheap. */
const PARTIAL = ['boards_master_index', 'groups_clearing_index', 'users_superadmins_index'];

/** The conditions by which a table is looked up in its indexes. */
export function lookupsIn(plan: Plan, table: string): string[] {
  const { 'Relation Name': name, 'Index Cond': condition, Plans = [] } = plan;
  return [
    ...(name === table && condition !== undefined ? [condition] : []),
    ...Plans.flatMap((inner) => lookupsIn(inner, table)),
  ];
}

/** The tables that are read without a condition. A scan of a whole index counts, too. */
export function scannedIn(plan: Plan, sizes: Sizes): string[] {
  const { 'Relation Name': table = '', Plans = [] } = plan;
  const inner = Plans.filter((one) => !isFirstRow(plan, one, sizes));
  return [...(isScan(plan) ? [table] : []), ...inner.flatMap((one) => scannedIn(one, sizes))];
}

function isScan({ 'Node Type': type, 'Index Name': index = '', 'Index Cond': condition }: Plan): boolean {
  return (
    type === 'Seq Scan' || (/^Index (Only )?Scan$/.test(type) && !isCondition(condition) && !PARTIAL.includes(index))
  );
}

/** PostgreSQL looks for `min(id)` where it is not null, and leaves that out from version 17 on if the column never is. */
const isCondition = (text?: string) => text !== undefined && !/^\(\S+ IS NOT NULL\)$/.test(text);

/** `min(id)` reads one row from the beginning of an index, if most rows pass its filter. */
function isFirstRow(limit: Plan, scan: Plan, sizes: Sizes): boolean {
  const isOne =
    limit['Node Type'] === 'Limit' && limit['Parent Relationship'] === 'InitPlan' && limit['Plan Rows'] === 1;
  const passed = scan['Plan Rows'] / (sizes.get(scan['Relation Name'] ?? '') ?? Number.POSITIVE_INFINITY);
  return isOne && /^Index (Only )?Scan$/.test(scan['Node Type']) && passed > 0.5;
}

/** How many rows it is expected to read, `times` times. */
export function rowsRead(plan: Plan, sizes: Sizes, times = 1): number {
  const { Plans = [] } = plan;
  const inner = Plans.map((one) => rowsRead(one, sizes, times * repeatsOf(one, plan)));
  return inner.reduce((sum, rows) => sum + rows, times * ownRows(plan, sizes));
}

/** What a filter leaves out is read, too. For a range of unknown values, the planner expects a third of the table. */
function ownRows(plan: Plan, sizes: Sizes): number {
  const { 'Node Type': type, 'Relation Name': table = '', 'Index Name': index = '', 'Index Cond': condition } = plan;
  if (!type.endsWith('Scan') || !sizes.has(table)) return 0;
  const isUnbound = plan.Filter !== undefined && !/[^<>]= /.test(condition ?? '') && !PARTIAL.includes(index);
  const range = type.startsWith('Bitmap') || !isUnbound ? 0 : isCondition(condition) ? 1 / 3 : 1;
  return Math.max(plan['Plan Rows'], range * sizes.get(table)!);
}

/** How often a node runs each time that its parent does; less than once if the parent stops it early. */
function repeatsOf(plan: Plan, parent: Plan): number {
  const { 'Node Type': type, 'Parent Relationship': relationship } = plan;
  const [outer] = parent.Plans!;
  if (relationship === 'SubPlan') return Math.max(1, parent['Plan Rows']);
  if (parent['Node Type'] === 'Nested Loop' && relationship === 'Inner')
    return type === 'Materialize' ? 1 : outer!['Plan Rows'];
  if (parent['Node Type'] === 'Limit' && !/Sort|Aggregate/.test(type))
    return Math.min(1, parent['Plan Rows'] / plan['Plan Rows']);
  return 1;
}
