import { setTimeout as pause } from 'node:timers/promises';
import { SMTPServer } from 'smtp-server';
import { makeCaller } from '../harness/caller.ts';
import { signIn } from '../harness/process.ts';
import { onDemoService } from './demoService.ts';
import { median } from './table.ts';

/**
 * Compares requests for a password reset of addresses with and without an account: `npm run bench:reset`. Each address is asked for
 * once, so that each request queues a mail. A mail server on this machine takes what is sent meanwhile.
 */

const SAMPLES = 200;
/** Before the samples, for the first statements and the compiler. */
const WARM_UP = 20;
/** Longer than a mail takes to be sent, so that a request does not wait for the mail of the one before. */
const PAUSE_MILLISECONDS = 150;
/** `control` addresses have no account either. */
const KINDS = ['known', 'unknown', 'control'] as const;
type Kind = (typeof KINDS)[number];
const PATH = '/v1/account/request-password-reset';

const server = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS'],
  onData: (stream, _session, done) => {
    stream.on('end', () => done()).resume();
  },
});
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
const { port } = server.server.address() as { port: number };
const more = {
  SMTP_URL: `smtp://127.0.0.1:${port}`,
  MAIL_FROM: 'deckhand@example.test',
  TRUST_PROXY: '127.0.0.1',
};
await onDemoService(measureResets, { more });
server.close();

async function measureResets(url: string) {
  const addressOf = (kind: Kind, at: number) => `${kind}-${at}@demo.test`;
  const admin = await signIn(url, 'admin@demo.test');
  const account = { name: 'A', password: 'a sentence of many words' };
  for (let at = 0; at < SAMPLES + WARM_UP; at++)
    await admin.rpc.users.create.mutate({ ...account, email: addressOf('known', at) });

  const asNobody = makeCaller(url);
  const times: Record<Kind, number[]> = { known: [], unknown: [], control: [] };
  for (let at = 0; at < SAMPLES + WARM_UP; at++) {
    // In random order, since mails are sent in turns of their own. From many networks, since each has a limit.
    for (const kind of KINDS.toSorted(() => Math.random() - 0.5)) {
      await pause(PAUSE_MILLISECONDS);
      const begun = performance.now();
      const headers = { 'x-forwarded-for': `10.1.${Math.floor(at / 20)}.1` };
      const { status } = await asNobody.post(PATH, { email: addressOf(kind, at) }, headers);
      if (status !== 200) throw new Error(`${status} instead of 200`);
      if (at >= WARM_UP) times[kind].push(performance.now() - begun);
    }
  }
  for (const kind of KINDS) {
    const quarter = times[kind].toSorted((one, other) => one - other)[SAMPLES / 4] ?? 0;
    console.log(`${kind}: median ${median(times[kind]).toFixed(2)} ms, fastest quarter ${quarter.toFixed(2)} ms`);
  }
  console.log(`${SAMPLES} samples each. The difference of unknown and control, both without an account, is the noise.`);
}
