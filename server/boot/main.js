import { runProgram } from '../runtime/bundle.js';
import { useCompileCache } from '../runtime/compileCache.js';
import { runWithTypeScript } from '../runtime/ownNode.js';

/** In JavaScript, so that a start with a filled cache does not load the compiler of TypeScript. */

await runWithTypeScript(async () => {
  useCompileCache();
  await runProgram('service', () => import('./run.ts'));
});
