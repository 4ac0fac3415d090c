import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Client, createClient, isRefusal } from '../../client/client.ts';
import { fileStorage, type MirrorRows } from '../../client/events/events.ts';
import { boardOf, loseCursor } from '../harness/mirror.ts';
import { type Ended, givenDirectory, runToEnd, startService } from '../harness/process.ts';
import { givenProxyTo } from '../harness/proxy.ts';
import { makeRandom } from '../harness/random.ts';
import { type Outcome, type Place, stopNode, withRemoval } from './outcome.ts';
import { makeWorld, type World } from './world.ts';

type Size = { changes: number; writers: number; kills: number; cuts: number };

/** Longer than a mirror waits before it tries again. */
const LONGEST_CATCH_UP_MILLISECONDS = 60_000;

/**
 * `kill -9` of a process that mirrors a board, while others change the board. Its connections are cut, too, and once its cursor
 * is lost. At the end, the mirror must have the rows of the board.
 */
export async function killMirror(place: Place, size: Size): Promise<Outcome> {
  const world = await makeWorld(place.settings);
  const service = await startService(place.settings);
  const proxy = await givenProxyTo(service.url);
  return withRemoval({ remove: proxy.close }, async () => {
    const client = createClient({ url: service.url, token: world.clients[0]!.token });
    const { boards } = await client.boards.list.query();
    const board = boards.find(({ title }) => title === 'Board 1')!.id;
    const file = join(await givenDirectory(), 'board.jsonl');
    const begin = () =>
      startMirror({ URL: proxy.url, TOKEN: world.clients[0]!.token, BOARD: String(board), FILE: file });

    let mirror = await begin();
    const violations: string[] = [];
    const load = startWriters(service.url, world, size);
    const { kills, cuts, changes } = size;
    const cutsPerKill = Math.ceil(cuts / kills);
    for (let kill = 1; kill <= kills; kill++) {
      for (let cut = 1; cut <= cutsPerKill; cut++) {
        await load.changed(((kill - 1 + cut / (cutsPerKill + 1)) * changes) / (kills + 1));
        while (proxy.cut() === 0) await setTimeout(10);
      }
      await load.changed((kill * changes) / (kills + 1));
      const losesCursor = kill === Math.ceil(kills / 2);
      while (losesCursor && !existsSync(file)) await setTimeout(10);
      const ended = await mirror.kill();
      if (ended.signal !== 'SIGKILL') violations.push(`the mirror ended by itself: ${ended.stderr}`);
      if (losesCursor) await loseCursor(file);
      mirror = await begin();
    }
    await load.changed(changes);
    const begun = performance.now();
    let differing: string[] = [];
    do {
      await setTimeout(100);
      differing = await differences(file, await boardOf(client, board));
    } while (differing.length > 0 && performance.now() - begun < LONGEST_CATCH_UP_MILLISECONDS);
    const times = [performance.now() - begun];
    const ended = await mirror.kill();
    const stopped = await stopNode(service);
    violations.push(...differing, ...differing.slice(0, 1).map(() => ended.stderr), ...stopped.violations);
    console.log(`The mirror followed ${load.count()} changes, and had them after ${Math.round(times[0]!)} ms.`);
    return { fault: `kill -9 of a mirror, ${place.name}`, rounds: kills, sent: [], violations, times };
  });
}

/** Starts the process of a mirror. */
async function startMirror(settings: Record<string, string>) {
  let child: ChildProcess | undefined;
  const ended = runToEnd(['tests/faults/mirrorProcess.ts'], settings, async (started) => {
    child = started;
  });
  return {
    kill: (): Promise<Ended> => {
      child?.kill('SIGKILL');
      return ended;
    },
  };
}

/** How the file differs from the board. A copy is read, since the mirror writes to the file. */
async function differences(file: string, expected: MirrorRows): Promise<string[]> {
  await copyFile(file, `${file}.copy`);
  const { rows } = (await fileStorage(`${file}.copy`).load()) ?? {};
  return (['boards', 'groups', 'cards'] as const).flatMap((kind) =>
    [...new Set([...expected[kind].keys(), ...(rows?.[kind].keys() ?? [])])]
      .filter((id) => !isDeepStrictEqual(rows?.[kind].get(id), expected[kind].get(id)))
      .map((id) => `${kind} ${id}: ${JSON.stringify([rows?.[kind].get(id), expected[kind].get(id)])}`),
  );
}

/** Users who change the board at the same time, until there were so many changes. */
function startWriters(url: string, world: World, { changes, writers }: Size) {
  let done = 0;
  const deleted: number[] = [];
  const write = async (token: string, seed: number) => {
    const client = createClient({ url, token });
    const random = makeRandom(seed).next;
    while (done < changes) {
      try {
        await changeSomething(client, world, deleted, random);
        done++;
      } catch (error) {
        // Somebody else deleted the row.
        if (!isRefusal(error) || error.status >= 500) throw error;
      }
    }
  };
  const ended = Promise.all(world.clients.slice(0, writers).map(({ token }, seed) => write(token, seed + 1)));
  return {
    count: () => done,
    changed: async (count: number) => {
      while (done < count) await Promise.race([setTimeout(5), ended]);
      if (count >= changes) await ended;
    },
  };
}

async function changeSomething(
  client: Client,
  { sharedGroups, clients }: World,
  deleted: number[],
  random: () => number,
) {
  const one = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
  const group = one(sharedGroups);
  const { cards } = await client.cards.list.query({ group_id: group, limit: 50 });
  const id = one(cards)?.id ?? 0;
  const kind = random();
  const title = `Title ${Math.floor(random() * 1000)}`;
  if (kind < 0.22 || cards.length < 5) return client.cards.create.mutate({ title, group_id: group });
  if (kind < 0.45) return client.cards.update.mutate({ id, title, status: one(['open', 'closed']) });
  if (kind < 0.65)
    return client.cards.move.mutate({ id, group_id: one(sharedGroups), position: Math.ceil(random() * 9) });
  // To another board, or to none.
  if (kind < 0.72) return client.cards.move.mutate({ id, group_id: one([...clients[0]!.groups, null]) });
  if (kind < 0.84) {
    await client.cards.delete.mutate({ id });
    return deleted.push(id);
  }
  if (kind < 0.88) return client.cards.restore.mutate({ id: one(deleted) ?? 0 });
  if (kind < 0.91) return client.groups.update.mutate({ id: group, title, position: Math.ceil(random() * 4) });
  if (kind < 0.93)
    return client.cards.updateMany.mutate({ cards: cards.map(({ id }) => ({ id, title })), mode: 'each' });
  if (kind < 0.94) {
    await client.groups.delete.mutate({ id: group });
    return client.groups.restore.mutate({ id: group });
  }
  if (kind < 0.97) {
    const { tag } = await client.tags.create.mutate({ name: title });
    await client.cards.update.mutate({ id, tag_id: tag.id });
    return client.tags.delete.mutate({ id: tag.id });
  }
  return client.cards.snooze.mutate({ id, until: random() < 0.5 ? null : new Date('2030-01-31T09:30:00Z') });
}
