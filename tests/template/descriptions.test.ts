import { describe, expect, it } from 'vitest';
import { refusalOf } from '../harness/caller.ts';
import { givenTemplate, hideEarlierProjects } from '../harness/template.ts';
import { givenCard, givenMasterBoard, givenWorld, stored } from '../harness/world.ts';

const NOTHING_LEFT = 'description has only HTML that is not allowed: nothing is left of it.';
const REFUSED = [
  ['<b>'.repeat(101), 'description must not nest deeper than 100 elements.'],
  ['<br>'.repeat(3001), 'description must not contain more than 3000 of the characters < and &.'],
  [' <script>x()</script> ', NOTHING_LEFT],
  ['<!-- later -->', NOTHING_LEFT],
] as const;

hideEarlierProjects();

async function givenCopy() {
  const world = await givenWorld();
  const { card: master_card_id } = await givenMasterBoard();
  return { ...world, id: await givenCard(world.project, { master_card_id, description: '<p>Before</p>' }) };
}

describe('the description of a regular card', () => {
  it('is plain text, stored as sent, trimmed at its ends, and null if it is empty then', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const { cards } = asMember.rpc;

    for (const [description, expected] of [
      ['Use vector<int> and map<string, int>'],
      ['&lt;b&gt; stays, a & b <'],
      ['<p onclick="x()">Hi</p><script>alert(1)</script>'],
      ['<script>alert(1)</script>'],
      ['<br>'.repeat(3001)],
      ['<b>'.repeat(101)],
      [' <p>\n  a\n ', '<p>\n  a'],
      [' \n ', null],
    ] as [string, (string | null)?][]) {
      const { card: created } = await cards.create.mutate({ title: 'x', description });
      const { card: updated } = await cards.update.mutate({ id, description });
      for (const card of [created, updated])
        expect(card.description).toBe(expected === undefined ? description : expected);
    }
  });
});

describe('the description of a copy of a master card', () => {
  it('is sanitised HTML when a project changes it, and cleared by null and by an empty text', async () => {
    const { asMember, id } = await givenCopy();
    const update = async (description: string | null) =>
      (await asMember.rpc.cards.update.mutate({ id, description, short_description: '<b>' })).card;

    expect(
      await update('a < b <script>x()</script><p onclick="x()" class="y">Hi</p><img src=x onerror=y>'),
    ).toMatchObject({ description: 'a &lt; b <p class="y">Hi</p><img src="x" />', short_description: '<b>' });
    expect(await update(' ')).toMatchObject({ description: null });
    await update('x');
    expect(await update(null)).toMatchObject({ description: null });
  });

  it('422 for HTML that is not accepted, and nothing changes', async () => {
    const { asMember, id } = await givenCopy();

    for (const [description, message] of REFUSED) {
      const refused = await refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'After', description }));
      expect(refused).toMatchObject({ status: 422, errors: { description: [message] } });
    }
    expect(await stored('cards', id)).toMatchObject({ title: 'A card', description: '<p>Before</p>' });
  });
});

describe('the description of a master card', () => {
  it('422 for HTML that is not accepted, when created and when updated, and nothing changes', async () => {
    const { asSuperadmin } = await givenWorld();
    const { group: group_id, card: id } = await givenMasterBoard({ card: { description: '<p>1</p>' } });
    const { masterCards } = asSuperadmin.rpc;

    for (const [description, message] of REFUSED)
      for (const call of [
        () => masterCards.create.mutate({ group_id, title: 'x', description }),
        () => masterCards.update.mutate({ id, title: 'x', description }),
      ])
        expect(await refusalOf(call())).toMatchObject({ status: 422, errors: { description: [message] } });
    expect(await stored('cards', id)).toMatchObject({ title: 'A card', description: '<p>1</p>' });
  });

  it('is sanitised, and keeps everyday markup, in its copies, too', async () => {
    const { asSuperadmin, groups, projects } = await givenTemplate();
    const markup =
      '<details open><summary id="more">More</summary><p class="note" style="text-align:center">Call <a href="tel:+491234">us</a></p></details>';

    const { card } = await asSuperadmin.rpc.masterCards.create.mutate({
      group_id: groups[0],
      title: 'x',
      description: `${markup}<script>x()</script>`,
      push_to_projects: true,
    });
    const { cards } = await asSuperadmin.in(projects[0].id).rpc.cards.list.query({ text: 'summary' });

    expect(card.description).toBe(markup);
    expect(cards).toMatchObject([{ master_card_id: card.id, description: markup }]);
  });
});
