import { readFileSync } from 'node:fs';
import { MutationObserver } from '@tanstack/react-query';
import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client';
import superjson from 'superjson';
import { expect, it } from 'vitest';
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

it('the page about the client shows the program of this test', () => {
  const program = readFileSync(new URL('../harness/stockClient.ts', import.meta.url), 'utf8');
  const page = readFileSync(new URL('../../docs/client.md', import.meta.url), 'utf8');

  expect(page).toContain(
    `\`\`\`typescript\n${program.replace('../../client/router.ts', 'deckhand-client/router')}\`\`\``,
  );
});
