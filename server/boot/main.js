import { useCompileCache } from '../runtime/compileCache.js';

/** In JavaScript, so that a start with a filled cache does not load the compiler of TypeScript. */

useCompileCache();
await import('./run.ts');
