import { StepwiseMigration } from '../stepwiseMigration.ts';

const FIELDS = {
  boards: ['title', 'description', 'tool_key', 'is_active'],
  groups: ['title', 'description', 'type', 'color', 'icon', 'is_active', 'position'],
};

/**
 * What was brought to existing copies is not recorded. A copy that was never changed has it still. Of another one, the fields
 * that differ from the template count as changed by the project: nothing that a project wrote is overwritten.
 */
export class Migration20261115180336_fill_brought extends StepwiseMigration {
  override name = 'Migration20261115180336_fill_brought';

  override async up(): Promise<void> {
    for (const table of ['boards', 'groups'] as const) {
      const template = `master_${table.slice(0, -1)}_id`;
      const valuesOf = (alias: string) =>
        `jsonb_build_object(${FIELDS[table].map((field) => `'${field}', ${alias}.${field}`).join(', ')})`;
      await this.inBatches(table, (run, first, last) =>
        run(
          `update ${table} c set brought = case when c.updated_at = c.created_at then ${valuesOf('c')} else ${valuesOf('m')} end
          from ${table} m where m.id = c.${template} and c.brought is null and c.id between ? and ?`,
          [first, last],
        ),
      );
    }
  }
}
