import { readFile } from 'node:fs/promises';
import { setFlagsFromString } from 'node:v8';

let compiled: Promise<WebAssembly.Module> | undefined;

/** PGlite's code. Other threads compile it: a start asks for it first, and loads its modules meanwhile. */
export function engineCode(): Promise<WebAssembly.Module> {
  compiled ??= compile();
  return compiled;
}

/**
 * Optimizing the code during the start costs more than it saves: delays it. It applies to what is compiled afterwards.
 */
export const optimizeLater = () => setFlagsFromString('--wasm-tiering-budget=1000000000');

/** For the start of the service, before it loads other modules; a failure shows when the database opens. */
export function prepareEngine(): void {
  optimizeLater();
  engineCode().catch(() => undefined);
}

async function compile(): Promise<WebAssembly.Module> {
  const file = new URL('pglite.wasm', import.meta.resolve('@electric-sql/pglite'));
  return WebAssembly.compile(await readFile(file));
}
