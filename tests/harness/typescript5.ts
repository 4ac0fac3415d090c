import { registerHooks } from 'node:module';

/** For a generator that builds on what TypeScript 7 no longer offers: gives it TypeScript 5, which is here by another name. */
registerHooks({
  resolve: (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context),
});
