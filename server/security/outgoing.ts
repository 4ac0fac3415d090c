import { lookup as systemLookup } from 'node:dns';
import http, { type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from './publicAddress.ts';

/** Calls addresses that strangers have chosen: only those on the internet, unless the operator allows their host. */
export type Outgoing = {
  /** Posts a body. Never throws: what went wrong is part of the outcome. */
  post: (url: string, headers: OutgoingHttpHeaders, body: string, signal?: AbortSignal) => Promise<Outcome>;
  close: () => void;
};

/** `error` is undefined after an answer of 2xx, and short enough to show; what was answered is never shown. */
export type Outcome = { status: number | undefined; error: string | undefined; milliseconds: number };

type Options = {
  /** Names of hosts, with or without a port. */
  allowedHosts: readonly string[];
  lookup?: LookupFunction;
  timeoutMilliseconds?: number;
};

/** Beyond this, the connection is closed. */
const MOST_ANSWER_BYTES = 4096;

export function makeOutgoing({
  allowedHosts,
  lookup = systemLookup as LookupFunction,
  timeoutMilliseconds = 15_000,
}: Options): Outgoing {
  const options = { keepAlive: true, maxFreeSockets: 50, timeout: timeoutMilliseconds };
  const agents = { 'http:': new http.Agent(options), 'https:': new https.Agent(options) };
  const checkedLookup = onlyPublic(lookup);

  const send = (url: URL, headers: OutgoingHttpHeaders, body: string, signal: AbortSignal) =>
    new Promise<number>((resolve, reject) => {
      const isSecure = url.protocol === 'https:';
      const request = (isSecure ? https : http).request(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        agent: agents[isSecure ? 'https:' : 'http:'],
        lookup: isAllowedHost(url, allowedHosts) ? lookup : checkedLookup,
        signal,
      });
      request.on('response', (response) => {
        discard(response);
        resolve(response.statusCode ?? 0);
      });
      // 101 is no success: the status is recorded, and the socket closed.
      request.on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response.statusCode ?? 0);
      });
      request.on('close', () => reject(new Error('The connection was closed.')));
      request.on('error', (error: NodeJS.ErrnoException) =>
        // The receiver closed an idle connection: the next attempt gets a new one.
        request.reusedSocket && error.code === 'ECONNRESET' && !signal.aborted
          ? resolve(send(url, headers, body, signal))
          : reject(error),
      );
      request.end(body);
    });

  return {
    post: async (address, headers, body, stop) => {
      const start = performance.now();
      const ended = (status: number | undefined, error: string | undefined): Outcome => ({
        status,
        error,
        milliseconds: Math.round(performance.now() - start),
      });
      const problem = addressProblem(address, allowedHosts);
      if (problem !== undefined) return ended(undefined, `The address ${problem}.`);
      const timeout = AbortSignal.timeout(timeoutMilliseconds);
      try {
        const status = await send(new URL(address), headers, body, stop ? AbortSignal.any([stop, timeout]) : timeout);
        return ended(status, answerProblem(status));
      } catch (error) {
        return ended(undefined, timeout.aborted ? 'There was no answer in time.' : connectionProblem(error));
      }
    },
    close: () => {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

/** What is wrong with an address, as the end of a sentence; undefined if it may be called. Names are checked when connecting. */
export function addressProblem(address: string, allowedHosts: readonly string[]): string | undefined {
  const url = URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be a URL that starts with https://';
  if (url.username !== '' || url.password !== '') return 'must have no user and no password';
  if (isAllowedHost(url, allowedHosts)) return undefined;
  if (url.protocol !== 'https:') return 'must start with https://';
  // Node does not call `lookup` for IP addresses.
  const literal = url.hostname.replace(/^\[|\]$/g, '');
  return isIP(literal) !== 0 && !isPublicAddress(literal) ? 'must be on the internet' : undefined;
}

function isAllowedHost({ hostname, port, protocol }: URL, allowedHosts: readonly string[]): boolean {
  const withPort = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
  return allowedHosts.some((host) => host === hostname || host === withPort);
}

class NotPublic extends Error {}

/** Resolves a name once, and gives its addresses to the connection only if all of them are on the internet. */
function onlyPublic(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '');
      const addresses = found as { address: string; family: number }[];
      const [first] = addresses;
      if (!first || !addresses.every(({ address }) => isPublicAddress(address)))
        return callback(new NotPublic('The address is not on the internet.'), '');
      return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
    });
}

/** Reads a short body, so that the connection can be used again, and closes the connection otherwise. */
function discard(response: IncomingMessage): void {
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) response.destroy();
  });
  // The status is known already.
  response.on('error', () => undefined);
}

function answerProblem(status: number): string | undefined {
  if (status >= 200 && status < 300) return undefined;
  return status >= 300 && status < 400
    ? `It answered ${status}: redirects are not followed.`
    : `It answered ${status}.`;
}

/** Without internals, such as addresses. */
function connectionProblem(error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (error instanceof NotPublic) return 'The address must be on the internet.';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'The host name was not found.';
  if (code === 'ECONNREFUSED') return 'The connection was refused.';
  if (/CERT|ERR_TLS|SIGNATURE|ISSUER|EPROTO|ERR_SSL/.test(code))
    return 'The TLS connection failed; check its certificate.';
  return 'The connection failed.';
}
