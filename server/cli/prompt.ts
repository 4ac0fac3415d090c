import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

/** Prompts twice without echo; without a terminal, reads the first line of standard input. */
export async function askSecret(name: string): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).split(/\r?\n/, 1)[0]!;

  for (;;) {
    const first = await ask(`${name}: `);
    const second = await ask(`${name}, again: `);
    if (first === second) return first;
    console.error('They differ. Try again:');
  }
}

async function ask(question: string): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: NOWHERE, terminal: true });
  reader.on('SIGINT', () => {
    console.error();
    process.exit(130);
  });
  process.stderr.write(question);
  try {
    return await reader.question('');
  } finally {
    reader.close();
    console.error();
  }
}

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() });
