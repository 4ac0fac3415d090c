import { describe, expect, it, vi } from 'vitest';
import { countEndingKeys, keyWarnings, warnOfAge } from '../../server/domain/account/keyWarning.ts';
import { findRights } from '../../server/domain/event/rights.ts';
import { hashKeySecret } from '../../server/security/apiKeys.ts';
import { makeCaller } from '../harness/caller.ts';
import { reasonOf } from '../harness/client.ts';
import { givenService, testService } from '../harness/service.ts';
import {
  givenKey,
  givenServiceAccount,
  givenToken,
  givenUser,
  type KeyState,
  stored,
  type TestUser,
  testDb,
} from '../harness/world.ts';

const DAY = 24 * 3_600_000;
const MAX_DAYS = 90;
const fromNow = (days: number) => new Date(Date.now() + days * DAY);

const METRICS_TOKEN = 'a-token-for-tests';
const limited = givenService({ API_KEYS_MAX_DAYS: String(MAX_DAYS), METRICS_TOKEN });
const callerWith = async (token: string) => makeCaller((await limited).url, token);

describe('a key of a service with API_KEYS_MAX_DAYS', () => {
  it('expires at that age, or earlier if it was created like this', async () => {
    const { rpc } = await callerWith(await givenToken(await givenUser()));
    const create = async (expires_at: Date | null) =>
      (
        await rpc.keys.create.mutate({
          name: 'x',
          scopes: ['cards:read'],
          expires_at: expires_at?.toISOString() ?? null,
        })
      ).key;

    for (const later of [null, fromNow(91)]) {
      const key = await create(later);
      expect(key.expires_at!.getTime() - key.created_at.getTime()).toBe(MAX_DAYS * DAY);
    }
    const earlier = fromNow(10);
    expect((await create(earlier)).expires_at).toEqual(earlier);
  });

  it('401 when it is older, on both surfaces; without the setting it still works', async () => {
    const user = await givenUser();
    const old = await givenKey(user, { created_at: fromNow(-91) });
    const young = await givenKey(user, { created_at: fromNow(-89) });
    const asOld = await callerWith(old.secret);
    const { rpc } = await callerWith(await givenToken(user));

    expect((await asOld.post('/services/platforms/v1/keys/self')).status).toBe(401);
    expect(await reasonOf(asOld.rpc.keys.rotateSelf.mutate({}))).toBe('401 key_ended');
    expect(await (await callerWith(young.secret)).rpc.keys.self.query()).toMatchObject({ key: { id: young.id } });
    expect(await makeCaller((await testService()).url, old.secret).rpc.keys.self.query()).toMatchObject({
      key: { id: old.id, expires_at: null },
    });
    expect(await reasonOf(rpc.keys.rotate.mutate({ id: old.id, previous_valid_hours: 1 }))).toBe('400 key_ended');
    const { keys } = await rpc.keys.list.query({});
    expect(keys.map(({ expires_at, created_at }) => expires_at!.getTime() - created_at.getTime())).toEqual(
      Array(2).fill(MAX_DAYS * DAY),
    );
    expect(await rpc.account.signOutEverywhere.mutate({})).toEqual({ keys_left: 1, identities_left: 0 });
  });

  it('begins a new age with a rotation, while the previous secret ends no later than before', async () => {
    const { secret } = await givenKey(await givenServiceAccount(), { created_at: fromNow(-89) });
    const caller = await callerWith(secret);
    const { key: before } = await caller.rpc.keys.self.query();

    const { key } = await caller.rpc.keys.rotateSelf.mutate({ previous_valid_hours: 168 });

    expect(key.expires_at!.getTime() - key.rotated_at!.getTime()).toBe(MAX_DAYS * DAY);
    expect(key.previous_expires_at).toEqual(before.expires_at);
    expect((await caller.rpc.keys.self.query()).secret_expires_at).toEqual(before.expires_at);
  });

  it('keeps an earlier expiry that it was created with, however often it is rotated', async () => {
    const expires_at = fromNow(10);
    const service = await givenServiceAccount();
    const { secret, id } = await givenKey(service, { created_at: fromNow(-80), expires_at });
    const rotated = await (await callerWith(secret)).rpc.keys.rotateSelf.mutate({ previous_valid_hours: 168 });
    const again = await (await callerWith(rotated.secret)).rpc.keys.rotateSelf.mutate({});

    for (const { key } of [rotated, again]) expect(key.expires_at).toEqual(expires_at);
    expect((await stored('api_keys', id)).expires_at).toEqual(expires_at);
  });

  it('loses its streams of events, too', async () => {
    const user = await givenUser();
    const credentialOf = async (state: KeyState) => {
      const { id: key_id, secret } = await givenKey(user, state);
      return { name: String(key_id), key_id, secret_hash: hashKeySecret(secret) };
    };
    const old = await credentialOf({ created_at: fromNow(-91) });
    const rotated = await credentialOf({ created_at: fromNow(-91), rotated_at: fromNow(-89) });
    const namesFor = async (keyMaxDays?: number) => [
      ...(await findRights({ db: await testDb(), services: { keyMaxDays } }, [old, rotated])).keys(),
    ];

    expect(await namesFor(MAX_DAYS)).toEqual([rotated.name]);
    expect((await namesFor()).toSorted()).toEqual([old.name, rotated.name].toSorted());
  });
});

