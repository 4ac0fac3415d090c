import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { readSettings } from '../../server/env.ts';
import { start } from '../../server/start.ts';
import { makeCaller } from '../harness/caller.ts';
import { codeAt, holdTimeStep } from '../harness/codes.ts';
import { givenDirectory, removeProcesses } from '../harness/process.ts';

holdTimeStep();
afterEach(removeProcesses);

const FIRST = 'the very first secret of the service';
const SECOND = 'the second secret of the service';

describe('exchanging JWT_SECRET', () => {
  it('encrypts second factors anew at the start: the old secret alone reads none of them', async () => {
    const DATA_DIR = await givenDirectory();
    const serve = (settings: NodeJS.ProcessEnv) =>
      start(readSettings({ DATA_DIR, PORT: '0', ...settings }), pino({ level: 'silent' }));
    const signIn = (url: string, code: string) =>
      makeCaller(url).post('/v1/authenticate', { email: 'otp@demo.test', password: 'demo-password', code });

    // Kept in the directory; set from then on.
    await (await serve({})).stop();
    await (await serve({ JWT_SECRET: FIRST })).stop();
    const exchanged = await serve({ JWT_SECRET: SECOND, JWT_PREVIOUS_SECRETS: FIRST });
    expect((await signIn(exchanged.url, codeAt(0))).status).toBe(200);
    await exchanged.stop();

    const withFirstAlone = await serve({ JWT_SECRET: FIRST });
    expect((await signIn(withFirstAlone.url, codeAt(1))).status).toBe(500);
    await withFirstAlone.stop();
  });
});
