import { describe, expect, it } from 'vitest';
import { DeckhandError, isRefusal } from '../../client/client.ts';
import { type FakeResults, fakeClient, refusalOf } from '../../client/testing/testing.ts';

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
