import { describe, expect, it } from 'vitest';
import { anomaliesOf } from './check.ts';
import type { Call, FeedEvent, History, Write } from './history.ts';

/**
 * A history in lines, each of which begins after the one before: who does what to which cards, the version and the title of the
 * answer, and behind the colon the events. `last` is a row after the run, `hook` what a webhook got.
 */
const RIGHT = `
a created 1 =1 one: created 1 =1
b created 2 =1 other: created 2 =1
b moved 2 =2: moved 2 =2 naming 1
a updated 1 if2 =3 three: updated 1 =3
b reads 1 =3 three
last 1 =3 three
hook all 1 2 2 3 2 4
hook card.moved 3`;

function historyOf(text: string): History {
  const history: History = { calls: [], events: [], rows: [], webhooks: [], older: new Map(), copies: new Set() };
  for (const line of text.trim().split('\n')) {
    const [said = '', ...events] = line.split(/[:;] ?/);
    const [who = '', verb = '', what = '', ...words] = said.split(' ');
    if (who === 'old') history.older = new Map([[`card ${verb}`, Number(what)]]);
    else if (who === 'copy') history.copies = new Set([`card ${verb}`]);
    else if (who === 'last') history.rows.push(shownIn(verb, [what, ...words]));
    else if (who === 'hook')
      history.webhooks.push({ name: verb, types: verb === 'all' ? null : [verb], arrived: [what, ...words] });
    else history.calls.push(callOf(history.calls.length, who, verb, what.split('+'), words));
    const request_id = history.calls.at(-1)?.id ?? null;
    for (const event of events) history.events.push(eventOf(history.events.length, request_id, event));
  }
  return history;
}

const shownIn = (card: string, words: string[]) => {
  const version = words.find((word) => word.startsWith('='))?.slice(1);
  const title = words.find((word) => /^[a-z]+$/.test(word) && !FLAGS.has(word));
  return { row: `card ${card}`, version: version ? Number(version) : undefined, fields: title ? { title } : {} };
};
const FLAGS = new Set(['lost', 'refused', 'replayed', 'keyed', 'void', 'each', 'during', 'before']);

function callOf(number: number, session: string, verb: string, cards: string[], words: string[]): Call {
  const has = (flag: string) => words.includes(flag);
  const begun = number * 10 - (has('during') ? 8 : has('before') ? 17 : 0);
  const condition = words.find((word) => /^if\d/.test(word))?.slice(2);
  const shown = cards.map((card) => shownIn(card, words));
  const write = ({ row, fields }: (typeof shown)[number]): Write => ({
    ...{ row: row.includes('?') ? undefined : row.replace('!', ''), verb: verb as Write['verb'], fields },
    ...(condition && { condition: Number(condition) }),
    ...{ mayBeVoid: has('void'), mayBeRefused: has('each'), isRefused: row.includes('!') },
  });
  return {
    ...{ id: `request ${number}`, session, operation: verb, begun, ended: begun + 5 },
    outcome: has('lost') ? 'unknown' : has('refused') ? 'refused' : 'done',
    ...(has('keyed') && { key: 'key' }),
    mayBeReplayed: has('replayed'),
    writes: verb === 'reads' || verb === 'misses' ? [] : shown.map(write),
    shown: has('lost') ? [] : shown.filter(({ version }) => version !== undefined),
    missing: verb === 'misses' ? [`card ${cards[0]}`] : [],
  };
}

function eventOf(number: number, request_id: string | null, text: string): FeedEvent {
  const [verb, card, version = '', , ...ids] = text.split(' ');
  const data = { version: Number(version.slice(1)), ...(ids.length > 0 && { ids: ids.map(Number) }) };
  return { id: `${number + 1}`, type: `card.${verb}`, request_id, subject_id: Number(card), data };
}

const HOOKS = /\nhook .*/g;
const namesIn = (text: string) => String(anomaliesOf(historyOf(text)).map(({ name }) => name));
/** The right history with a line instead of another one, or at its end. Without webhooks, unless they are changed. */
const changed = (from: string, to: string) => {
  const text = from.startsWith('hook') ? RIGHT : RIGHT.replaceAll(HOOKS, '');
  if (!text.includes(from)) throw new Error(`There is no ${from}.`);
  return from ? text.replace(from, to) : `${text}\n${to}`;
};
const [CREATE, UPDATE, READ] = [
  'a created 1 =1 one: created 1 =1',
  'a updated 1 if2 =3 three: updated 1 =3',
  'b reads 1 =3 three',
];
const LAST = 'last 1 =3 three';
const END = `${READ}\n${LAST}`;

