import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { testService } from '../harness/service.ts';
import { givenBoard, givenCard, givenGroup, givenWorld, type World } from '../harness/world.ts';

const GET = '/api/services/operations/v1/operations/boards/get';
const LIST = '/api/services/operations/v1/operations/boards/list';

/** Unlike `fetch`, adds no headers and does not decompress. */
async function post(path: string, body: object, token: string, headers: Record<string, string>) {
  const { url } = await testService();
  return new Promise<{ status: number; headers: Record<string, any>; bytes: Buffer }>((resolve, reject) => {
    const sent = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers };
    const call = request(`${url}${path}`, { method: 'POST', headers: sent }, async (response) => {
      const bytes = Buffer.concat(await response.toArray());
      resolve({ status: response.statusCode!, headers: response.headers, bytes });
    });
    call.on('error', reject).end(JSON.stringify(body));
  });
}

async function givenLargeBoard({ project }: World): Promise<number> {
  const board = await givenBoard(project);
  const group = await givenGroup(project, board);
  for (let card = 0; card < 3; card++)
    await givenCard(project, { group_id: group, description: 'ä"\n'.repeat(10_000) });
  return board;
}

describe('a large answer', () => {
  it.each<[string, string, (id: number) => object]>([
    ['REST', GET, (id) => ({ id })],
    ['RPC', '/trpc/boards.get', (id) => ({ json: { id } })],
  ])('over %s is compressed if the caller accepts gzip, without changing its content', async (_, path, bodyOf) => {
    const world = await givenWorld();
    const body = bodyOf(await givenLargeBoard(world));
    const { token } = world.asMember;

    const plain = await post(path, body, token!, {});
    const compressed = await post(path, body, token!, { 'accept-encoding': 'br, gzip' });

    expect(plain.status).toBe(200);
    expect(plain.headers).toMatchObject({ vary: 'Accept-Encoding', 'content-length': String(plain.bytes.length) });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(compressed.status).toBe(200);
    expect(compressed.headers).toMatchObject({
      vary: 'Accept-Encoding',
      'content-encoding': 'gzip',
      'content-type': plain.headers['content-type'],
      'content-length': String(compressed.bytes.length),
    });
    expect(compressed.bytes.length).toBeLessThan(plain.bytes.length / 10);
    expect(gunzipSync(compressed.bytes)).toEqual(plain.bytes);
  });

  it.each(['', 'identity', 'gzip;q=0', 'br', 'gzip;q=0, *', 'gzip;x=1;q=0', 'gzip;q=', 'zip'])(
    'is not compressed for "%s"',
    async (accepted) => {
      const world = await givenWorld();
      const id = await givenLargeBoard(world);

      const answer = await post(GET, { id }, world.asMember.token!, { 'accept-encoding': accepted });

      expect(answer.headers).not.toHaveProperty('content-encoding');
      expect(JSON.parse(answer.bytes.toString()).error).toBe(false);
    },
  );

  it.each(['gzip', 'GZIP', 'gzip;q=0.1', 'gzip;', 'gzip; level=9; q=1', '*', 'br;q=1, *;q=0.5'])(
    'is compressed for "%s"',
    async (accepted) => {
      const world = await givenWorld();
      const id = await givenLargeBoard(world);

      const answer = await post(GET, { id }, world.asMember.token!, { 'accept-encoding': accepted });

      expect(answer.headers['content-encoding']).toBe('gzip');
    },
  );
});

describe('a small answer', () => {
  it('is never compressed', async () => {
    const { asMember } = await givenWorld();

    const { headers } = await post(LIST, {}, asMember.token!, { 'accept-encoding': 'gzip' });

    expect(headers).not.toHaveProperty('content-encoding');
    expect(headers).not.toHaveProperty('vary');
  });
});
