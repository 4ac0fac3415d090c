import { StepwiseMigration } from '../stepwiseMigration.ts';

export class Migration20261115100300_run_progress extends StepwiseMigration {
  override name = 'Migration20261115100300_run_progress';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "template_runs" add column if not exists "progressed_at" timestamptz(3) not null default now(),
      add column if not exists "interrupted_at" timestamptz(3) null`,
    );
    await this.inBatches('template_runs', (run, first, last) =>
      run(
        `update "template_runs" set "progressed_at" = coalesce("finished_at", "started_at")
        where id between ? and ? and "progressed_at" <> coalesce("finished_at", "started_at")`,
        [first, last],
      ),
    );
    await this.addConstraint(
      'template_runs',
      'template_runs_end_check',
      'check (finished_at is null or interrupted_at is null)',
    );
  }
}
