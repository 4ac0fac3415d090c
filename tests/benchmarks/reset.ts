import { setTimeout as pause } from 'node:timers/promises';
import { SMTPServer } from 'smtp-server';
import { bytesOf, median, open, percentiles } from '../harness/load.ts';
import { signIn } from '../harness/process.ts';
import { givenDemo } from './programs.ts';
import type { Run } from './run.ts';
import { precise, type Table } from './table.ts';

const SAMPLES = 200;
/** Before the samples, for the first statements and the compiler. */
const WARM_UP = 20;
/** Longer than a mail takes to be sent, so that a request does not wait for the mail of the one before. */
const PAUSE_MILLISECONDS = 150;
/** `control` addresses have no account either. */
const KINDS = ['known', 'unknown', 'control'] as const;
type Kind = (typeof KINDS)[number];

/** Requests for a password reset must take as long for an unknown address as for a known one. Each address is asked for once, so that each queues a mail. */
export async function measureReset({ isEmbedded, rounds: samples = SAMPLES }: Run): Promise<Table[]> {
  const mails = await startMailServer();
  const mail = { SMTP_URL: mails.url, MAIL_FROM: 'deckhand@example.test', TRUST_PROXY: '127.0.0.1' };
  const { url, stop } = await (await givenDemo({ isEmbedded }, mail)).start();
  const addressOf = (kind: Kind, at: number) => `${kind}-${at}@demo.test`;
  const { rpc } = await signIn(url, 'admin@demo.test');
  const account = { name: 'A', password: 'a sentence of many words' };
  for (let at = 0; at < samples + WARM_UP; at++)
    await rpc.users.create.mutate({ ...account, email: addressOf('known', at) });

  const times: Record<Kind, number[]> = { known: [], unknown: [], control: [] };
  const path = '/api/v1/account/request-password-reset';
  const { send, close: hangUp } = await open(url, { path }, 200);
  for (let at = 0; at < samples + WARM_UP; at++) {
    // In random order, since mails are sent in turns of their own. From many networks, since each has a limit.
    for (const kind of KINDS.toSorted(() => Math.random() - 0.5)) {
      await pause(PAUSE_MILLISECONDS);
      const headers = { 'X-Forwarded-For': `10.1.${Math.floor(at / 20)}.1` };
      const time = await send(bytesOf(url, { path, body: JSON.stringify({ email: addressOf(kind, at) }), headers }));
      if (at >= WARM_UP) times[kind].push(time);
    }
  }
  hangUp();
  await stop();
  mails.close();
  const rows = KINDS.map((kind) => [
    kind,
    ...[median(times[kind]), ...percentiles(times[kind], 0.25)].map((time) => precise(time)),
  ]);
  const note = `${samples} samples each. The difference of unknown and control, both without an account, is the noise.`;
  return [{ title: 'Requests for a password reset', columns: ['address', 'median ms', 'fastest quarter'], rows, note }];
}

/** Takes every mail. */
async function startMailServer() {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, _session, done) => {
      stream.on('end', () => done()).resume();
    },
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as { port: number };
  return { url: `smtp://127.0.0.1:${port}`, close: () => server.close() };
}
