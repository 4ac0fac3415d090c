import { writeFileSync } from 'node:fs';
import { removeProcesses } from '../harness/process.ts';
import { FILE, makeCalls, pretty } from './answers.ts';

/**
 * `npm run recording`: makes the calls of calls.ts and writes the answers to answers.json, which a test compares with.
 *
 * Right only when a call is added, or when the specified interface changes on purpose: then docs/changelog.md names the change, and
 * the differences of answers.json are exactly that change. An answer that changed by accident is a bug.
 */
try {
  const recording = await makeCalls();
  writeFileSync(FILE, `${pretty(recording)}\n`);
  console.log(`${Object.keys(recording).length} answers in ${FILE}`);
} finally {
  await removeProcesses();
}
