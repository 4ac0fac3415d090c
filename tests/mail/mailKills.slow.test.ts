import { sql } from 'kysely';
import { afterAll, expect, it } from 'vitest';
import { CONNECTIONS } from '../../server/domain/mail/mailWork.ts';
import { givenDatabase, givenEmbedded } from '../faults/outcome.ts';
import { makeWorld } from '../faults/world.ts';
import { makeCaller } from '../harness/caller.ts';
import { type Behaviour, givenMailServer } from '../harness/mailServer.ts';
import { readRows, removeProcesses, startService } from '../harness/process.ts';
import { isNight } from '../harness/sample.ts';
import { findTestServer } from '../harness/server.ts';

afterAll(removeProcesses);

const MAILS_A_ROUND = 4;
const TOKEN = 'a-token-for-this-test';

/** What the mail server does until each kill. In most rounds it takes mails, and the kill follows at the moment of its answer. */
const ROUNDS: Behaviour[] = isNight
  ? ['take', 'stall', 'take', 'drop', 'take', 'defer', 'take', 'no greeting', 'take', 'take']
  : ['take', 'drop', 'take'];
/** The mails until the kill; after a dropped one, the next comes later. */
const mailsUntilKill = (round: number) => (ROUNDS[round] === 'drop' ? 1 : 1 + (round % MAILS_A_ROUND));

it('kills at any moment of sending lose no mail, double at most those under way, and delay no request', async () => {
  const found = await findTestServer();
  const place = found.url ? await givenDatabase(found.url) : await givenEmbedded();
  const server = await givenMailServer();
  const settings = { ...place.settings, ...server.settings };
  const { clients } = await makeWorld(settings);
  await readRows(settings, sql`update sessions set proven_at = now()`);
  const expected: string[] = [];
  /** How long the fastest request of each round took. */
  const times: number[] = [];

  for (const [round, behaviour] of ROUNDS.entries()) {
    const called = Promise.withResolvers<void>();
    const killed = Promise.withResolvers<void>();
    server.behave(() => {
      called.resolve();
      return behaviour;
    });
    const service = await startService(settings);
    let left = mailsUntilKill(round);
    // It can't read the answer any more.
    server.beforeAnswer(() => {
      if (--left === 0) process.kill(service.pid, 'SIGSTOP');
    });
    server.onReceived(() => {
      if (left > 0) return;
      process.kill(service.pid, 'SIGKILL');
      killed.resolve();
    });
    const ofRound: number[] = [];
    for (let number = round * MAILS_A_ROUND; number < (round + 1) * MAILS_A_ROUND; number++) {
      const { rpc } = makeCaller(service.url, clients[number]!.token);
      const begun = performance.now();
      // Tells its owner by mail. A call that the kill cut off may be stored, or not.
      const created = rpc.keys.create.mutate({ name: `key ${number}`, scopes: ['boards:read'] });
      const isStored = await created.then(
        () => true,
        () => false,
      );
      if (isStored) expected.push(`key ${number}`);
      ofRound.push(performance.now() - begun);
    }
    times.push(Math.min(...ofRound));
    await (behaviour === 'take' || behaviour === 'drop' ? killed : called).promise;
    await service.stop('SIGKILL');
  }

  server.behave('take');
  server.beforeAnswer(() => undefined);
  server.onReceived(() => undefined);
  // Instead of waiting for retries, and for the whole leases of killed processes.
  await readRows(
    settings,
    sql`update mails set next_attempt_at = now(), leased_until = least(leased_until, now() + interval '2 seconds') where state = 'waiting'`,
  );
  const service = await startService({ ...settings, METRICS_TOKEN: TOKEN });
  const waiting = async () => {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text();
    return /^deckhand_mails_waiting\{kind="key_created"\} (\d+)$/m.exec(metrics)?.[1];
  };
  await expect.poll(waiting, { timeout: 120_000, interval: 1000 }).toBe('0');
  await service.stop();

  const names = server.received
    .filter(({ isAcknowledged }) => isAcknowledged)
    .map(({ text }) => /key \d+/.exec(text)![0]);
  const sent = new Set(names);
  expect(expected.filter((name) => !sent.has(name))).toEqual([]);
  expect(expected.length).toBeGreaterThan(ROUNDS.length);
  const doubled = names.length - sent.size;
  expect(doubled).toBeGreaterThan(0);
  expect(doubled).toBeLessThanOrEqual(ROUNDS.length * CONNECTIONS);
  const states = sql`select state, count(*)::int as mails from mails group by state`;
  expect(await readRows(settings, states)).toEqual([{ state: 'sent', mails: sent.size }]);
  // Requests that waited for the mail server would all take 8 seconds.
  expect(Math.max(...times)).toBeLessThan(7000);
  await server.close();
  await place.remove();
}, 300_000);
