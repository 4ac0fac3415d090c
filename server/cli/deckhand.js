#!/usr/bin/env node
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The command line, in JavaScript: an older Node than the project's own can't run TypeScript, but starts one that can. */

const [major, minor] = process.versions.node.split('.').map(Number);
if (major > 22 || (major === 22 && minor >= 18)) await import('./main.ts');
else runWithOwnNode();

function runWithOwnNode() {
  const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
  const words = [path('main.ts'), ...process.argv.slice(2)];
  const child = spawn(path('../../node_modules/.bin/node'), words, { stdio: 'inherit' });
  child.on('error', () => {
    console.error(`Deckhand needs Node 22.18 or later; this is ${process.version}. Run npm ci, which brings Node 24.`);
    process.exitCode = 1;
  });
  // Ctrl-C reaches both processes; the other one decides what it means.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.removeAllListeners(signal ?? '');
    if (signal) process.kill(process.pid, signal);
    else process.exitCode = code;
  });
}
