#!/usr/bin/env node
import { useCompileCache } from '../runtime/compileCache.js';
import { runWithTypeScript } from '../runtime/ownNode.js';

/** The command line. */

await runWithTypeScript(async () => {
  useCompileCache();
  await import('./main.ts');
});
