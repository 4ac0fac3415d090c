import { createHash } from 'node:crypto';
import { existsSync, readFileSync, utimesSync } from 'node:fs';
import module from 'node:module';

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
  nameSources(bundle);
  shareKysely(bundle);
  return import(program.href);
}

/**
 * Kysely has hundreds of files: importing its single one takes a tenth of a second less. Packages outside the bundle import it,
 * too, and must get the same.
 *
 * @param {URL} bundle
 */
function shareKysely(bundle) {
  const file = new URL('kysely.mjs', bundle);
  if (!existsSync(file)) return;
  module.registerHooks({
    resolve: (name, context, next) =>
      name === 'kysely' ? { url: file.href, format: 'module', shortCircuit: true } : next(name, context),
  });
}

/**
 * Lets stack traces name the sources. Node's own source maps are read at the start, also if no stack is ever printed.
 *
 * @param {URL} bundle
 */
function nameSources(bundle) {
  /** @type {Map<string, module.SourceMap | undefined>} */
  const maps = new Map();
  /** @param {string} url */
  const mapOf = (url) => {
    if (!maps.has(url)) maps.set(url, readMap(`${url}.map`));
    return maps.get(url);
  };
  const place = /file:[^()\s]+\.mjs(?=:\d+:\d+)/;
  Error.prepareStackTrace = (error, frames) => {
    const lines = frames.map((frame) => {
      const line = String(frame);
      const [url] = (line.includes(bundle.href) && place.exec(line)) || [];
      const found = url && mapOf(url)?.findOrigin(frame.getLineNumber() ?? 0, frame.getColumnNumber() ?? 0);
      if (!found || !('fileName' in found)) return line;
      const source = new URL(found.fileName, url).href;
      return line.replace(/file:[^()\s]+:\d+:\d+/, `${source}:${found.lineNumber}:${found.columnNumber}`);
    });
    return [String(error), ...lines.map((line) => `    at ${line}`)].join('\n');
  };
}

/** @param {string} url */
function readMap(url) {
  try {
    return new module.SourceMap(JSON.parse(readFileSync(new URL(url), 'utf8')));
  } catch {
    return undefined;
  }
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
