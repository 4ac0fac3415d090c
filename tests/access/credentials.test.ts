import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { query } from '../../server/database/query.ts';
import { makeKeySecret } from '../../server/security/apiKeys.ts';
import { countStatements, givenService, testService } from '../harness/service.ts';
import { givenKey, givenToken, givenUser, testDb } from '../harness/world.ts';

/** What callers without a token or key, with a wrong one, and with one that has ended are told, on every surface. */

const JSON_TYPE = { 'content-type': 'application/json' };
const PLACES: Record<string, [path: string, init: RequestInit]> = {
  REST: ['/api/services/operations/v1/operations/boards/list', { method: 'POST' }],
  'upgrade-trial': ['/api/services/platforms/v1/subscriptions/upgrade-trial', { method: 'POST' }],
  'the stream of REST': ['/api/services/platforms/v1/events/stream', {}],
  RPC: ['/trpc/boards.list', {}],
  'a batch': ['/trpc/boards.list,tags.list?batch=1&input={}', {}],
  'the stream of RPC': ['/trpc/events.follow', {}],
  assistants: ['/mcp', { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }],
};

async function answerAt(place: string, token: string | undefined, url?: string) {
  const [path, init] = PLACES[place]!;
  const headers = { ...JSON_TYPE, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  const response = await fetch(`${url ?? (await testService()).url}${path}`, { ...init, headers });
  const text = await response.text();
  const [, reason] = /"reason":"(\w+)"/.exec(text) ?? [];
  return {
    ...{ status: response.status, reason: response.headers.get('x-error-reason') ?? reason },
    message: /"message":"((?:\\.|[^"])*)"/.exec(text)?.[1]?.replaceAll('\\"', '"'),
    challenge: response.headers.get('www-authenticate'),
    text,
  };
}

describe.each(Object.keys(PLACES))('%s', (place) => {
  it('401 without a token or key', async () => {
    for (const token of [undefined, '']) {
      const answer = await answerAt(place, token);

      expect(answer).toMatchObject({ status: 401, reason: 'not_signed_in' });
      expect(answer.message).toBe('Sign in first, and send the token as "Authorization: Bearer …".');
      expect(answer.challenge).toMatch(/^Bearer (realm|\w+)=".+"/);
    }
  });

  it('401 with a wrong token, one of an ended session, a wrong key, and that of a deactivated user', async () => {
    const user = await givenUser();
    const gone = await givenUser({ is_active: false });
    const tokens = ['wrong', await givenToken(user, { revoked_at: new Date() })];
    const rotated = await givenKey(gone);
    await query(
      await testDb(),
      sql`update api_keys set previous_hash = secret_hash, previous_expires_at = now() + interval '1 hour',
        secret_hash = 'another' || id where id = ${rotated.id}`,
    );
    const keys = ['dkh_wrong', makeKeySecret(), (await givenKey(gone)).secret, rotated.secret];

    for (const token of [...tokens, ...keys]) {
      const answer = await answerAt(place, token);
      expect(answer).toMatchObject({ status: 401, reason: 'credential_invalid' });
      expect(answer.message).toMatch(tokens.includes(token) ? /^This token is wrong, or/ : /^This API key is wrong\./);
      expect(answer.challenge).toContain('error="invalid_token"');
    }
  });

  it('401 with the secret of an ended key, and says why it ended', async () => {
    const user = await givenUser();
    const past = new Date('2020-01-01');
    const rotated = await givenKey(user);
    await query(
      await testDb(),
      sql`update api_keys set previous_hash = secret_hash, previous_expires_at = now(), secret_hash = 'another' || id where id = ${rotated.id}`,
    );
    const ended = {
      'This API key was revoked. Create another one.': await givenKey(user, { revoked_at: past }),
      'This API key has expired. Create another one.': await givenKey(user, { expires_at: past }),
      'This secret was replaced when its API key was rotated. Use the new one.': rotated,
    };

    for (const [message, { secret }] of Object.entries(ended)) {
      const answer = await answerAt(place, secret);
      expect(answer).toMatchObject({ status: 401, reason: 'key_ended', message });
      expect(answer.challenge).toContain('error="invalid_token"');
    }
  });
});

describe('the bodies of a 401', () => {
  it.each([undefined, 'wrong'])('are those of the specification: %s', async (token) => {
    const { text, message } = await answerAt('REST', token);
    expect(JSON.parse(text)).toEqual({ error: true, message });

    const upgrade = await answerAt('upgrade-trial', token);
    expect(JSON.parse(upgrade.text)).toEqual({ message: upgrade.message });
  });

  it('have the header of other 401s, too: of a sign-in and of the metrics', async () => {
    const { url } = await givenService({ METRICS_TOKEN: 'a-token-of-the-metrics' });
    const signIn = await fetch(`${url}/api/v1/authenticate`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: '{"email":"nobody@example.test","password":"wrong"}',
    });
    const closed = await fetch(`${url}/metrics`);
    const wrong = await fetch(`${url}/metrics`, { headers: { authorization: 'Bearer wrong' } });

    const challenges = [signIn, closed, wrong].map(({ status, headers }) => [status, headers.get('www-authenticate')]);
    expect(challenges).toEqual([
      [401, 'Bearer realm="Deckhand"'],
      [401, 'Bearer realm="Deckhand"'],
      [401, 'Bearer realm="Deckhand", error="invalid_token"'],
    ]);
  });
});

describe('a guess of an ended key', () => {
  it('counts before it is looked up: above the limit it is not', async () => {
    const { url } = await givenService({ RATE_LIMIT_PER_MINUTE: '2' });
    const { secret } = await givenKey(await givenUser(), { revoked_at: new Date() });
    const statuses: number[] = [];
    for (let tries = 0; tries < 2; tries++) statuses.push((await answerAt('REST', secret, url)).status);

    const statements = await countStatements(async () => statuses.push((await answerAt('REST', secret, url)).status));

    expect([...statuses, statements]).toEqual([401, 401, 429, 0]);
  });
});

describe('X-RateLimit-Reset', () => {
  it.each(Object.keys(PLACES))('has the seconds until the minute ends: %s', async (place) => {
    const { url } = await givenService();
    const [path, init] = PLACES[place]!;

    const { headers } = await fetch(url + path, { ...init, headers: JSON_TYPE });

    expect(headers.get('x-ratelimit-reset')).toMatch(/^([1-9]|[1-5]\d|60)$/);
  });
});
