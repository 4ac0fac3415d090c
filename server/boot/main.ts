import { enableCompileCache } from 'node:module';

// Before all other imports, so that the next start uses the compiled code.
enableCompileCache();
await import('./run.ts');
