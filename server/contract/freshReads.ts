import { randomUUID } from 'node:crypto';
import type { RestProcedure } from '../api/procedures.ts';
import { callOn, requestOn } from './exchange.ts';
import type { Run } from './expectation.ts';
import type { Given } from './input.ts';
import type { Place } from './ownPlace.ts';
import type { Send, Sent } from './sender.ts';
import { inputOf } from './stepCall.ts';
import { OWN, type Rows } from './writeSteps.ts';

/** A change that writes a new text, and the queries whose answers have it from then on. */
type Fresh = { change: string; input: Given; reads: Record<string, Given> };

const ALL = { limit: 200 };
const FRESH: Fresh[] = [
  {
    change: 'boards.update',
    input: { id: '$board_id', title: '$text' },
    reads: { 'boards.get': { id: '$board_id' }, 'boards.list': {} },
  },
  {
    change: 'groups.update',
    input: { id: '$other_group_id', title: '$text' },
    reads: { 'groups.list': { board_id: '$board_id', ...ALL } },
  },
  {
    change: 'cards.update',
    input: { id: '$other_card_id', title: '$text' },
    reads: { 'cards.get': { id: '$other_card_id' }, 'cards.list': { group_id: '$group_id', ...ALL } },
  },
  { change: 'tags.update', input: { id: '$tag_id', name: '$text' }, reads: { 'tags.list': ALL } },
  {
    change: 'comments.create',
    input: { card_id: '$other_card_id', comment: '$text' },
    reads: { 'comments.list': { card_id: '$other_card_id', ...ALL } },
  },
];

/** Reads, changes and reads again, in all ways: a cache in between would answer what was there before. */
export async function checkFreshReads(run: Run, { isForeign }: Place, rows: Rows, send: Send): Promise<void> {
  if (isForeign) return;
  const find = (call: string) => run.procedures.find(({ name }) => name === call && run.succeeded.has(name));
  for (const { change, input, reads } of FRESH) {
    const procedure = find(change);
    const queries: { name: string; surface: string; read: Sent }[] = [];
    for (const [name, wanted] of Object.entries(reads)) {
      const [query, given] = [find(name), await inputOf({ call: name, input: wanted }, rows)];
      if (query && given) queries.push(...waysOf(query, given).map((way) => ({ name, ...way })));
    }
    /** Returns the new text; undefined if the change fails, which is reported elsewhere. */
    const write = async () => {
      const text = `${OWN} ${randomUUID()}`;
      const sent = await inputOf({ call: change, input }, { ...rows, text });
      const { status } = procedure && sent ? await callOn('RPC', send, { procedure, input: sent }) : {};
      return status === 200 ? text : undefined;
    };
    if ((await write()) === undefined) continue;
    const first = new Map<Sent, boolean>();
    for (const { read } of queries) first.set(read, (await send(read)).text.includes(OWN));
    const after = await write();
    for (const { name, surface, read } of after === undefined ? [] : queries)
      await run.record('read after a change', name, async () => {
        const answer = await send(read);
        // What had no row of ours is about others, since `X-Project-Id` was lost, for example.
        const isOld = first.get(read) && answer.status === 200 && !answer.text.includes(after!);
        return isOld ? [`${surface}: an answer is from before a change, as of a cache.`] : [];
      });
  }
}

const waysOf = (procedure: RestProcedure, input: Given): { surface: string; read: Sent }[] => [
  { surface: 'REST', read: requestOn('REST', { procedure, input }) },
  { surface: 'RPC', read: requestOn('RPC', { procedure, input }) },
  {
    surface: 'RPC',
    read: {
      method: 'GET',
      path: `/trpc/${procedure.name}?input=${encodeURIComponent(JSON.stringify({ json: input }))}`,
    },
  },
];
