import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261115180335_template_pushes extends StepwiseMigration {
  override name = 'Migration20261115180335_template_pushes';

  override async up(): Promise<void> {
    for (const table of ['boards', 'groups']) {
      await this.inTransaction(`alter table "${table}" add column if not exists "brought" jsonb null`);
    }
    await this.inTransaction(
      `alter table "template_runs" add column if not exists "group_id" int null,
      add column if not exists "projects_total" int not null default 0,
      add column if not exists "projects_done" int not null default 0,
      add column if not exists "boards_updated" int not null default 0,
      add column if not exists "groups_updated" int not null default 0`,
    );
    await this.addConstraint(
      'template_runs',
      'template_runs_group_id_foreign',
      'foreign key ("group_id") references "groups" ("id") on update no action on delete no action',
    );
    await this.createIndex(
      'template_runs_group_id_index',
      'on "template_runs" ("group_id") where group_id is not null',
    );
    await this.addConstraint(
      'template_runs',
      'template_runs_kind_group_check',
      `check ((kind = 'push_group') = (group_id is not null))`,
    );
    await this.addConstraint(
      'template_runs',
      'template_runs_kind_check',
      `check ("kind" in ('sync', 'push', 'push_board', 'push_group'))`,
    );
    await this.inTransaction(
      `alter table "template_outcomes" add column if not exists "boards_updated" int not null default 0,
      add column if not exists "groups_updated" int not null default 0`,
    );
    await this.addConstraint(
      'template_outcomes',
      'template_outcomes_reason_check',
      `check ("reason" in ('no_access', 'deleted_by_project', 'inactive'))`,
    );
    await this.inBatches('template_runs', (run, first, last) =>
      run(
        `update "template_runs" r set "projects_total" = o.count, "projects_done" = o.count
        from (
          select run_id, count(*) as count from "template_outcomes" where run_id between ? and ? group by run_id
        ) as o where o.run_id = r.id and r.projects_total = 0`,
        [first, last],
      ),
    );
  }
}
