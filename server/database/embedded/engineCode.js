import { readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';

/** In JavaScript, so that the thread of the embedded database starts without the compiler of TypeScript. */

/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/** PGlite's code. Other threads compile it: a start asks for it first, and loads its modules meanwhile. */
export function engineCode() {
  compiled ??= compile();
  return compiled;
}

/** For a start, before it loads other modules; a failure shows when the database opens. */
export function prepareEngine() {
  optimizeLater();
  engineCode().catch(() => undefined);
}

/**
 * Optimizing the code during the start costs more than it saves, and that of the parser of SQL takes 1.2 GB of memory for a
 * second: delays it as far as possible. It applies to what is compiled afterwards.
 */
export const optimizeLater = () => setFlagsFromString('--wasm-tiering-budget=2147483647');

async function compile() {
  const file = new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'));
  return WebAssembly.compile(await readFile(file));
}
