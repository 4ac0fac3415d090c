import type { ClientOptions } from './options.ts';
import { VERSION } from './version.ts';

/** The oldest service that this client works with. Raise it with the first call or option that an older one does not know. */
export const NEEDED_SERVICE = '1.0.0';

/** The same options, with a `fetch` that sends the version of the client, and warns once if the service does not fit it. */
export function withVersions(options: ClientOptions): ClientOptions {
  let hasWarned = false;

  /** Without the header nothing is known: a proxy removed it, or the response is a fake of a test. */
  function checkVersion({ headers }: Response): void {
    const service = headers.get('x-deckhand-version') ?? '';
    const advice = hasWarned ? undefined : adviceFor(service);
    if (!advice) return;
    hasWarned = true;
    const { warn = console.warn } = options;
    const message = `The service at ${options.url} has version ${service}. This client (${VERSION}) ${advice}`;
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

/** Undefined for a service that fits, and for a text that is no version. */
function adviceFor(service: string): string | undefined {
  const [major, rank] = rankOf(service);
  if (rank < rankOf(NEEDED_SERVICE)[1])
    return `needs ${NEEDED_SERVICE} or later: some calls may fail. Upgrade the service first.`;
  if (major > rankOf(VERSION)[0])
    return 'is of an earlier major version: some calls may fail or have other results. Upgrade the client.';
  return undefined;
}

function rankOf(version: string): [major: number, rank: number] {
  const [, major, minor, patch] = /^(\d{1,5})\.(\d{1,5})\.(\d{1,5})(?!\d|\.)/.exec(version) ?? [];
  return [Number(major), Number(major) * 1e10 + Number(minor) * 1e5 + Number(patch)];
}
