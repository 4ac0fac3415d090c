import { StepwiseMigration } from '../stepwiseMigration.ts';

type Reply = { id: number; parent_id: number; is_below_first: boolean; root_comment_id: number | null; depth: number };
type Place = { root_comment_id: number; depth: number };

/** Fills the thread of existing replies, parents first. In steps by id and not by recursion, so that long chains take no longer. */
export class Migration20261116032001_fill_comment_threads extends StepwiseMigration {
  override name = 'Migration20261116032001_fill_comment_threads';

  override async up(): Promise<void> {
    // Again for replies with a smaller id than their parent.
    while (await this.fillAll());
  }

  /** Returns whether it filled any. */
  private async fillAll(): Promise<boolean> {
    let hasFilled = false;
    for (let rows = await this.repliesAfter(0); rows.length > 0; rows = await this.repliesAfter(rows.at(-1)!.id)) {
      const places = new Map<number, Place>();
      for (const { id, parent_id, is_below_first, root_comment_id, depth } of rows) {
        const first = is_below_first ? { root_comment_id: parent_id, depth: 0 } : undefined;
        const parent = root_comment_id === null ? (places.get(parent_id) ?? first) : { root_comment_id, depth };
        if (parent) places.set(id, { root_comment_id: parent.root_comment_id, depth: parent.depth + 1 });
      }
      const filled = [...places].map(([id, place]) => ({ id, ...place }));
      await this.transact((run) =>
        run(
          `update comments c set root_comment_id = filled.root_comment_id, depth = filled.depth
        from jsonb_to_recordset(cast(? as jsonb)) as filled (id int, root_comment_id int, depth int) where c.id = filled.id`,
          [JSON.stringify(filled)],
        ),
      );
      hasFilled ||= filled.length > 0;
    }
    return hasFilled;
  }

  private async repliesAfter(id: number): Promise<Reply[]> {
    const rows = await this.execute(
      // The step first, so that only its rows are joined.
      `select c.id, c.parent_id, p.parent_comment_id is null as is_below_first, p.root_comment_id, p.depth
      from (
        select id, parent_comment_id as parent_id from comments
        where id > ? and parent_comment_id is not null and root_comment_id is null order by id limit 1000
      ) as c join comments p on p.id = c.parent_id order by c.id`,
      [id],
    );
    return rows as Reply[];
  }
}
