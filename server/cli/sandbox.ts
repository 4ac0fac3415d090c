import type { Description } from '../../client/testing/sandbox/description.ts';
import { SandboxMisuse } from '../../client/testing/sandbox/misuse.ts';
import { startSandbox } from '../../client/testing/sandbox/sandbox.ts';
import type { SandboxState } from '../../client/testing/sandbox/states.ts';
import { isLoopback } from '../runtime/host.ts';
import { startFailure } from '../runtime/startFailure.ts';
import type { Given, Outcome } from './command.ts';
import { misuse } from './misuse.ts';

type Options = { state?: SandboxState; port?: number; host?: string; receivers?: string[] };

const SANDBOX_PORT = 3100;

/** Runs a sandbox until Ctrl-C. */
export async function runSandbox({ input, terminal, chosen }: Given): Promise<Outcome> {
  const options = input as Options;
  const { port = SANDBOX_PORT, host = '127.0.0.1' } = options;
  const stopped = Promise.withResolvers<void>();
  const endInterrupts = terminal.onInterrupt(stopped.resolve);
  const sandbox = await startSandbox({ ...options, host, port }).catch((error: NodeJS.ErrnoException) => {
    const { code, message } = error;
    if (error instanceof SandboxMisuse) throw misuse(`--${message}`);
    const inUse = `--port: ${port} is in use; choose another one, as in --port ${port + 1}, or 0 for a free one.`;
    throw startFailure(code === 'EADDRINUSE' ? inUse : `The sandbox did not start: ${message}`, error);
  });
  // The sandbox itself does not keep the process alive.
  const alive = setInterval(() => undefined, 1_000_000);
  try {
    const description = sandbox.describe();
    await terminal.print(chosen.json ? JSON.stringify(description) : greetingOf(description, host));
    await stopped.promise;
  } finally {
    clearInterval(alive);
    endInterrupts();
    await sandbox.stop();
  }
  return { result: undefined, isPrinted: true };
}

function greetingOf({ url, state, people, warning }: Description, host: string): string {
  const keys = Object.values(people).map(({ role, key }) => `  ${role.padEnd(11)} ${key}`);
  const reach = isLoopback(host) ? '' : `\nEverybody who reaches this machine on ${host} can use it.`;
  return `
The sandbox listens on ${url} with the state ${state}.
${warning}${reach}

API keys of project 1:
${keys.join('\n')}

  curl ${url}/_sandbox
  curl -X POST ${url}/_sandbox/reset -d '{"state": "empty"}'

docs/sandbox.md has states, clock and faults. Ctrl-C ends it.`;
}
