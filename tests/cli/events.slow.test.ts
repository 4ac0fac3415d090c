import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { runCommandLine } from '../../server/cli/run.ts';
import { givenDemoService } from '../harness/demo.ts';
import { givenDemoDirectory, givenDirectory, removeProcesses, runToEnd, signIn } from '../harness/process.ts';
import { failure, givenTerminal } from '../harness/terminal.ts';
import { startNode } from '../harness/usedService.ts';
import { givenWebhookReceiver, type WebhookReceiver } from '../harness/webhookReceiver.ts';

/** `events follow` and `open` on a service with the demo data. */

const COMMAND_LINE = 'server/cli/deckhand.js';

let service: Awaited<ReturnType<typeof givenDemoService>>;
let url: string;
let member: Awaited<ReturnType<typeof signIn>>;
let key: string;
beforeAll(async () => {
  service = await givenDemoService();
  ({ url } = service);
  member = await signIn(url);
  key = await givenKey(member);
});
afterAll(async () => {
  await service.close();
  await removeProcesses();
});

const givenKey = async ({ rpc }: typeof member) =>
  (await rpc.keys.create.mutate({ name: 'x', scopes: ['events:read', 'boards:read', 'groups:read', 'cards:read'] }))
    .secret;
const createCard = async (title: string, { rpc } = member) => (await rpc.cards.create.mutate({ title })).card.id;

/** Runs `events follow` in this process; `stop` is Ctrl-C. */
function follow(words: string[], { at = url, DECKHAND_KEY = key } = {}) {
  const terminal = givenTerminal();
  const interrupted = new AbortController();
  terminal.onInterrupt = (stop) => {
    interrupted.signal.addEventListener('abort', stop);
    return () => undefined;
  };
  const environment = () => ({ HOME: '/nonexistent', DECKHAND_URL: at, DECKHAND_KEY });
  const ended = runCommandLine(['events', 'follow', ...words], environment, terminal);
  const shows = (text: string) => vi.waitFor(() => expect(terminal.shown.join('')).toContain(text), 10_000);
  const stop = () => {
    interrupted.abort();
    return ended;
  };
  return { shown: terminal.shown, shows, stop, ended };
}

/** Answers with these statuses, the last of which repeats. */
const givenReceiver = (statuses: number[], delay = 0) => {
  const left = [...statuses];
  return givenWebhookReceiver((_, response) => {
    const status = left.length > 1 ? left.shift()! : left[0]!;
    setTimeout(() => response.writeHead(status, { location: `${url}/` }).end(), delay);
  });
};
const addressOf = ({ url }: WebhookReceiver) => `${url.replace('127.0.0.1', 'localhost')}/hook`;