describe('the warning of keys that end', () => {
  /** The warnings of one look, for keys of this user. */
  const warningsFor = async (user: TestUser, keyMaxDays?: number, looks = 1) => {
    const lines: { key: number; user: number }[] = [];
    const log = { warn: (line: { key: number; user: number }) => lines.push(line) };
    const work = keyWarnings(keyMaxDays, log as never);
    const db = await testDb();
    await Promise.all(Array.from({ length: looks }, () => work.step(db, { rows: 1000 })));
    return lines.filter((line) => line.user === user.id);
  };
  const isWarned = async (state: KeyState, keyMaxDays?: number) => {
    const user = await givenServiceAccount();
    await givenKey(user, state);
    return (await warningsFor(user, keyMaxDays)).length === 1;
  };

  it.each<[string, KeyState, number | undefined, boolean]>([
    ['13 days before its expiry', { created_at: fromNow(-300), expires_at: fromNow(13) }, undefined, true],
    ['15 days before its expiry', { created_at: fromNow(-300), expires_at: fromNow(15) }, undefined, false],
    ['without an end', { created_at: fromNow(-300) }, undefined, false],
    ['in the first days of a short life', { created_at: fromNow(-1), expires_at: fromNow(2) }, undefined, false],
    ['in the last quarter of a short life', { created_at: fromNow(-3), expires_at: fromNow(0.5) }, undefined, true],
    ['13 days before its largest age', { created_at: fromNow(-77) }, MAX_DAYS, true],
    ['15 days before its largest age', { created_at: fromNow(-75) }, MAX_DAYS, false],
    ['after a rotation', { created_at: fromNow(-77), rotated_at: fromNow(-60) }, MAX_DAYS, false],
    [
      '13 days before the age of a rotated secret',
      { created_at: fromNow(-300), rotated_at: fromNow(-77) },
      MAX_DAYS,
      true,
    ],
    ['early in a short largest age', { created_at: fromNow(-300), rotated_at: fromNow(-5) }, 7, false],
    ['late in a short largest age', { created_at: fromNow(-300), rotated_at: fromNow(-6) }, 7, true],
    [
      'of a revoked key',
      { expires_at: fromNow(1), created_at: fromNow(-300), revoked_at: new Date() },
      undefined,
      false,
    ],
    ['of an expired key', { expires_at: fromNow(-1), created_at: fromNow(-300) }, undefined, false],
    ['warned an hour ago', { created_at: fromNow(-77), warned_at: fromNow(-1 / 24) }, MAX_DAYS, false],
    ['warned a day ago', { created_at: fromNow(-77), warned_at: fromNow(-1) }, MAX_DAYS, true],
  ])('%s', async (_, state, keyMaxDays, expected) => {
    expect(await isWarned(state, keyMaxDays)).toBe(expected);
  });

  it('names the key and its owner, never a secret, once for all nodes', async () => {
    const user = await givenServiceAccount({ name: 'Nightly import' });
    const created_at = fromNow(-89);
    const { id, secret } = await givenKey(user, { name: 'import', created_at });

    const lines = await warningsFor(user, MAX_DAYS, 3);

    expect(lines).toEqual([
      {
        key: id,
        user: user.id,
        name: 'import',
        owner: 'Nightly import',
        ends_at: expect.any(Date),
        last_used_at: null,
      },
    ]);
    expect(JSON.stringify(lines)).not.toContain(hashKeySecret(secret));
    expect(await warningsFor(user, MAX_DAYS)).toEqual([]);
    await (await callerWith(secret)).rpc.keys.rotateSelf.mutate({});
    expect((await stored('api_keys', id)).warned_at).toBeNull();
  });

  it('names the 20 that end first, and counts the others', async () => {
    const user = await givenServiceAccount();
    const log = vi.fn();
    // What other tests have left.
    await keyWarnings(MAX_DAYS, { warn: () => undefined } as never).step(await testDb(), { rows: 1000 });
    const ages = Array.from({ length: 23 }, (_, at) => 80 + ((at * 7) % 23) / 4);
    for (const age of ages) await givenKey(user, { created_at: fromNow(-age) });

    await keyWarnings(MAX_DAYS, { warn: log } as never).step(await testDb(), { rows: 1000 });

    const lines = log.mock.calls.map(([line]) => line);
    const ends = lines.slice(0, 20).map(({ ends_at }) => ends_at.getTime());
    expect(ends).toEqual(ends.toSorted((one, other) => one - other));
    expect(lines.slice(20)).toEqual([{ keys: 3 }]);
  });

  it('counts at the start what the largest age has ended, and nothing that ended otherwise', async () => {
    const user = await givenServiceAccount();
    const countedBy = async () => {
      const warn = vi.fn();
      await warnOfAge(await testDb(), MAX_DAYS, { warn } as never);
      return warn.mock.calls[0]?.[0].keys ?? 0;
    };
    const before = await countedBy();

    await givenKey(user, { created_at: fromNow(-91) });
    await givenKey(user, { created_at: fromNow(-91), rotated_at: fromNow(-1) });
    await givenKey(user, { created_at: fromNow(-91), revoked_at: new Date() });
    await givenKey(user, { created_at: fromNow(-91), expires_at: fromNow(-1) });

    expect(await countedBy()).toBe(before + 1);
  });

  it('is not for users who were deactivated', async () => {
    const user = await givenServiceAccount({ is_active: false });
    await givenKey(user, { created_at: fromNow(-89) });

    expect(await warningsFor(user, MAX_DAYS)).toEqual([]);
  });

  it('is a metric: how many end within 14 and within 3 days', async () => {
    const { url } = await limited;
    const read = async () => {
      const text = await (
        await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
      ).text();
      return ['14', '3'].map((days) =>
        Number(new RegExp(`^deckhand_ending_keys\\{days="${days}"\\} (\\d+)$`, 'm').exec(text)![1]),
      );
    };
    const user = await givenServiceAccount();
    const [soon, urgent] = (await read()) as [number, number];

    await givenKey(user, { created_at: fromNow(-80) });
    await givenKey(user, { created_at: fromNow(-88) });

    expect(await read(), 'counted once a minute').toEqual([soon, urgent]);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000);
    expect(await read()).toEqual([soon + 2, urgent + 1]);
    vi.restoreAllMocks();
    expect([...(await countEndingKeys(await testDb(), MAX_DAYS))]).toEqual([
      [14, soon + 2],
      [3, urgent + 1],
    ]);
  });
});
