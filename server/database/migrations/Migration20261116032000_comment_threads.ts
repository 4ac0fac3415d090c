import { Migration } from '@mikro-orm/migrations';

/**
 * Each reply knows the first comment of its thread and how deep it is, so that no statement follows parents one by one. Nodes of
 * the previous version insert replies without these columns: the trigger fills them.
 */
export class Migration20261116032000_comment_threads extends Migration {
  override name = 'Migration20261116032000_comment_threads';

  override up(): void {
    this.addSql(
      `alter table "comments" add column "root_comment_id" int null, add column "depth" int not null default 0;`,
    );
    // The table by its own name and schema: the search path may find another one. Existing parents may not be filled yet.
    this.addSql(`
      create function comments_fill_thread() returns trigger language plpgsql as $$
      declare
        above record;
        above_id int := new.parent_comment_id;
        levels int := 0;
      begin
        loop
          execute format('select parent_comment_id, root_comment_id, depth from %I.%I where id = $1', tg_table_schema, tg_table_name)
            into above using above_id;
          levels := levels + 1;
          exit when above.parent_comment_id is null or above.root_comment_id is not null;
          above_id := above.parent_comment_id;
        end loop;
        new.root_comment_id := coalesce(above.root_comment_id, above_id);
        new.depth := coalesce(above.depth, 0) + levels;
        return new;
      end $$;`);
    this.addSql(
      `create trigger comments_fill_thread before insert on comments for each row when (new.parent_comment_id is not null and new.root_comment_id is null) execute function comments_fill_thread();`,
    );
  }
}
