import { afterEach, expect, it, vi } from 'vitest';
import { fetchNoted, isOwn } from '../../server/web/pages/board/follow.js';

afterEach(() => void vi.unstubAllGlobals());

it('a change is of the page only with its request id, its user and no key', async () => {
  vi.stubGlobal('fetch', async () => new Response());
  const send = (kind: string, id: string) =>
    fetchNoted(`http://service.test/trpc/x?batch=1&kind=${kind}`, { headers: { 'x-request-id': id } });
  await send('mutation', 'changed');
  await send('query', 'read');

  expect(isOwn({ request_id: 'changed', user_id: 3, key_id: null }, 3)).toBe(true);
  expect(isOwn({ request_id: 'changed', user_id: 2, key_id: null }, 3)).toBe(false);
  expect(isOwn({ request_id: 'changed', user_id: 3, key_id: 7 }, 3)).toBe(false);
  expect(isOwn({ request_id: 'changed', user_id: null, key_id: null }, 3)).toBe(false);
  expect(isOwn({ request_id: 'read', user_id: 3, key_id: null }, 3)).toBe(false);
  expect(isOwn({ request_id: null, user_id: 3, key_id: null }, 3)).toBe(false);
});