describe('events follow', () => {
  it('prints what happens meanwhile, and 0 after Ctrl-C with the cursor to go on from', async () => {
    const { shown, shows, stop } = follow(['--types', 'card.created', '--project-id', '1']);
    await shows('Follows card.created of project 1');
    const first = await createCard('First');
    await member.rpc.tags.create.mutate({ name: 'Not followed' });
    await shows(`card ${first}`);

    expect(await stop()).toEqual({ exitCode: 0 });
    expect(shown).toEqual([
      `Follows card.created of project 1 on ${url}, from now on. Ctrl-C ends it.\n`,
      expect.stringMatching(
        /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}card\.created {2}project 1 {2}card \d+ {2}by user 3\n$/,
      ),
      expect.stringMatching(/^1 event\. To go on behind the last one: --after \S+\n$/),
    ]);

    const second = await createCard('Second');
    const after = shown.at(-1)!.split(' ').at(-1)!.trim();
    const later = follow(['--types', 'card.created', '--after', after, '--json']);
    await later.shows('"card.created"');
    await later.stop();
    const [begin = '', line = ''] = later.shown;
    expect(begin).toContain(`behind ${after}.`);
    expect(JSON.parse(line)).toMatchObject({ type: 'card.created', subject_id: second, cursor: expect.any(String) });
    expect(line.trim()).not.toContain('\n');
  });

  it('forwards each event once, in order, as a webhook would, and says what was answered', async () => {
    const receiver = await givenReceiver([204, 302, 500, 200]);
    const { shown, shows, stop } = follow(['--types', 'card.created', '--forward', addressOf(receiver)]);
    await shows('whsec_');
    const [, secret = ''] = /^(whsec_\S+)$/m.exec(shown.join('')) ?? [];

    const ids: number[] = [];
    for (const title of ['One', 'Two', 'Three', 'Four']) ids.push(await createCard(title));
    await shows('→ 200 in ');
    await stop();
    receiver.remove();

    const outcomes = shown.filter((line) => line.startsWith('  → ')).map((line) => line.replace(/\d+ ms/, 'N ms'));
    expect(outcomes).toEqual([
      '  → 204 in N ms\n',
      '  → not delivered in N ms: It answered 302: redirects are not followed.\n',
      '  → not delivered in N ms: It answered 500.\n',
      '  → 200 in N ms\n',
    ]);
    const messages = receiver.arrived.map(({ body, headers }) => new Webhook(secret).verify(body, headers));
    expect(messages).toMatchObject(ids.map((subject_id) => ({ type: 'card.created', data: { subject_id } })));
    expect(Object.keys((messages[0] as { data: object }).data)).not.toContain('cursor');
    expect(receiver.arrived[0]?.headers).toMatchObject({ 'user-agent': 'Deckhand-Webhooks/1' });
    expect(JSON.stringify(receiver.arrived)).not.toContain(key);
  });

  it('leaves out the event whose delivery Ctrl-C ended, so that it comes again', async () => {
    const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
    const slow = await givenReceiver([200], 5000);
    const { shown, shows, stop } = follow([
      '--types',
      'card.created',
      '--forward',
      addressOf(slow),
      '--secret',
      secret,
    ]);
    await shows(`${secret}\n`);
    const id = await createCard('Interrupted');
    await vi.waitFor(() => expect(slow.arrived).toHaveLength(1));

    expect(await stop()).toEqual({ exitCode: 0 });
    expect(shown.at(-1)).toMatch(/^0 events\. .* --after /);
    slow.remove();
    const again = follow(['--types', 'card.created', '--after', shown.at(-1)!.split(' ').at(-1)!.trim()]);
    await again.shows(`card ${id}`);
    await again.stop();
  });

  it('goes on if nobody listens', async () => {
    const { shows, stop } = follow(['--types', 'card.created', '--forward', 'http://127.0.0.1:1/']);
    await shows('whsec_');
    await createCard('Refused');
    await shows(' ms: The connection was refused.\n');
    const next = await createCard('The next one');
    await shows(`card ${next}`);

    expect(await stop()).toEqual({ exitCode: 0 });
  });

  it('says when the connection is lost and back, and misses nothing', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const node = await startNode({ DATA_DIR });
    const DECKHAND_KEY = await givenKey(await signIn(node.url));
    const { shown, shows, stop } = follow(['--types', 'card.created'], { at: node.url, DECKHAND_KEY });
    await shows('from now on');

    await node.stop();
    await shows('The connection is lost. It is tried again until it is back.\n');
    const again = await startNode({ DATA_DIR, PORT: new URL(node.url).port });
    const id = await createCard('Meanwhile', await signIn(again.url));
    await shows(`card ${id}`);
    await stop();
    await again.stop();

    expect(shown).toContain('The connection is back. No event was missed.\n');
  });

  it('1 for a key that is revoked meanwhile, with the cursor; 2 for an unknown type', async () => {
    const { rpc } = member;
    const { secret, key: row } = await rpc.keys.create.mutate({ name: 'y', scopes: ['events:read'] });
    const { shown, shows, ended } = follow([], { DECKHAND_KEY: secret });
    await shows('Follows all events');

    await rpc.keys.revoke.mutate({ id: row.id });

    expect(await ended).toMatchObject(failure(1, `${url} did not accept the key in DECKHAND_KEY: `));
    expect(shown.at(-1)).toContain('To go on behind the last one: --after ');
    expect(await follow(['--types', 'card.made']).ended).toMatchObject(failure(2, 'types.0 must be one of '));
  });
});

