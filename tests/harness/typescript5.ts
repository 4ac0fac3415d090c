import { registerHooks } from 'node:module';

/** For a generator that needs an API of TypeScript 5: it is installed as `typescript-5`. */
registerHooks({
  resolve: (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context),
});
