import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunningService } from '../../server/boot/start.ts';
import { makeCaller } from '../harness/caller.ts';
import { holdTimeStep } from '../harness/codes.ts';
import { givenDemoDirectory, removeProcesses } from '../harness/process.ts';
import { findTestServer, type ServerDatabase } from '../harness/server.ts';
import { givenFilledDatabase } from '../harness/serverTemplates.ts';
import { signInWithCode, startNode } from '../harness/usedService.ts';

const server = await findTestServer();

holdTimeStep();
afterEach(removeProcesses);

const FIRST = 'the very first secret of the service';
const SECOND = 'the second secret of the service';

describe('rotating JWT_SECRET', () => {
  it('re-encrypts second factors at the start, so the old secret no longer reads them', async () => {
    const DATA_DIR = await givenDemoDirectory();
    const serve = (settings: Record<string, string>) => startNode({ DATA_DIR, ...settings });

    // First the generated secret in the directory, then one from the settings.
    await (await serve({})).stop();
    await (await serve({ JWT_SECRET: FIRST })).stop();
    const rotated = await serve({ JWT_SECRET: SECOND, JWT_PREVIOUS_SECRETS: FIRST });
    expect((await signInWithCode(rotated.url)).status).toBe(200);
    await rotated.stop();

    const withFirstAlone = await serve({ JWT_SECRET: FIRST });
    expect((await signInWithCode(withFirstAlone.url)).status).toBe(500);
    await withFirstAlone.stop();
  });
});

/** The steps of docs/operating.md; a node is at one of them, or still at the one before. */
const STEPS: Record<string, string>[] = [
  { JWT_SECRET: FIRST },
  { JWT_SECRET: FIRST, JWT_PREVIOUS_SECRETS: SECOND },
  { JWT_SECRET: SECOND, JWT_PREVIOUS_SECRETS: FIRST },
  { JWT_SECRET: SECOND },
];

describe.skipIf(!server.url)('rotating JWT_SECRET on two nodes', () => {
  let database: ServerDatabase;
  const nodes: RunningService[] = [];
  const restart = async (at: number, step: number) => {
    await nodes[at]?.stop();
    nodes[at] = await startNode({ DATABASE_URL: database.url, ...STEPS[step] });
  };

  beforeAll(async () => {
    database = await givenFilledDatabase('rotation', 'demo');
  });
  afterAll(async () => {
    await Promise.all(nodes.map(({ stop }) => stop()));
    await database.remove();
  });

  /** Signs in with a second factor on each node; the statuses of a call with each token on each node. */
  const statuses = async (tokens: string[] = []) => {
    const found = [...tokens];
    for (const { url } of nodes) {
      const { status, body } = await signInWithCode(url);
      expect(status).toBe(200);
      found.push(body.data.token);
    }
    const calls = found.flatMap((token) => nodes.map(({ url }) => makeCaller(url, token).post(LIST)));
    return { found, statuses: [...new Set((await Promise.all(calls)).map(({ status }) => status))] };
  };
  const LIST = '/services/operations/v1/operations/boards/list';

  it('keeps every token and second factor valid on both nodes, one restart at a time', async () => {
    await restart(0, 0);
    await restart(1, 0);
    let kept: string[] = [];

    for (const step of [1, 2]) {
      for (const node of [0, 1]) {
        await restart(node, step);
        const { found, statuses: seen } = await statuses(kept);
        expect(seen, `step ${step} of node ${node}`).toEqual([200]);
        kept = found;
      }
    }

    // The last step comes when no token of the old secret is valid any more.
    const { found } = await statuses();
    for (const node of [0, 1]) {
      await restart(node, 3);
      expect((await statuses(found)).statuses).toEqual([200]);
    }
  });

  it('401 for tokens of the other node without the first step', async () => {
    await restart(0, 0);
    await restart(1, 2);
    const [, { url }] = nodes as [RunningService, RunningService];

    const { body } = await signInWithCode(url);

    const answers = nodes.map((node) => makeCaller(node.url, body.data.token).post(LIST));
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 200]);
  });
});
