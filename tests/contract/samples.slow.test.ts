import { execFile, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { literal, PHP, PYTHON, TYPESCRIPT } from '../../server/web/pages/api/literal.js';
import { type ApiRequest, SAMPLES } from '../../server/web/pages/api/samples.js';
import { givenDemoService } from '../harness/demo.ts';
import { givenDirectory, removeProcesses, signIn } from '../harness/process.ts';
import { requestOf, writeSample } from '../harness/samples.ts';

const ROOT = join(import.meta.dirname, '../..');
const CARDS = '/services/operations/v1/operations/cards/create';
const BOARDS = '/services/operations/v1/operations/boards/list';
const run = promisify(execFile);

/** Characters that have a meaning in one of the languages. */
const HOSTILE = `It's "5 $HOME \`id\` \\n {x} é 日本 😀\n\ttab`;

const hasPython = spawnSync('python3', ['--version']).status === 0;

describe('the code samples', () => {
  let demo: Awaited<ReturnType<typeof givenDemoService>>;
  let directory: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    demo = await givenDemoService();
    directory = await givenDirectory();
    env = { ...process.env, TOKEN: (await signIn(demo.url)).token };
  });
  afterAll(async () => {
    await demo.close();
    await removeProcesses();
  });

  /** Runs the samples of a language; then the card must be as it was sent. */
  async function runAll(name: string, program: (sample: string) => Promise<[string, string[]]>) {
    const requests: [ApiRequest, RegExp][] = [
      [requestOf('/v1/authenticate', demo.url), /member@demo\.test/],
      [requestOf(BOARDS, demo.url, { body: undefined, query: { tool_key: 'seo' } }), /boards/],
      [requestOf('/services/operations/v1/operations/tour/cards/dismiss-all', demo.url), /./],
      [
        requestOf(CARDS, demo.url, {
          body: { title: 'A title', description: HOSTILE, group_id: 7, tag_id: null },
          headers: { 'X-Project-Id': '1', 'Idempotency-Key': `it's "${name}"` },
        }),
        /A title/,
      ],
    ];
    for (const [request, expected] of requests) {
      const [file, parts] = await program(writeSample(name, request));
      const { stdout } = await run(file, parts, { env });
      expect(stdout).toMatch(expected);
      expect(stdout).not.toContain('"error":true');
    }
    const { cards } = await (await signIn(demo.url)).rpc.cards.list.query({ group_id: 7 });
    expect(cards.findLast(({ title }) => title === 'A title')!.description).toBe(HOSTILE);
  }

  it('in curl work', () => runAll('curl', async (sample) => ['bash', ['-c', `${sample} --fail-with-body -s`]]));

  it('in TypeScript work', async () => {
    let count = 0;
    await runAll('TypeScript', async (sample) => {
      const file = join(directory, `sample${count++}.ts`);
      await writeFile(file, sample.replace('deckhand-client', join(ROOT, 'client/client.ts')));
      return [process.execPath, [file]];
    });
  });

  it.skipIf(!hasPython)('in Python work', () => runAll('Python', async (sample) => ['python3', ['-c', sample]]));
});

describe('the text of a sample', () => {
  const request = requestOf(CARDS, 'https://example.test', { body: { title: "It's", tags: [], more: {} } });

  it('in PHP', () => {
    expect(writeSample('PHP', { ...request, headers: { 'X-Project-Id': '2' } })).toBe(`<?php
$request = curl_init('https://example.test/api${CARDS}');
curl_setopt_array($request, [
    CURLOPT_POST => true,
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => [
        'Authorization: Bearer ' . getenv('TOKEN'),
        'Content-Type: application/json',
        'X-Project-Id: 2',
    ],
    CURLOPT_POSTFIELDS => json_encode([
        'title' => 'It\\'s',
        'tags' => [],
        'more' => new stdClass(),
    ]),
]);
print_r(json_decode(curl_exec($request), true));
`);
  });

  it('in Python', () => {
    expect(writeSample('Python', { ...request, body: { is_open: true, due: null } })).toBe(`import json
import os
import urllib.request

request = urllib.request.Request(
    'https://example.test/api${CARDS}',
    method='POST',
    headers={
        'Authorization': 'Bearer ' + os.environ['TOKEN'],
        'Content-Type': 'application/json',
    },
    data=json.dumps({
        'is_open': True,
        'due': None,
    }).encode(),
)
with urllib.request.urlopen(request) as response:
    print(json.load(response))
`);
  });

  it('never has a token', () => {
    for (const { write } of SAMPLES) expect(write(request)).toMatch(/\bTOKEN\b/);
  });

  it.each([
    ['TypeScript', TYPESCRIPT, "{\n  a: {},\n  'b c': [\n    1.5,\n    false,\n  ],\n  d: '\"\\'\\\\',\n}"],
    ['Python', PYTHON, "{\n  'a': {},\n  'b c': [\n    1.5,\n    False,\n  ],\n  'd': '\"\\'\\\\',\n}"],
    ['PHP', PHP, "[\n  'a' => new stdClass(),\n  'b c' => [\n    1.5,\n    false,\n  ],\n  'd' => '\"\\'\\\\',\n]"],
  ])('has literals of %s', (_, language, expected) => {
    expect(literal({ a: {}, 'b c': [1.5, false], d: '"\'\\' }, language)).toBe(expected);
  });
});