describe('events follow as a process', () => {
  const settings = async () => ({ HOME: await givenDirectory(), DECKHAND_URL: url, DECKHAND_KEY: key });
  const writes = (child: ChildProcess, stream: 'stdout' | 'stderr', text: string) =>
    new Promise<void>((resolve) => child[stream]!.on('data', (chunk: string) => chunk.includes(text) && resolve()));

  it('prints events alone on standard output, and 0 after SIGINT', async () => {
    const words: [string, ...string[]] = [COMMAND_LINE, 'events', 'follow', '--types', 'card.created', '--json'];

    const ended = await runToEnd(words, await settings(), async (child) => {
      await writes(child, 'stderr', 'Ctrl-C ends it.');
      const printed = writes(child, 'stdout', 'card.created');
      await createCard('Seen by a process');
      await printed;
      child.kill('SIGINT');
    });

    expect(ended).toMatchObject({
      code: 0,
      signal: null,
      stderr: expect.stringMatching(/\n1 event\. .*--after \S+\n$/),
    });
    expect(JSON.parse(ended.stdout)).toMatchObject({ type: 'card.created' });
  });

  it('ends quietly behind | head', async () => {
    const script = `${process.execPath} ${join(import.meta.dirname, '../..', COMMAND_LINE)} events follow | head -1; echo "ended with \${PIPESTATUS[0]}"`;
    const child = spawn('bash', ['-c', script], { env: { PATH: process.env.PATH, ...(await settings()) } });
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        output[stream] += text;
      });
    }
    await vi.waitFor(() => expect(output.stderr).toContain('Ctrl-C ends it.'), 10_000);
    await createCard('The first line');
    await vi.waitFor(() => expect(output.stdout).toContain('card.created'));
    await createCard('Nobody reads it');
    await once(child, 'close');

    expect(output.stdout).toMatch(/^[^\n]* card\.created [^\n]*\nended with 0\n$/);
    expect(output.stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('open', () => {
  const open = (words: string, DECKHAND_KEY = key) =>
    runCommandLine(
      ['open', ...words.split(' '), '--print'],
      () => ({ DECKHAND_URL: url, DECKHAND_KEY }),
      givenTerminal(),
    );

  it('looks up the project and the board of a row, in projects other than the default one, too', async () => {
    const owner = await signIn(url, 'owner@demo.test');
    const { rpc } = owner;
    const elsewhere = { projectId: 2 };
    const { board } = await rpc.boards.create.mutate({ title: 'Empty' }, elsewhere);
    const { group } = await rpc.groups.create.mutate({ board_id: board.id, title: 'Filled' });
    const { card } = await rpc.cards.create.mutate({ title: 'Deep', group_id: group.id });
    const { board: empty } = await rpc.boards.create.mutate({ title: 'Empty' }, elsewhere);
    const ownersKey = await givenKey(owner);

    for (const [words, path] of [
      [`boards ${board.id}`, `/projects/2/boards/${board.id}`],
      [`boards ${empty.id}`, `/projects/2/boards/${empty.id}`],
      [`cards ${card.id}`, `/projects/2/boards/${board.id}/cards/${card.id}`],
    ] as const) {
      expect(await open(words, ownersKey), words).toEqual({ exitCode: 0, printed: `${url}${path}` });
    }
    expect((await open('boards 2')).printed).toBe(`${url}/projects/1/boards/2`);
  });

  it.each([
    ['boards 9999', 'There is no such board.'],
    ['cards 9999', 'There is no such card.'],
  ])('1 for %s', async (words, message) => {
    expect(await open(words)).toEqual(failure(1, message));
  });
});
