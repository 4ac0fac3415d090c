import { runProgram } from '../../runtime/bundle.js';
import { useCompileCache } from '../../runtime/compileCache.js';

/** A whole Deckhand in a worker thread, for the tests of other projects. `deckhand-client/testing` starts it. */

useCompileCache();
await runProgram('testing', () => import('./thread.ts'));
