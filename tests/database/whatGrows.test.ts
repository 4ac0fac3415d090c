import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { entities } from '../../server/database/entities.ts';
import { removalsOf } from '../../server/domain/removal/removals.ts';
import { SETTINGS } from '../../server/runtime/env.ts';

const guide = readFileSync(join(import.meta.dirname, '../../docs/operating.md'), 'utf8');
const [, section = ''] = guide.split('## What grows');
const rows = new Map(
  [...section.split('\n## ')[0]!.matchAll(/^\| `(\w+)` +\|.*\| (.*?) *\|$/gm)].map(
    ([, ...row]) => row as [string, string],
  ),
);

describe('the table of what grows', () => {
  it('names every table once', () => {
    const tables = [...entities.map(({ meta }) => meta.tableName), 'write_positions'];

    expect([...rows.keys()].toSorted()).toEqual(tables.toSorted());
  });

  it('says what removes the rows of each table that is removed from, by settings that exist', () => {
    const all = removalsOf({
      TEMPLATE_RUNS_KEPT_DAYS: 1,
      EVENTS_KEPT_DAYS: 30,
      AUDIT_KEPT_DAYS: 365,
      CHECKOUTS_KEPT_DAYS: 90,
      DELETED_ROWS_KEPT_DAYS: 1,
    });
    const removed = new Set(all.flatMap(({ table, contents }) => (contents ? [table, contents.table] : [table])));
    const named = [...rows.values()].flatMap((text) => [...text.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name!));

    expect([...removed].filter((table) => /^nothing/.test(rows.get(table) ?? 'nothing'))).toEqual([]);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !SETTINGS.includes(name))).toEqual([]);
  });
});
