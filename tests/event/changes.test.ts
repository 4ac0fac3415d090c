import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { findProcedure } from '../../server/api/procedures.ts';
import { query } from '../../server/database/query.ts';
import { effectOf } from '../harness/effects.ts';
import { withOwnDatabase } from '../harness/service.ts';
import { overRpc } from '../harness/surfaces.ts';
import { testDb, type World } from '../harness/world.ts';
import { givenFullCall } from '../operation/fullCalls.ts';

withOwnDatabase();

const insert = async (rows: ReturnType<typeof sql>) => query(await testDb(), rows);

describe('rows that an event names besides its subject', () => {
  it('are counted above 1,000: cards of a deleted tag, and of a removed member', async () => {
    const cards = (tag: unknown, owner: unknown, { project }: World) =>
      insert(sql`
        insert into cards (project_id, platform_id, title, tag_id, owner_id)
        select ${project.id}, ${project.platform_id}, 'A card', ${tag}::int, ${owner}::int from generate_series(1, 1001)`);

    for (const name of ['tags.delete', 'members.remove']) {
      const procedure = findProcedure(name)!;
      const { world, caller, input } = await givenFullCall(procedure);
      await cards(input.id ?? null, input.user_id ?? null, world);

      const { uncounted, events } = await effectOf(() => overRpc(caller, procedure, input));

      expect(uncounted).toEqual([]);
      expect(events.at(-1)!.data).toMatchObject({ count: 1003 });
      expect(events.at(-1)!.data).not.toHaveProperty('ids');
    }
  });
});
