import { Migration } from '@mikro-orm/migrations';

export class Migration20261115180335_template_pushes extends Migration {
  override name = 'Migration20261115180335_template_pushes';

  override up(): void {
    this.addSql(`alter table "boards" add "brought" jsonb null;`);
    this.addSql(`alter table "groups" add "brought" jsonb null;`);
    this.addSql(`alter table "template_runs" drop constraint "template_runs_kind_check";`);
    this.addSql(
      `alter table "template_runs" add "group_id" int null, add "projects_total" int not null default 0, add "projects_done" int not null default 0, add "boards_updated" int not null default 0, add "groups_updated" int not null default 0;`,
    );
    this.addSql(
      `alter table "template_runs" add constraint "template_runs_group_id_foreign" foreign key ("group_id") references "groups" ("id") on update no action on delete no action;`,
    );
    this.addSql(
      `create index "template_runs_group_id_index" on "template_runs" ("group_id") where group_id is not null;`,
    );
    this.addSql(
      `alter table "template_runs" add constraint "template_runs_kind_group_check" check ((kind = 'push_group') = (group_id is not null));`,
    );
    this.addSql(
      `alter table "template_runs" add constraint "template_runs_kind_check" check ("kind" in ('sync', 'push', 'push_board', 'push_group'));`,
    );
    this.addSql(`alter table "template_outcomes" drop constraint "template_outcomes_reason_check";`);
    this.addSql(
      `alter table "template_outcomes" add "boards_updated" int not null default 0, add "groups_updated" int not null default 0;`,
    );
    this.addSql(
      `alter table "template_outcomes" add constraint "template_outcomes_reason_check" check ("reason" in ('no_access', 'deleted_by_project', 'inactive'));`,
    );
    this.addSql(
      `update "template_runs" r set "projects_total" = o.count, "projects_done" = o.count
      from (select run_id, count(*) as count from "template_outcomes" group by run_id) as o where o.run_id = r.id;`,
    );
  }
}
