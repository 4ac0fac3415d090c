import { enableCompileCache } from 'node:module';

// Before all other imports, so that they are cached.
enableCompileCache();
await import('./run.ts');
