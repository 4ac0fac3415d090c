import { readFileSync } from 'node:fs';
import { InfiniteQueryObserver, MutationObserver } from '@tanstack/react-query';
import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client';
import superjson from 'superjson';
import { describe, expect, it } from 'vitest';
import type { AppRouter } from '../../client/router.ts';
import { testService } from '../harness/service.ts';
import { connect, explain } from '../harness/stockClient.ts';
import { givenBoard, givenWorld } from '../harness/world.ts';

async function given() {
  const { url } = await testService();
  const { asMember, project } = await givenWorld();
  return { url, token: asMember.token!, board: await givenBoard(project, { title: 'Launch' }) };
}

const refusalOf = (call: Promise<unknown>) => call.then(() => 'no refusal', explain);

it('httpLink calls the service, queries by GET', async () => {
  const { url, token, board } = await given();
  const methods: unknown[] = [];
  const link = httpLink({
    url: `${url}/trpc`,
    transformer: superjson,
    headers: { authorization: `Bearer ${token}` },
    fetch: (address, request) => {
      methods.push(request?.method);
      return fetch(address, request as RequestInit);
    },
  });
  const client = createTRPCClient<AppRouter>({ links: [link] });

  expect((await client.boards.list.query()).boards).toMatchObject([{ title: 'Launch' }]);
  expect((await client.boards.get.query({ id: board })).board.title).toBe('Launch');
  expect((await client.cards.create.mutate({ title: 'Typed' })).card.created_at.getFullYear()).toBeGreaterThan(2000);
  expect(await refusalOf(client.cards.create.mutate({ title: '' }))).toBe('422 invalid_input: title');
  expect(methods).toEqual(['GET', 'GET', 'POST', 'POST']);
});

it('httpBatchLink calls the service', async () => {
  const { url, token, board } = await given();
  const { client } = connect(url, token);

  const [{ boards }, { board: found }] = await Promise.all([
    client.boards.list.query(),
    client.boards.get.query({ id: board }),
  ]);

  expect(boards).toMatchObject([{ title: found.title }]);
  const due_date = new Date('2026-01-31T09:30:00Z');
  expect((await client.cards.create.mutate({ title: 'Typed', due_date })).card.due_date).toEqual(due_date);
  expect(await refusalOf(client.boards.get.query({ id: 2_000_000_000 }))).toBe('404 not_found: ');
});

it('httpBatchLink calls the service with queries by POST', async () => {
  const { url, token } = await given();
  const link = httpBatchLink({
    url: `${url}/trpc`,
    transformer: superjson,
    headers: { authorization: `Bearer ${token}` },
    methodOverride: 'POST',
  });
  const client = createTRPCClient<AppRouter>({ links: [link] });

  const [{ boards }, { cards }] = await Promise.all([client.boards.list.query(), client.cards.list.query()]);

  expect(boards).toMatchObject([{ title: 'Launch' }]);
  expect(cards).toEqual([]);
});

it('TanStack Query calls the service', async () => {
  const { url, token, board } = await given();
  const { queryClient, trpc } = connect(url, token);
  const create = new MutationObserver(queryClient, trpc.cards.create.mutationOptions());

  expect((await queryClient.fetchQuery(trpc.boards.list.queryOptions())).boards).toMatchObject([{ title: 'Launch' }]);
  expect((await queryClient.fetchQuery(trpc.boards.get.queryOptions({ id: board }))).board.title).toBe('Launch');
  expect((await create.mutate({ title: 'Typed' })).card.title).toBe('Typed');
  expect(await refusalOf(create.mutate({ title: '' }))).toBe('422 invalid_input: title');
});

describe('infinite queries of TanStack Query', () => {
  it('read a list page by page', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const cards = Array.from({ length: 120 }, (_, at) => ({ title: `Card ${at}` }));
    await asMember.rpc.cards.createMany.mutate({ cards });
    const { queryClient, trpc } = connect(url, asMember.token!);

    const { pages } = await queryClient.fetchInfiniteQuery({
      ...trpc.cards.list.infiniteQueryOptions({ limit: 50 }, { getNextPageParam: ({ next_cursor }) => next_cursor }),
      pages: 5,
    });

    expect(pages.map((page) => page.cards.length)).toEqual([50, 50, 20]);
    expect(pages.flatMap((page) => page.cards.map(({ title }) => title))).toEqual(cards.map(({ title }) => title));
  });

  it('422 for a page before the first one, with what to do', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const { queryClient, trpc } = connect(url, asMember.token!);
    const options = trpc.cards.list.infiniteQueryOptions(
      {},
      { getNextPageParam: () => null, getPreviousPageParam: () => 'before' },
    );
    await queryClient.fetchInfiniteQuery(options);

    const { error } = await new InfiniteQueryObserver(queryClient, options).fetchPreviousPage();

    expect(error).toMatchObject({
      message:
        'direction can only be forward: keep the pages that you have read, and send `next_cursor` for the one behind them.',
      data: { httpStatus: 422 },
    });
  });

  it('send a direction that only lists know, and only over RPC', async () => {
    const { url } = await testService();
    const { asMember } = await givenWorld();
    const refusal = { direction: ['direction is not a known field.'] };
    const { cards } = connect(url, asMember.token!).client;
    const [sideways, forward] = [{ direction: 'sideways' }, { id: 1, direction: 'forward' }];

    expect(await refusalOf(cards.list.query(sideways as object))).toBe('422 invalid_input: direction');
    expect(await refusalOf(cards.get.query(forward))).toBe('422 invalid_input: direction');
    const rest = await asMember.post('/services/operations/v1/operations/cards/list', { direction: 'forward' });
    expect(rest).toMatchObject({ status: 422, body: { errors: refusal } });
    const tool = await asMember.tool('cards_list', { direction: 'forward' });
    expect(tool.body.result.structuredContent.error.errors).toEqual(refusal);
  });
});

it('the page about the client shows the program of this test', () => {
  const program = readFileSync(new URL('../harness/stockClient.ts', import.meta.url), 'utf8');
  const page = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8');

  expect(page).toContain(
    `\`\`\`typescript\n${program.replace('../../client/router.ts', 'deckhand-client/router')}\`\`\``,
  );
});
