import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { runCommandLine } from '../../server/cli/run.ts';
import type { Terminal } from '../../server/cli/terminal.ts';

/** Runs commands one after the other in one process: loading the command line takes longer than most commands. */

const server = createServer((socket) => void answer(socket)).listen(0, '127.0.0.1');
await once(server, 'listening');
console.log(`The command line listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`);

async function answer(socket: Socket): Promise<void> {
  const lines = createInterface(socket)[Symbol.asyncIterator]();
  const receive = async () => JSON.parse((await lines.next()).value ?? '""');
  const send = (message: object) => socket.write(`${JSON.stringify(message)}\n`);

  let replies: string[] | undefined;
  const terminal: Terminal = {
    canReply: false,
    canSee: false,
    width: Number.POSITIVE_INFINITY,
    ask: async () => {
      if (!replies) send({ isAsking: true });
      replies ??= ((await receive()) as string).split(/\r?\n/);
      return replies.shift() ?? '';
    },
    write: (text) => send({ complaint: text }),
    update: () => undefined,
    print: async (line) => void send({ printed: `${line}\n` }),
    // The program that passed the command on was ended.
    onInterrupt: (stop) => {
      socket.once('close', stop);
      return () => socket.off('close', stop);
    },
  };
  const { words, environment } = await receive();
  process.chdir(environment.PWD);
  const { exitCode, printed, complaint } = await runCommandLine(words, () => environment, terminal);
  send({ exitCode, printed: lineOf(printed), complaint: lineOf(complaint) });
  socket.end();
}

const lineOf = (text: string | undefined) => (text === undefined ? undefined : `${text}\n`);
