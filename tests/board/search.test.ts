import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { pagesOf } from '../harness/pages.ts';
import { givenCard, givenMasterBoard, givenWorld, type TestProject, testDb } from '../harness/world.ts';

/** Cards with the sort orders from 1; those listed have the text. */
async function givenCards({ id, platform_id }: TestProject, count: number, text: string, having: number[]) {
  await query(
    await testDb(),
    sql`
      insert into cards (project_id, platform_id, title, sort_order)
      select ${id}, ${platform_id}, case when n = any(${having}::int[]) then ${text} else 'x' end, n
      from generate_series(1, ${count}::int) as n`,
  );
}

describe('a search', () => {
  it('looks in titles and descriptions of the cards of this project, copies of master cards included', async () => {
    const { asViewer, project, otherProject } = await givenWorld();
    const { card: master_card_id } = await givenMasterBoard();
    const text = { short_description: 'Blue Whale', description: '<p>Ωmega</p>' };
    const own = await givenCard(project, { title: 'Own', sort_order: 1, ...text });
    const copy = await givenCard(project, { title: 'Copy', sort_order: 2, master_card_id, ...text });
    const special = await givenCard(project, { title: '100% done_now', sort_order: 3 });
    await givenCard(project, { title: 'Gone', deleted_at: new Date(), ...text });
    await givenCard(otherProject, text);
    const found = async (text: string) => (await asViewer.rpc.cards.list.query({ text })).cards.map(({ id }) => id);

    for (const part of ['blue', 'e w', 'LE <P>ωME', 'ga', 'Ω', '>']) expect(await found(part)).toEqual([own, copy]);
    expect(await found('own blue')).toEqual([own]);
    expect(await found('blue copy')).toEqual([]);
    for (const part of ['0% d', 'e_n']) expect(await found(part)).toEqual([special]);
    for (const part of ['\\', 'l%w', 'n_w b']) expect(await found(part)).toEqual([]);
  });

  it('finds matches beyond the first 1,000 cards, each once and in order, with any page size', async () => {
    const { asViewer, project } = await givenWorld();
    const matching = [2, 3, 999, 1000, 1001, 1900];
    await givenCards(project, 2000, 'A needle', matching);

    for (const limit of [1, 4, 6]) {
      const pages = await pagesOf((cursor) => asViewer.rpc.cards.list.query({ text: 'needle', limit, cursor }));
      const found = pages.flatMap(({ cards }) => cards.map(({ sort_order }) => sort_order));
      expect(found, `pages of ${limit}`).toEqual(matching);
    }
  });

  it('for text too short for the index reads 5,000 cards per page', async () => {
    const { asViewer, project } = await givenWorld();
    await givenCards(project, 5500, 'zq', [5400]);

    const pages = await pagesOf((cursor) => asViewer.rpc.cards.list.query({ text: 'ZQ', cursor }));

    expect(pages.map(({ cards }) => cards.map(({ sort_order }) => sort_order))).toEqual([[], [5400]]);
  });
});
