import { writeFileSync } from 'node:fs';
import { openApiDocument } from '../../server/api/openapi/document.ts';
import { BASELINE, unnamedBreaks } from './baseline.ts';

/**
 * `npm run document:release`: saves the document that later ones are compared with, with each new operation and each release.
 * Refuses while the changelog does not list a breaking change, since the new baseline would hide it.
 */
const document = openApiDocument();
const unnamed = unnamedBreaks(document);
if (unnamed.length > 0) {
  console.error(`List these in docs/changelog.md under "Unreleased", or undo them:\n- ${unnamed.join('\n- ')}`);
  process.exit(1);
}
// Without spaces: what is reviewed is the list of changes, not this file.
writeFileSync(BASELINE, `${JSON.stringify(document)}\n`);
console.log(`Wrote ${Object.keys(document.paths).length} operations to docs/openapi.json`);
