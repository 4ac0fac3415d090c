import { buildPages } from '../../server/package/pageBuild.ts';
import { makeBundle } from '../../server/package/serviceBundle.ts';
import { removeTemplates } from './serverTemplates.ts';

/** Programs that tests start run from the bundle, and the page is built, as after `npm ci`, also after a source has changed. */
export default async function makeBuilds() {
  await Promise.all([makeBundle(), buildPages()]);
  return removeTemplates;
}
