import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Stores where calls without a project go until now, so that a further membership does not change it. */
export class Migration20261116030943_keep_default_projects extends StepwiseMigration {
  override name = 'Migration20261116030943_keep_default_projects';

  override async up(): Promise<void> {
    await this.inBatches('users', (run, first, last) =>
      run(
        `update "users" u set "default_project_id" = first.id
        from (
          select m.user_id, min(p.id) as id from "members" m join "projects" p on p.id = m.project_id and p.is_active
          where m.user_id between ? and ? group by m.user_id
        ) first where first.user_id = u.id and u.default_project_id is null`,
        [first, last],
      ),
    );
  }
}
