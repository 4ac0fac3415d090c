import fastify from 'fastify';
import { expect, it } from 'vitest';
import { spreadBursts } from '../../server/http/bursts.ts';

async function orderOf(callers: string[]): Promise<string[]> {
  const app = fastify();
  spreadBursts(app);
  const begun: string[] = [];
  app.get('/', async ({ headers }) => {
    begun.push(String(headers.authorization));
    return 'answered';
  });
  await app.ready();
  const responses = await Promise.all(
    callers.map((authorization) => app.inject({ url: '/', headers: { authorization } })),
  );
  expect(responses.map(({ body }) => body)).toEqual(callers.map(() => 'answered'));
  await app.close();
  return begun;
}

it('a request of another caller begins before most of a burst, and all of it is answered', async () => {
  const burst = Array.from({ length: 20 }, () => 'one');

  expect(await orderOf([...burst, 'other'])).toEqual([...burst.slice(0, 4), 'other', ...burst.slice(4)]);
});

it('two bursts take turns', async () => {
  const [one, other] = ['one', 'other'].map((caller) => Array.from({ length: 8 }, () => caller)) as [
    string[],
    string[],
  ];
  const four = (caller: string) => Array.from({ length: 4 }, () => caller);

  const expected = [...four('one'), ...four('other'), ...four('one'), ...four('other')];
  expect(await orderOf([...one, ...other])).toEqual(expected);
});
