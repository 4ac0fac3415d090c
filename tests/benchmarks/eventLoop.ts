import { setTimeout as pause } from 'node:timers/promises';
import { askOnce, type Connection, open, whileRepeating } from '../harness/load.ts';
import { signIn } from '../harness/process.ts';
import { givenDemo } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table, whole } from './table.ts';

const MIB = 1024 * 1024;
const ROUNDS = 5;

/** Repeats a part between a beginning and an end, up to 1 MiB. */
const filled = (begin: string, part: string, end: string) =>
  begin + part.repeat(Math.floor((MIB - begin.length - end.length) / part.length)) + end;
const keys = (count: number) => `{${Array.from({ length: count }, (_, number) => `"k${number}":0`).join()}}`;
const batch = (input: string) => {
  const each = Math.floor(MIB / (input.length + 20));
  const calls = Math.min(50, each);
  return { calls, body: `{${Array.from({ length: calls }, (_, call) => `"${call}":${input}`).join()}}` };
};
/** A change of a demo card that is a copy of a master card: its description is sanitised. */
const description = (part: string) =>
  JSON.stringify({ id: 6, description: part.repeat(Math.min(3000, Math.floor(65_536 / part.length))) });

const CREATE = '/api/services/operations/v1/operations/cards/create';
const UPDATE = '/api/services/operations/v1/operations/cards/update';
const REORDER = '/api/services/operations/v1/operations/groups/reorder';
const SIGN_IN = '/api/v1/authenticate';
const html = "<a |<!--|<p>x</p>|<img src=x onerror=y>|&amp;|<a b='|<|>|<br>|<table><tr>|<p style=a:b>".split('|');

const REQUESTS: [string, string, string][] = [
  ['an e-mail address of 1 MiB', SIGN_IN, filled('{"password":"x","email":"', 'a@', '"}')],
  ['a password of 1 MiB', SIGN_IN, filled('{"email":"a@b.test","password":"', 'x', '"}')],
  ['an unknown field of arrays', CREATE, filled('{"title":"x","y":[', '[],', '0]}')],
  ['an unknown field of numbers', CREATE, filled('{"title":"x","y":[', '1,', '0]}')],
  ['an unknown field of objects', CREATE, filled('{"title":"x","y":[', '{"a":1},', '0]}')],
  ['90,000 fields', CREATE, keys(90_000)],
  ['30,000 fields', CREATE, keys(30_000)],
  ['escapes', CREATE, filled('{"title":"', '\\u0041', '"}')],
  ['spaces', CREATE, filled('{"title":"x"', ' ', '}')],
  ['quotes', CREATE, filled('{"title":"x","y":[', '"",', '0]}')],
  ['a due date of 1 MiB', CREATE, filled('{"title":"x","due_date":"', '2', '"}')],
  ['invalid placements', REORDER, filled('{"groups":[', '0,', '0]}')],
  ['1,000 invalid placements', REORDER, `{"groups":[${Array(1000).fill('{"id":"x","position":[]}').join()}]}`],
  [
    'an annotated input',
    '/trpc/cards.create',
    filled('{"json":{"title":"x","y":0},"meta":{"values":{"y":["undefined"]', ',"y":["undefined"]', '}}}'),
  ],
  [
    'annotations of 90,000 fields',
    '/trpc/cards.create',
    `{"json":${keys(30_000)},"meta":{"values":{${Array.from({ length: 20_000 }, (_, n) => `"k${n}":["undefined"]`).join()}}}}`,
  ],
  [
    'annotations, nested',
    '/trpc/cards.create',
    filled('{"json":{"y":[', '{"a":0},', '0]},"meta":{"values":{"y":{"0.a":["undefined"]}}}}'),
  ],
  ...html.map((part): [string, string, string] => [`HTML of ${part}`, UPDATE, description(part)]),
  ...html.map((part): [string, string, string] => {
    const { calls, body } = batch(`{"json":${description(part)}}`);
    return [`a batch of HTML of ${part}`, `/trpc/${Array(calls).fill('cards.update').join()}?batch=1`, body];
  }),
];

/** How long one request of at most 1 MiB blocks the event loop: another connection probes `/health/live` in a loop. */
export async function measureEventLoop({ isEmbedded, rounds = ROUNDS }: Run): Promise<Table[]> {
  const { url, stop } = await (await givenDemo({ isEmbedded })).start();
  const { token } = await signIn(url);
  const probe = await open(url, { path: '/health/live' }, 200);
  // On a connection of its own each, since the service closes that of a body that it refuses.
  const post = (path: string, body: string) => askOnce(url, { path, body, token });
  for (let warm = 0; warm < 200; warm++) await probe.send();
  for (const [, path, body] of REQUESTS) await post(path, body);

  const idle = await longestWait(probe, () => pause(1000));
  const rows: string[][] = [];
  for (const [name, path, body] of REQUESTS) {
    const stops: number[] = [];
    let status = 0;
    for (let round = 0; round < rounds; round++) {
      const wait = await longestWait(probe, async () => {
        status = (await post(path, body)).status;
      });
      stops.push(Math.max(0, wait - idle));
    }
    rows.push([name, whole(body.length), `${status}`, whole(Math.min(...stops)), whole(Math.max(...stops))]);
  }
  await stop();
  const columns = ['', 'bytes', 'status', 'best round: ms', 'worst'];
  const note = `A probe waits ${precise(idle, 1)} ms at most while the service is idle; the figures are what it waits longer.`;
  return [{ title: 'How long one request blocks others', columns, rows, note }];
}

async function longestWait(probe: Connection, work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const keepProbing = async () => {
    longest = Math.max(longest, await probe.send());
    await pause(1);
  };
  await whileRepeating([keepProbing], async () => {
    await pause(5);
    await work();
  });
  return longest;
}
