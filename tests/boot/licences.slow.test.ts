import { expect, it } from 'vitest';
import { type Component, packagesOfService, readBill } from '../../server/package/sbom.ts';

/** Licences that allow any use, and ask for nothing but their text. */
const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
];

/** Tools that no package of ours contains. */
const OF_TOOLS = ['CC-BY-4.0', 'CC0-1.0', 'MPL-2.0', 'Python-2.0'];

const licenceOf = ({ licenses = [] }: Component) =>
  licenses.map(({ license, expression }) => license?.id ?? expression ?? 'unknown').join(' and ') || 'none';

it('every package has a licence that allows to pass it on', async () => {
  const [{ components }, needed] = await Promise.all([readBill(), packagesOfService()]);
  const listed = new Set(components.map((component) => component['bom-ref']));

  expect(needed.filter((name) => !listed.has(name))).toEqual([]);
  expect(needed.join(' ')).toContain('@trpc/server@');
  const refused = components.filter((component) => {
    const allowed = needed.includes(component['bom-ref']) ? ALLOWED : [...ALLOWED, ...OF_TOOLS];
    const choices = licenceOf(component).replaceAll(/[()]/g, '').split(' OR ');
    return !choices.some((licence) => allowed.includes(licence));
  });
  expect(refused.map((component) => `${component['bom-ref']}: ${licenceOf(component)}`)).toEqual([]);
});
