import { makeBundle } from '../../server/package/serviceBundle.ts';

/** Programs that tests start run from the bundle, as they do after `npm ci`, also after a source has changed. */
export default makeBundle;
