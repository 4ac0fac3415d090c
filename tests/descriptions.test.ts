import { describe, expect, it } from 'vitest';
import { refusalOf } from './harness/caller.ts';
import { givenTemplate } from './harness/template.ts';
import { givenCard, givenMasterBoard, givenWorld, stored } from './harness/world.ts';

const CREATE = '/services/operations/v1/operations/cards/create';
const CREATE_MASTER = '/services/operations/v1/admin/master-cards/create';

const NOTHING_LEFT = 'description has only HTML that is not allowed: nothing is left of it.';
const REFUSED = [
  ['deep HTML', '<b>'.repeat(101), 'description must not nest deeper than 100 elements.'],
  ['many tags', '<br>'.repeat(3001), 'description must not contain more than 3000 of the characters < and &.'],
  ['only a script', ' <script>x()</script> ', NOTHING_LEFT],
  ['only a comment', '<!-- later -->', NOTHING_LEFT],
] as const;

async function givenCopy() {
  const world = await givenWorld();
  const { card: master_card_id } = await givenMasterBoard();
  return { ...world, id: await givenCard(world.project, { master_card_id, description: '<p>Before</p>' }) };
}

describe('the description of a regular card', () => {
  it.each([
    ['generic types', 'Use vector<int> and map<string, int>'],
    ['an address', 'See <https://example.com>'],
    ['a mark', '<TODO> fix'],
    ['entities', '&lt;b&gt; stays, a & b <'],
    ['a script', '<p onclick="x()">Hi</p><script>alert(1)</script>'],
    ['only a script', '<script>alert(1)</script>'],
    ['more tags than HTML may have', '<br>'.repeat(3001)],
    ['deeper tags than HTML may have', '<b>'.repeat(101)],
  ])('is plain text, stored as sent: %s', async (_, description) => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);

    const created = await asMember.post(CREATE, { title: 'x', description });
    const updated = await asMember.rpc.cards.update.mutate({ id, description });

    expect(created).toMatchObject({ status: 201, body: { data: { card: { description } } } });
    expect(updated.card.description).toBe(description);
  });

  it('is trimmed at its ends, and null if it is empty then', async () => {
    const { asMember } = await givenWorld();
    const answered = async (description: string) =>
      (await asMember.post(CREATE, { title: 'x', description })).body.data.card.description;

    expect(await answered(' <p>\n  a\n ')).toBe('<p>\n  a');
    expect(await answered(' \n ')).toBeNull();
  });
});

describe('the description of a copy of a master card', () => {
  it('is sanitised HTML when a project changes it', async () => {
    const { asMember, id } = await givenCopy();
    const description = 'a < b <script>x()</script><p onclick="x()" class="y">Hi</p><img src=x onerror=y>';

    const { card } = await asMember.rpc.cards.update.mutate({ id, description, short_description: '<b>' });

    expect(card.description).toBe('a &lt; b <p class="y">Hi</p><img src="x" />');
    expect(card.short_description).toBe('<b>');
  });

  it.each(REFUSED)('422 for %s, and nothing changes', async (_, description, message) => {
    const { asMember, id } = await givenCopy();

    const refused = await refusalOf(asMember.rpc.cards.update.mutate({ id, title: 'After', description }));

    expect(refused).toMatchObject({ status: 422, errors: { description: [message] } });
    expect(await stored('cards', id)).toMatchObject({ title: 'A card', description: '<p>Before</p>' });
  });

  it('is cleared by null and by an empty text', async () => {
    const { asMember, id } = await givenCopy();
    const cleared = async (description: string | null) => {
      await asMember.rpc.cards.update.mutate({ id, description: 'x' });
      return (await asMember.rpc.cards.update.mutate({ id, description })).card.description;
    };

    expect([await cleared(null), await cleared(' ')]).toEqual([null, null]);
  });
});

describe('the description of a master card', () => {
  it.each(REFUSED)(
    '422 for %s, when created and when updated, and nothing changes',
    async (_, description, message) => {
      const { asSuperadmin, groups, cards } = await givenTemplate();
      const [group_id, id] = [groups[0]!, cards[0]!];

      const created = await asSuperadmin.post(CREATE_MASTER, { group_id, title: 'x', description });
      const updated = await refusalOf(asSuperadmin.rpc.masterCards.update.mutate({ id, title: 'x', description }));

      expect(created).toMatchObject({ status: 422, body: { errors: { description: [message] } } });
      expect(updated).toMatchObject({ status: 422, errors: { description: [message] } });
      expect(await stored('cards', id)).toMatchObject({ title: 'One', description: '<p>1</p>' });
    },
  );

  it('keeps everyday markup, in its copies, too', async () => {
    const { asSuperadmin, groups, projects } = await givenTemplate();
    const description =
      '<details open><summary id="more">More</summary><p class="note" style="text-align:center">Call <a href="tel:+491234">us</a></p></details>';

    const { card } = await asSuperadmin.rpc.masterCards.create.mutate({
      group_id: groups[0]!,
      title: 'x',
      description,
      push_to_projects: true,
    });
    const { cards } = await asSuperadmin.in(projects[0]!.id).rpc.cards.list.query({ text: 'summary' });

    expect(card.description).toBe(description);
    expect(cards).toMatchObject([{ master_card_id: card.id, description }]);
  });
});
