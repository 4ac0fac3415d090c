import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where the files of the page are after `npm ci`, in a package and in an image. */
export const BUILT = join(import.meta.dirname, '../../dist/pages');
export const BUILT_ADDRESS = '/pages/built';

export type PageBuild = {
  script: string;
  styles: string[];
  /** Modules that the script imports, to load at once. */
  preloaded: string[];
  files: string[];
  /** Files of the build before, which a browser may still ask for while versions change. */
  before: string[];
  sources: string[];
  digest: string;
};

/** Undefined if the page was not built, as in an installation without development dependencies. */
export function readBuild(): PageBuild | undefined {
  try {
    return JSON.parse(readFileSync(join(BUILT, 'build.json'), 'utf8'));
  } catch {
    return undefined;
  }
}
