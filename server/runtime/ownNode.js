import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Runs a program in TypeScript. In JavaScript: an older Node than the project's own can't run TypeScript, but starts one that can.
 *
 * @param {() => Promise<unknown>} run
 */
export async function runWithTypeScript(run) {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) await run();
  else runWithOwnNode();
}

function runWithOwnNode() {
  const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
  const child = spawn(node, process.argv.slice(1), { stdio: 'inherit' });
  child.on('error', () => {
    console.error(
      `Deckhand needs Node 22.18 or later; this is ${process.version}. In a checkout, npm ci brings Node 24.`,
    );
    process.exitCode = 1;
  });
  // Ctrl-C reaches both processes; the other one decides what it means.
  /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']).forEach((signal) => {
    process.on(signal, () => child.kill(signal));
  });
  child.on('exit', (code, signal) => {
    process.removeAllListeners(signal ?? '');
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code;
  });
}
