import { Migration } from '@mikro-orm/migrations';

export class Migration20261115100300_run_progress extends Migration {
  override name = 'Migration20261115100300_run_progress';

  override up(): void {
    this.addSql(
      `alter table "template_runs" add "progressed_at" timestamptz(3) not null default now(), add "interrupted_at" timestamptz(3) null;`,
    );
    this.addSql(`update "template_runs" set "progressed_at" = coalesce("finished_at", "started_at");`);
    this.addSql(
      `alter table "template_runs" add constraint "template_runs_end_check" check (finished_at is null or interrupted_at is null);`,
    );
  }
}
