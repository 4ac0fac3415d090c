import { describe, expect, it } from 'vitest';
import { DeckhandError, isRefusal } from '../../client/client.ts';
import {
  aBoard,
  aCard,
  aComment,
  aGroup,
  anEvent,
  aProject,
  aTag,
  type FakeResults,
  fakeClient,
  refusalOf,
} from '../../client/testing/testing.ts';
import { Board, FullBoard, FullGroup, ListedBoard } from '../../shared/board.ts';
import { CreatedCard, ListedCard } from '../../shared/card.ts';
import { CommentThread } from '../../shared/comment.ts';
import { Event } from '../../shared/event.ts';
import { Project } from '../../shared/project.ts';
import { Tag } from '../../shared/tag.ts';

describe('a fake client', () => {
  it('answers queries and mutations, and records the calls', async () => {
    const fake = fakeClient({
      boards: { list: async () => ({ boards: [] }) },
      cards: { delete: ({ id }) => expect(id).toBe(7) },
    });

    expect(await fake.boards.list.query()).toEqual({ boards: [] });
    await fake.as({ projectId: 3 }).cards.delete.mutate({ id: 7 });

    expect(fake.calls).toEqual([
      { procedure: 'boards.list', input: undefined },
      { procedure: 'cards.delete', input: { id: 7 }, projectId: 3 },
    ]);
  });

  it('reads all pages of a list', async () => {
    const fake = fakeClient({
      users: { list: ({ cursor }) => ({ users: [], next_cursor: cursor ? null : 'second' }) },
    });

    for await (const user of fake.users.list.each()) throw new Error(`There is no ${user.name}.`);

    expect(fake.calls.map(({ input }) => input)).toEqual([{}, { cursor: 'second' }]);
  });

  it('has no response for withMeta to describe', async () => {
    const fake = fakeClient({ boards: { list: async () => ({ boards: [] }) } });

    expect(await fake.boards.list.query.withMeta()).toEqual({
      data: { boards: [] },
      meta: { requestId: 'fake', replayed: false, attempts: 1, quota: undefined },
    });
  });

  it.each(['boards.list', 'boards.constructor', 'constructor.name'])(
    'names %s if it has no result',
    async (procedure) => {
      const fake = fakeClient({ boards: {} });
      const call = procedure.split('.').reduce<any>((part, name) => part[name], fake);

      const error = await call.query().catch((thrown: unknown) => thrown);

      const [router, name] = procedure.split('.');
      expect(error.message).toBe(
        `fakeClient has no result for ${procedure}: give it one, as in fakeClient({ ${router}: { ${name}: async () => … } }).`,
      );
      expect(isRefusal(error)).toBe(false);
      expect(fake.calls).toEqual([{ procedure, input: undefined }]);
    },
  );

  it('throws what an answer throws, and the reason of an aborted signal', async () => {
    const refusal = refusalOf({ status: 403, reason: 'role_missing' });
    const fake = fakeClient({ boards: { list: () => Promise.reject(refusal) } });

    await expect(fake.boards.list.query()).rejects.toBe(refusal);
    await expect(fake.boards.list.query(undefined, { signal: AbortSignal.abort('enough') })).rejects.toBe('enough');
    expect(fake.calls).toHaveLength(1);
  });

  it('can be awaited and printed', async () => {
    const fake = fakeClient();

    expect(await fake).toBe(fake);
    expect(JSON.stringify({ fake })).toBe('{}');
  });

  it('has types that reject unknown procedures, inputs and outputs', () => {
    const answers: FakeResults[] = [
      // @ts-expect-error: the procedure is called list
      { boards: { liszt: async () => ({ boards: [] }) } },
      // @ts-expect-error: the output has boards
      { boards: { list: async () => ({ cards: [] }) } },
      // @ts-expect-error: the id is a number
      { cards: { delete: ({ id }: { id: string }) => void id } },
    ];
    // @ts-expect-error: 418 is not a status of the service
    expect(() => refusalOf({ status: 418, reason: 'not_found' })).not.toThrow();
    expect(answers).toHaveLength(3);
  });
});

describe('refusalOf', () => {
  it('makes an error like those of the service, with a message of its own if none is given', () => {
    const fields = { title: ['title is required.'] };
    const error = refusalOf({ status: 422, reason: 'invalid_input', fields });

    expect(error).toBeInstanceOf(DeckhandError);
    expect(isRefusal(error)).toBe(true);
    expect(error).toMatchObject({ message: 'title is required.', status: 422, reason: 'invalid_input', fields });
    expect(refusalOf({ status: 429, reason: 'service_busy', retryAfterSeconds: 2 })).toMatchObject({
      ...{ message: 'Refused: service_busy.', retryAfterSeconds: 2, fields: {} },
    });
  });
});

describe('builders of rows', () => {
  it.each([
    ['aProject', aProject, [Project]],
    ['aBoard', aBoard, [Board, ListedBoard, FullBoard]],
    ['aGroup', aGroup, [FullGroup]],
    ['aCard', aCard, [CreatedCard, ListedCard]],
    ['aComment', aComment, [CommentThread]],
    ['aTag', aTag, [Tag]],
    ['anEvent', anEvent, [Event]],
  ])('%s makes rows of its models with all fields and no others, and a new id each time', (_, build, models) => {
    const [row, other] = [build(), build()];

    for (const model of models) {
      expect(model.parse(row)).toEqual(
        Object.fromEntries(Object.keys(model.shape).map((name) => [name, row[name as 'id']])),
      );
    }
    expect(Object.keys(row).toSorted()).toEqual(
      [...new Set(models.flatMap(({ shape }) => Object.keys(shape)))].toSorted(),
    );
    expect(row.id).not.toBe(other.id);
    expect(row.created_at).not.toBe(other.created_at);
  });

  it('take what is given, and derive counts from it', () => {
    const cards = [aCard({ title: 'First' }), aCard({ tour_key: 'welcome' })];
    const board = aBoard({ title: 'Launch', groups: [aGroup({ cards }), aGroup()] });

    expect(cards).toMatchObject([{ title: 'First', card_type: 'regular', project_id: 1 }, { card_type: 'tour' }]);
    expect(cards[0]!.unique_identifier).not.toBe(cards[1]!.unique_identifier);
    expect(board).toMatchObject({
      title: 'Launch',
      groups_count: 2,
      cards_count: 2,
      groups: [{ cards }, { cards: [] }],
    });
    expect(aComment({ replies: [aComment()] })).toMatchObject({ replies_count: 1 });
    expect(aBoard({ groups_count: 9 }).groups_count).toBe(9);
    // @ts-expect-error: a misspelt field
    expect(aTag({ titel: 'x' })).toHaveProperty('titel');
  });

  it('fit the results of a fake', async () => {
    const fake = fakeClient({
      boards: {
        get: () => ({ board: aBoard(), version: '1' }),
        list: () => ({ boards: [aBoard({ title: 'Launch' })] }),
      },
      cards: { create: ({ title }) => ({ card: aCard({ title }), version: '1' }) },
      comments: { list: () => ({ threads: [aComment()], next_cursor: null }) },
      events: { follow: () => [anEvent({ type: 'card.created' })] },
    });

    expect((await fake.boards.list.query()).boards[0]?.title).toBe('Launch');
    expect((await fake.cards.create.mutate({ title: 'New' })).card.title).toBe('New');
  });
});
