import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleClient } from './bundle.ts';
import { ROOT } from './tarball.ts';

/** The client that the pages of the service load. Browsers read no TypeScript, and a production install has no bundler. */
export const PAGE_CLIENT = join(ROOT, 'server/web/pages/client.js');

export async function printPageClient(): Promise<string> {
  const { code, licences } = await bundleClient(join(ROOT, 'client/client.ts'));
  const heading = 'Made from client/client.ts by `npm run page-client`: change that instead.';
  return `// @ts-nocheck\n/*!\n${heading} It contains:\n\n${licences.trim()}\n*/\n${code}`;
}

if (import.meta.main) {
  await writeFile(PAGE_CLIENT, await printPageClient());
  console.log('Wrote server/web/pages/client.js');
}
