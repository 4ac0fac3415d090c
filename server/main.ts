import { enableCompileCache } from 'node:module';

// Before anything else is loaded: the next start then finds it compiled.
enableCompileCache();
await import('./run.ts');
