import { createHash } from 'node:crypto';
import { existsSync, readFileSync, utimesSync } from 'node:fs';

/** In JavaScript, so that a start from the bundle does not load the compiler of TypeScript. */

const ROOT = new URL('../../', import.meta.url);

/** Where a bundle is described: that of a package or an image, and that of a checkout. */
const PLACES = ['dist/service/bundle.json', 'node_modules/.cache/deckhand-service/bundle.json'];

/**
 * Runs a program from the bundle if it was made from these sources, else from the sources.
 *
 * @param {string} name
 * @param {() => Promise<unknown>} runSource
 */
export async function runProgram(name, runSource) {
  const bundle = findBundle();
  const program = bundle && new URL(`${name}.mjs`, bundle);
  if (!program || !existsSync(program)) return runSource();
  noteUse(bundle);
  // Stack traces name the sources.
  process.setSourceMapsEnabled(true);
  return import(program.href);
}

/**
 * Old bundles are removed, but not those in use.
 *
 * @param {URL} bundle
 */
function noteUse(bundle) {
  try {
    utimesSync(bundle, new Date(), new Date());
  } catch {
    // Read-only, as in an image: nobody removes it.
  }
}

/** The directory of the bundle that was made from these sources, if any. */
export function findBundle() {
  for (const place of PLACES) {
    try {
      const described = new URL(place, ROOT);
      const { directory, sources, digest } = JSON.parse(readFileSync(described, 'utf8'));
      if (digestOf(sources) === digest) return new URL(`${directory}/`, described);
    } catch {
      // There is none, or a source is gone.
    }
  }
  return undefined;
}

/**
 * Of the contents of these files of the repository.
 *
 * @param {string[]} sources
 * @returns {string}
 */
export function digestOf(sources) {
  const hash = createHash('sha1');
  for (const source of sources) hash.update(`${source}\n`).update(readFileSync(new URL(source, ROOT)));
  return hash.digest('hex');
}
