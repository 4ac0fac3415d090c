import packageJson from '../package.json' with { type: 'json' };

/** The version of this client. The package has the number itself instead of this file. */
export const VERSION = packageJson.version;
