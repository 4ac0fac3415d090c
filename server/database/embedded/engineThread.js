import { parentPort } from 'node:worker_threads';
import { useCompileCache } from '../../runtime/compileCache.js';
import { prepareEngine } from './engineCode.js';

/** The thread of the embedded database (`engine.ts`). It answers one request after the other. */

useCompileCache();
prepareEngine();
const { exchange, openPglite } = await import('./pglite.js');

/** @type {import('@electric-sql/pglite').PGlite | undefined} */
let engine;

parentPort?.on('message', async (/** @type {import('./engine.ts').Request} */ { dataDir, messages }) => {
  try {
    if (dataDir) engine = await openPglite({ dataDir });
    const responses = messages && engine && (await exchange(engine, messages));
    if (!dataDir && !messages) await engine?.close();
    parentPort?.postMessage({ responses });
  } catch (error) {
    // PGlite may throw something that is not an Error, such as an errno.
    const { message = JSON.stringify(error) } = /** @type {Partial<Error>} */ (error ?? {});
    parentPort?.postMessage({ failure: { message, isCrash: error instanceof WebAssembly.RuntimeError } });
  }
});
