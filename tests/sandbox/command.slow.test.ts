import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findBundle } from '../../server/runtime/bundle.js';
import { SETTINGS } from '../../server/runtime/env.ts';
import { blocksOf, textOf } from '../harness/documentation.ts';
import {
  givenDemoSettings,
  givenDirectory,
  removeProcesses,
  runToEnd,
  type StartedService,
  startProgram,
  startService,
} from '../harness/process.ts';
import { callerOf, givenReceiver, keyOf, titlesOf } from '../harness/sandbox.ts';

const COMMAND = 'server/cli/deckhand.js';

let sandbox: StartedService;
beforeAll(async () => {
  sandbox = await startProgram([COMMAND, 'sandbox', '--port', '0', '--state', 'empty'], {});
});
afterAll(removeProcesses);

describe('npx deckhand sandbox', () => {
  it('listens on this machine alone, and prints the keys and what it is not for', async () => {
    expect(new URL(sandbox.url).hostname).toBe('127.0.0.1');
    expect(sandbox.printed()).toContain('it forgets everything when it ends');
    for (const role of ['superadmin', 'owner', 'member', 'viewer', 'service'])
      expect(sandbox.printed()).toContain(keyOf(role));
    expect(await callerOf(sandbox.url).describe()).toMatchObject({ url: sandbox.url, state: 'empty' });
    expect(await titlesOf(callerOf(sandbox.url))).toEqual([]);
  });

  it('fails if the port is in use, or the state or a receiver is wrong, and says what to do', async () => {
    const { port } = new URL(sandbox.url);

    const inUse = await runToEnd([COMMAND, 'sandbox', '--port', port]);
    const unknown = await runToEnd([COMMAND, 'sandbox', '--state', 'full']);
    const wrong = await runToEnd([COMMAND, 'sandbox', '--port', '0', '--receivers', 'http://app']);

    expect(inUse).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`--port: ${port} is in use; choose another`),
    });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('large_board') });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--receivers must be names of hosts') });
    expect(wrong.stderr).not.toContain('WEBHOOK_ALLOWED_HOSTS');
  });

  it('sends nothing to a proxy of the environment, and ends with SIGTERM, also while a stream is open', async () => {
    const proxied: string[] = [];
    const proxy = createServer(({ method, url }, response) => {
      proxied.push(`${method} ${url}`);
      response.writeHead(502).end();
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const settings = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: address, http_proxy: address };

    const other = await startProgram([COMMAND, 'sandbox', '--port', '0', '--state', 'rollout'], settings);
    const receiver = await givenReceiver(callerOf(other.url));
    receiver.close();
    const streamed = await fetch(`${other.url}/api/services/platforms/v1/events/stream`, {
      headers: { authorization: `Bearer ${keyOf('member')}` },
    });

    expect(await other.stop('SIGTERM')).toMatchObject({ code: 0 });
    await expect(streamed.text()).rejects.toThrow();
    proxy.close();
    expect(proxied).toEqual([]);
  });

  it('ends with a program that started one, and did not stop it', async () => {
    const file = join(await givenDirectory(), 'left.mjs');
    const kit = new URL('../../client/testing/testing.ts', import.meta.url).href;
    await writeFile(
      file,
      `import { startSandbox } from '${kit}';
       const { url } = await startSandbox({ state: 'empty' });
       console.log((await fetch(url + '/health/live')).status);
       setTimeout(() => process.exit(7), 20_000).unref();`,
    );

    expect(await runToEnd([file])).toMatchObject({ code: 0, stdout: '200\n', stderr: '' });
  });

  const hasPython = spawnSync('python3', ['--version']).status === 0;
  it.skipIf(!hasPython)('serves the test of the guide', async () => {
    const code = blocksOf('docs/sandbox.md').find(({ language }) => language === 'python')?.code ?? '';
    const file = join(await givenDirectory(), 'test_cards.py');
    await writeFile(file, code.replace('http://127.0.0.1:3100', sandbox.url));

    const child = spawn('python3', [file]);
    let printed = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (printed += text));
    const status = await new Promise((resolve) => child.on('close', resolve));

    expect([status, printed]).toEqual([0, expect.stringContaining('Ran 3 tests')]);
  });

  it('has the keys of the guide', () => {
    const named = textOf('docs/sandbox.md').match(/dkh_\w{20,}/g);

    expect(named).toEqual([keyOf('member')]);
  });
});

describe('the service without a sandbox', () => {
  it('has no path and no setting of it', async () => {
    const service = await startService(await givenDemoSettings());
    const { send } = callerOf(service.url);

    expect((await send('GET', '/_sandbox')).status).toBe(404);
    expect((await send('POST', '/_sandbox/reset', { state: 'empty' })).status).toBe(404);
    expect(
      (await send('POST', '/api/v1/account/who-am-i', {}, { authorization: `Bearer ${keyOf('superadmin')}` })).status,
    ).toBe(401);
    expect(SETTINGS.filter((name) => /SANDBOX|FAULT|CLOCK/.test(name))).toEqual([]);
  });

  it('is bundled without it', () => {
    const directory = fileURLToPath(findBundle()!);
    const files = readdirSync(directory).filter((name) => name.endsWith('.mjs'));
    const wordsIn = (program: string) => {
      const found = new Set([program]);
      for (const part of found) {
        const text = readFileSync(join(directory, part), 'utf8');
        for (const name of files) if (text.includes(`./${name}`)) found.add(name);
      }
      const texts = [...found].map((name) => readFileSync(join(directory, name), 'utf8'));
      return ['/_sandbox', 'fillSandbox'].filter((word) => texts.some((text) => text.includes(word)));
    };

    expect(wordsIn('commandLine.mjs')).toEqual(['/_sandbox']);
    expect(wordsIn('testing.mjs')).toEqual(['fillSandbox']);
    expect(wordsIn('service.mjs')).toEqual([]);
  });
});