describe('a history without an anomaly', () => {
  it.each([
    ['ordered calls', 'hook all', 'hook all'],
    ['a read at the same time as a write, of either version', READ, 'b reads 1 =2 one during'],
    ['a call without an answer, which did nothing', READ, 'a updated 1 never lost'],
    ['a create without an answer, which happened', READ, 'a created ? new lost: created 3 =1\nb reads 3 =1 new'],
    ['an attempt that happened', CREATE, 'a created ? one keyed lost: created 1 =1\na created 1 =1 keyed replayed'],
    [
      'a repeated answer, which is as old as the first one',
      READ,
      'a created 4 =1 keyed: created 4 =1\nb updated 4 =2: updated 4 =2\na created 4 =1 keyed replayed',
    ],
    ['a row that is gone after its deletion', READ, 'a deleted 2 lost\nb misses 2 refused'],
    ['a move for which only others made way', END, 'b moved 1 =3: moved 1 =3 naming 2\nlast 1 =3'],
    ['two calls at once in either order', END, 'a moved 1: moved 1 =5\nb moved 1 during: moved 1 =4'],
    ['a row of many that was refused in an answer that got lost', READ, 'b updated 1+2 each lost: updated 2 =3'],
    ['a change that leaves its row as it was', READ, 'a moved 1 =3 void'],
    ['a version that is required, and refused', READ, 'a updated 1 if2 four refused'],
    ['an old row with an event of each later version', READ, 'b updated 4 =8: updated 4 =8\nlast 4 =8\nold 4 7'],
    ['a copy that a sync has changed', LAST, 'last 1 =5 template\ncopy 1'],
  ])('has %s', (_, from, to) => {
    expect(namesIn(changed(from, to))).toBe('');
  });
});

describe('the anomaly', () => {
  it.each([
    ['lost update', 'two writes that required one version', LAST, 'b updated 1 if2 =4: updated 1 =4\nlast 1 =4'],
    ['lost update', 'the same without an answer', LAST, 'b updated 1 if2 lost: updated 1 =4\nlast 1 =4'],
    ['wrong value', 'a write that the last rows lack', LAST, 'c moved 2 =3: moved 2 =3 naming 1\nlast 1 =4 one'],
    ['differing answers,wrong value', 'one version with two contents', READ, 'b reads 1 =3 one'],
    ['stale answer', 'an old read after another session wrote', READ, 'b reads 1 =1 one'],
    ['stale answer', 'a write behind what another session has read', READ, 'b reads 1 =3\nc moved 1 =2 void'],
    ['version not raised,repeated version', 'a change that keeps its version', READ, 'c moved 1 =3: moved 1 =3'],
    ['older read', 'a session that reads an older version', READ, 'b reads 1 =3\nb reads 1 =2'],
    ['own write not read', 'a session that reads behind its write', READ, 'a reads 1 =2'],
    ['missing row', 'a row that a session has created', READ, 'a misses 1 refused'],
    ['missing row', 'a row whose deletion was refused', READ, 'b deleted 1 refused\na misses 1 refused'],
    ['repeated version,executed twice', 'an event that is written twice', UPDATE, `${UPDATE}; updated 1 =3`],
    ['missing event', 'a change that no event names', 'naming 1', ''],
    ['missing event', 'a create without its event', READ, 'a created 3 =1\na updated 3 =2: updated 3 =2'],
    ['missing event', 'an old row that changed without one', READ, 'b updated 4 =9: updated 4 =9\nlast 4 =9\nold 4 7'],
    ['missing event', 'a deletion without its event', READ, 'a deleted 2'],
    ['event without change', 'an event that names an unchanged row', UPDATE, `${UPDATE} naming 1`],
    [
      'event without change,answer and event differ',
      'one ahead of its row',
      LAST,
      'c moved 1 =4: moved 1 =5\nlast 1 =4',
    ],
    ['events out of order', 'a later version first', END, 'a moved 1: moved 1 =5\nb moved 1 before: moved 1 =4'],
    ['partial write', 'many rows of which one has no event', READ, 'b updated 1+2: updated 2 =3'],
    ['partial write', 'a row that an answer does not refuse', READ, 'b updated 1+2 each: updated 2 =3'],
    ['partial write', 'a lost call that created one of two rows', READ, 'b created ?+? lost: created 3 =1'],
    ['executed twice', 'two attempts', READ, 'a created 3 keyed: created 3 =1\na created 4 keyed: created 4 =1'],
    ['event of a refused call', 'a call that was refused', READ, 'b created 3 refused: created 3 =1'],
    ['event of a refused call', 'a row that was refused', READ, 'b updated 1!+2: updated 1 =4; updated 2 =3\ncopy 1'],
    ['event of nobody', 'an event without a call', '\na created 1', 'copy 3: created 4 =1\na created 1'],
    ['wrong delivery', 'a webhook that skips an event', 'hook card.moved 3', 'hook card.moved'],
    ['wrong delivery', 'a webhook that gets an event of another type', 'hook card.moved 3', 'hook card.moved 2 3'],
    ['wrong delivery', 'a webhook whose first deliveries are swapped', 'hook all 1 2 2 3 2 4', 'hook all 1 3 2 4'],
  ])('%s: %s', (names, _, from, to) => {
    expect(namesIn(changed(from, to))).toBe(names);
  });

  it('is told with its calls', () => {
    expect(anomaliesOf(historyOf(changed(READ, 'b reads 1 =1 one')))).toEqual([
      {
        name: 'stale answer',
        text: 'card 1 has version 1 in reads of b (request 4, 40 to 45, done), after 3 in updated of a (request 3, 30 to 35, done)',
      },
    ]);
  });
});
