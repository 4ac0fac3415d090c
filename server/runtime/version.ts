import packageJson from '../../package.json' with { type: 'json' };

/** The version of this service. Its numbers are explained in docs/versions.md. */
export const VERSION = packageJson.version;
