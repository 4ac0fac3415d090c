import type { ClientOptions } from './options.ts';
import { VERSION } from './version.ts';

/** The oldest service that this client works with. Raise it with the first call or option that an older one does not know. */
export const NEEDED_SERVICE = '1.0.0';

/** The same options, with a `fetch` that sends the version of the client, and warns once if the service is too old for it. */
export function withVersions(options: ClientOptions): ClientOptions {
  let hasWarned = false;

  /** Without the header nothing is known: a proxy removed it, or the response is a fake of a test. */
  function checkVersion({ headers }: Response): void {
    const service = headers.get('x-deckhand-version') ?? '';
    if (hasWarned || !isOlder(service, NEEDED_SERVICE)) return;
    hasWarned = true;
    const { warn = console.warn } = options;
    const message = `The service at ${options.url} has version ${service}. This client (${VERSION}) needs ${NEEDED_SERVICE} or later: some calls may fail. Upgrade the service first.`;
    // A broken logger must not fail the call, nor end the process.
    if (warn) (async () => warn(message))().catch(() => undefined);
  }

  return {
    ...options,
    fetch: async (address, request) => {
      const headers = { ...(request?.headers as Record<string, string>), 'x-deckhand-client': VERSION };
      const response = await (options.fetch ?? fetch)(address, { ...request, headers });
      checkVersion(response);
      return response;
    },
  };
}

/** Whether a version is lower than another one; never for a text that is no version. */
const isOlder = (version: string, needed: string) => rankOf(version) < rankOf(needed);

function rankOf(version: string): number {
  const [, major, minor, patch] = /^(\d{1,5})\.(\d{1,5})\.(\d{1,5})(?!\d|\.)/.exec(version) ?? [];
  return Number(major) * 1e10 + Number(minor) * 1e5 + Number(patch);
}
