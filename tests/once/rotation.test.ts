import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { readSettings } from '../../server/env.ts';
import { start } from '../../server/start.ts';
import { makeCaller } from '../harness/caller.ts';
import { codeAt, holdTimeStep } from '../harness/codes.ts';
import { givenMigratedDirectory, removeProcesses } from '../harness/process.ts';

holdTimeStep();
afterEach(removeProcesses);

const FIRST = 'the very first secret of the service';
const SECOND = 'the second secret of the service';

describe('rotating JWT_SECRET', () => {
  it('re-encrypts second factors at the start, so the old secret no longer reads them', async () => {
    const DATA_DIR = await givenMigratedDirectory();
    const serve = (settings: NodeJS.ProcessEnv) =>
      start(readSettings({ DATA_DIR, PORT: '0', ...settings }), pino({ level: 'silent' }), () => undefined);
    const signIn = (url: string, code: string) =>
      makeCaller(url).post('/v1/authenticate', { email: 'otp@demo.test', password: 'demo-password', code });

    // First the generated secret in the directory, then one from the settings.
    await (await serve({})).stop();
    await (await serve({ JWT_SECRET: FIRST })).stop();
    const rotated = await serve({ JWT_SECRET: SECOND, JWT_PREVIOUS_SECRETS: FIRST });
    expect((await signIn(rotated.url, codeAt(0))).status).toBe(200);
    await rotated.stop();

    const withFirstAlone = await serve({ JWT_SECRET: FIRST });
    expect((await signIn(withFirstAlone.url, codeAt(1))).status).toBe(500);
    await withFirstAlone.stop();
  });
});
