import { join } from 'node:path';
import { bundleClient } from './bundle.ts';
import { ROOT } from './tarball.ts';

/** The client as a module for the pages of the service, with the licences of its dependencies. */
export async function printPageClient(): Promise<string> {
  const { code, licences } = await bundleClient(join(ROOT, 'client/client.ts'));
  return `/*!\nMade from client/client.ts. It contains:\n\n${licences.trim()}\n*/\n${code}`;
}

if (import.meta.main) process.stdout.write(await printPageClient());
