import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Keeps compiled code for the next start. In JavaScript, and called before any TypeScript is loaded, since that would load the
 * compiler. Without a writable directory it is only slower.
 */
export function useCompileCache() {
  const { NODE_COMPILE_CACHE, XDG_CACHE_HOME } = process.env;
  try {
    // Not in /tmp, where another user could have put code.
    module.enableCompileCache(NODE_COMPILE_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'deckhand'));
  } catch {
    // `homedir` throws for a user without an entry in the list of users and without HOME.
  }
}
