import { StepwiseMigration } from '../stepwiseMigration.ts';

/** Whose right to the events of a webhook counts, and what is sent again. */
export class Migration20261117400000_webhook_rights extends StepwiseMigration {
  override name = 'Migration20261117400000_webhook_rights';

  override async up(): Promise<void> {
    await this.inTransaction(
      `alter table "webhooks" add column if not exists "resend_events" bigint[] null, add column if not exists "redelivery_ends_at" timestamptz(3) null, add column if not exists "key_id" int null, add column if not exists "right_lost_at" timestamptz(3) null`,
    );
    await this.createIndex(
      'webhooks_redelivery_index',
      'on "webhooks" ("redelivery_ends_at") where redelivery_ends_at is not null',
    );
    // These go on for a while: their owners may not know that nobody answers for them.
    await this.inBatches('webhooks', (run, first, last) =>
      run(
        `update webhooks w set right_lost_at = now()
          where id between ? and ? and is_active and right_lost_at is null and created_by is not null and not exists (
            select from users u where u.id = w.created_by and u.is_active and (u.superadmin or exists (
              select from members m where m.project_id = w.project_id and m.user_id = u.id and m.role = 'owner')))`,
        [first, last],
      ),
    );
  }
}
