import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT, readManifest, run } from './tarball.ts';

/** A package, as the format CycloneDX describes it. */
export type Component = {
  'bom-ref': string;
  name: string;
  licenses?: { license?: { id?: string }; expression?: string }[];
  externalReferences: { type: string; url: string }[];
};

type Bill = {
  metadata: { tools: object[] };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
};

/** All packages of the lock file, with their versions, hashes and licences. */
export async function readBill(): Promise<Bill> {
  // Building a bundle sets NODE_ENV to production, with which npm leaves out what tools of the development need, too.
  const options = ['--sbom-format', 'cyclonedx', '--package-lock-only', '--include', 'dev'];
  return JSON.parse(await run('npm', ['sbom', ...options], ROOT));
}

/**
 * Writes which packages one of ours contains, or needs: `name@1.0.0`. Without the time and place of this build, so that two builds
 * are equal.
 */
export async function writeBill(contents: string, name: string, listed: string[]): Promise<void> {
  const { metadata, components, dependencies, ...format } = await readBill();
  const { version } = await readManifest();
  const ref = `${name}@${version}`;
  const isListed = (each: string) => listed.includes(each);
  const bill = {
    ...format,
    serialNumber: undefined,
    metadata: {
      tools: metadata.tools,
      component: { 'bom-ref': ref, type: 'library', name, version, purl: `pkg:npm/${ref}` },
    },
    components: components
      .filter((component) => isListed(component['bom-ref']))
      // Where this machine has downloaded it from.
      .map(({ externalReferences, ...component }) => ({
        ...component,
        externalReferences: externalReferences.filter(({ type }) => type !== 'distribution'),
      })),
    dependencies: dependencies
      .filter((each) => isListed(each.ref))
      .map((each) => ({ ref: each.ref, dependsOn: each.dependsOn.filter(isListed) })),
  };
  await writeFile(join(contents, 'sbom.cdx.json'), JSON.stringify(bill, null, 2));
}

/** The packages that the service needs. `npm sbom --omit dev` forgets those that a tool of the development needs, too. */
export async function packagesOfService(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'));
  const all = Object.entries(packages as Record<string, { version: string; name?: string; dev?: boolean }>);
  return all.flatMap(([path, { version, dev, name = path.split('node_modules/').at(-1) }]) =>
    path === '' || dev ? [] : `${name}@${version}`,
  );
}
