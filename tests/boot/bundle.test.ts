import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const LOADER = 'server/runtime/bundle.js';
const CACHE = 'node_modules/.cache/deckhand-service';

const checkouts: string[] = [];
afterEach(async () => {
  await Promise.all(checkouts.splice(0).map((directory) => rm(directory, { recursive: true })));
});

/** A checkout with one source and, if it is given, a bundle of it. */
async function givenCheckout(bundle?: { of: string }) {
  const checkout = await mkdtemp(join(tmpdir(), 'deckhand-bundle-'));
  checkouts.push(checkout);
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(checkout, path)), { recursive: true });
    await writeFile(join(checkout, path), text);
  };
  await mkdir(join(checkout, dirname(LOADER)), { recursive: true });
  await copyFile(join(import.meta.dirname, '../..', LOADER), join(checkout, LOADER));
  const { runProgram, digestOf } = await import(pathToFileURL(join(checkout, LOADER)).href);
  await write('server/a.ts', bundle?.of ?? '1');
  if (bundle) {
    const digest = digestOf(['server/a.ts']);
    await write(`${CACHE}/bundle.json`, JSON.stringify({ directory: 'made', sources: ['server/a.ts'], digest }));
    await write(`${CACHE}/made/service.mjs`, '');
  }
  const run = async () => {
    let ran = 'the bundle';
    await runProgram('service', async () => {
      ran = 'the sources';
    });
    return ran;
  };
  return { checkout, write, run, digestOf };
}

describe('a program', () => {
  it('runs from the bundle of its sources', async () => {
    const { run } = await givenCheckout({ of: '1' });

    expect(await run()).toBe('the bundle');
  });

  it('runs from the sources without a bundle', async () => {
    const { run } = await givenCheckout();

    expect(await run()).toBe('the sources');
  });

  it('runs from the sources after one of them has changed, or is gone', async () => {
    const { checkout, write, run } = await givenCheckout({ of: '1' });

    await write('server/a.ts', '2');
    expect(await run()).toBe('the sources');
    await write('server/a.ts', '1');
    expect(await run()).toBe('the bundle');
    await rm(join(checkout, 'server/a.ts'));
    expect(await run()).toBe('the sources');
  });

  it('runs from the sources if the bundle is damaged', async () => {
    const { checkout, write, run } = await givenCheckout({ of: '1' });

    await rm(join(checkout, CACHE, 'made'), { recursive: true });
    expect(await run()).toBe('the sources');
    await write(`${CACHE}/bundle.json`, '{"directory":');
    expect(await run()).toBe('the sources');
  });

  it('of a package runs from the bundle that came with it', async () => {
    const { write, run, digestOf } = await givenCheckout();

    await write('dist/service/bundle.json', JSON.stringify({ directory: '.', sources: [], digest: digestOf([]) }));
    await write('dist/service/service.mjs', '');
    expect(await run()).toBe('the bundle');
  });
});

describe('what a start loads first', () => {
  it.each(['bundle', 'compileCache', 'ownNode'])(
    'can be loaded by Node 20, which lacks parts of node:module: %s.js',
    async (name) => {
      const text = await readFile(join(import.meta.dirname, `../../server/runtime/${name}.js`), 'utf8');

      // A missing name would end the start before it can choose the Node of the project.
      expect(text).not.toMatch(/import \{[^}]*\} from 'node:module'/);
    },
  );
});
