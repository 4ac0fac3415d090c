#!/usr/bin/env node
import { runProgram } from '../runtime/bundle.js';
import { useCompileCache } from '../runtime/compileCache.js';
import { runWithTypeScript } from '../runtime/ownNode.js';

/** The command line. */

await runWithTypeScript(async () => {
  useCompileCache();
  await runProgram('commandLine', () => import('./main.ts'));
});
