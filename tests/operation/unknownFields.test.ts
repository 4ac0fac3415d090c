import { describe, expect, it } from 'vitest';
import { testService } from '../harness/service.ts';
import { givenBoard, givenCard, givenGroup, givenWorld } from '../harness/world.ts';

const CARDS = '/services/operations/v1/operations/cards';

describe('an unknown field', () => {
  it('is named with the nearest known one', async () => {
    const { asMember, project } = await givenWorld();
    const id = await givenCard(project);
    const filter = await asMember.post(`${CARDS}/list`, { stauts: 'closed', board: 1 });
    const change = await asMember.post(`${CARDS}/update`, { id, tittle: 'x' });
    const tool = await asMember.tool('cards_create', { tittle: 'x' });

    expect(filter).toMatchObject({
      status: 422,
      body: {
        message: 'stauts is not a known field: did you mean status? (and 1 more)',
        errors: {
          stauts: ['stauts is not a known field: did you mean status?'],
          board: ['board is not a known field.'],
        },
      },
    });
    expect(change.body.errors).toEqual({ tittle: ['tittle is not a known field: did you mean title?'] });
    expect(tool.body.result.structuredContent.error.errors).toEqual({
      tittle: ['tittle is not a known field: did you mean title?'],
      title: ['title is required.'],
    });
  });

  it('is refused in rows: of all, or of each for itself', async () => {
    const { asMember, project } = await givenWorld();
    const board = await givenBoard(project);
    const group = await givenGroup(project, board);
    const cards = [{ title: 'One' }, { title: 'Two', tittle: 'x', group_id: group }];

    const all = await asMember.post(`${CARDS}/create-many`, { cards });
    const each = await asMember.post(`${CARDS}/create-many`, { cards, mode: 'each' });
    const beside = await asMember.post(`${CARDS}/create-many`, { cards, mode: 'each', modes: 1 });
    const placed = await asMember.tool('operations_call', {
      name: 'groups.reorder',
      input: { groups: [{ id: group, position: 1, positon: 2 }] },
    });

    expect(all).toMatchObject({
      status: 422,
      body: { errors: { 'cards.1.tittle': ['cards.1.tittle is not a known field: did you mean title?'] } },
    });
    expect(each).toMatchObject({
      body: {
        data: {
          results: [
            { card: { id: expect.any(Number) } },
            { error: { status: 422, errors: { tittle: ['tittle is not a known field: did you mean title?'] } } },
          ],
        },
      },
    });
    expect(beside).toMatchObject({ status: 422, body: { errors: { modes: [expect.any(String)] } } });
    expect(placed.body.result.structuredContent.error.errors).toEqual({
      'groups.0.positon': ['groups.0.positon is not a known field: did you mean position?'],
    });
  });

  it('is refused whatever its name is, in an answer that is never large', async () => {
    const { asMember } = await givenWorld();
    const long = `${'x'.repeat(99)}😀${'y'.repeat(1000)}`;
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`titel${at}`, at]));

    const named = '{"__proto__": {"a": 1}, "constructor": 1, "toString": null, "a.b": 1, "": 1}';
    const rest = await asMember.post(`${CARDS}/get`, named);
    const rpc = await fetch(`${(await testService()).url}/trpc/cards.get`, {
      method: 'POST',
      headers: { authorization: `Bearer ${asMember.token}`, 'content-type': 'application/json' },
      body: `{"json": ${named}}`,
    });
    const cut = await asMember.post(`${CARDS}/get`, { id: 1, [long]: 1 });
    const flood = await asMember.post(`${CARDS}/get`, { id: 1, ...many });

    const names = ['__proto__', 'constructor', 'toString', 'a.b', ''];
    expect([rest.status, rpc.status, cut.status, flood.status]).toEqual([422, 422, 422, 422]);
    expect(Object.keys(rest.body.errors)).toEqual([...names, 'id']);
    expect(Object.keys((await rpc.json()).error.json.data.errors)).toEqual([...names, 'id']);
    const [name] = Object.keys(cut.body.errors) as [string];
    expect(name).toMatch(/^x{99}\ufffd…$/);
    expect(Object.keys(flood.body.errors)).toHaveLength(50);
    expect(flood.body.message).toBe('titel0 is not a known field. (and 19999 more)');
  });

  it('is refused in the query string of the stream of events', async () => {
    const { asMember } = await givenWorld();
    const { url } = await testService();
    const headers = { authorization: `Bearer ${asMember.token}` };

    const answer = await fetch(`${url}/api/services/platforms/v1/events/stream?type=card.created`, { headers });

    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ errors: { type: ['type is not a known field: did you mean types?'] } });
  });

  it('may be undefined: over RPC, that is a field that was not sent', async () => {
    const { asMember } = await givenWorld();

    expect(await asMember.rpc.tags.list.query({ colour: undefined } as object)).toMatchObject({ tags: [] });
  });
});
