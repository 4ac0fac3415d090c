import http, { type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type FindAddresses, makeAddressFinder, UnknownHost } from './hostAddresses.ts';
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
  /** Names of hosts with a port; 443 without one. */
  allowedHosts: readonly string[];
  findAddresses?: FindAddresses;
  timeoutMilliseconds?: number;
};

/** Beyond one of these, the connection is closed. */
const MOST_ANSWER_BYTES = 4096;
const LONGEST_BODY_MILLISECONDS = 1000;
/** Interim responses (1xx) before the answer: parsing endless ones would keep the node busy. */
const MOST_INTERIM_ANSWERS = 5;

/** For each host, which may be that of receivers of many projects. Idle connections are closed soon. */
const SOCKETS = { keepAlive: true, maxSockets: 100, maxFreeSockets: 2, timeout: 5000 };

export function makeOutgoing({
  allowedHosts,
  findAddresses = makeAddressFinder(),
  timeoutMilliseconds = 15_000,
}: Options): Outgoing {
  const agents = { 'http:': new http.Agent(SOCKETS), 'https:': new https.Agent(SOCKETS) };

  const send = (url: URL, headers: OutgoingHttpHeaders, body: string, signal: AbortSignal) =>
    new Promise<Answer>((resolve, reject) => {
      const isSecure = url.protocol === 'https:';
      const request = (isSecure ? https : http).request(url, {
        method: 'POST',
        headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        agent: agents[isSecure ? 'https:' : 'http:'],
        lookup: lookupWith(findAddresses, { isInternal: isAllowedHost(url, allowedHosts), signal }),
        signal,
      });
      request.on('response', (response) =>
        resolve({ status: response.statusCode ?? 0, bodyEnded: discardBody(response) }),
      );
      let interim = 0;
      request.on('information', () => {
        if (++interim > MOST_INTERIM_ANSWERS) request.destroy(new Error('It sent too many interim answers.'));
      });
      // 101 is no success: the status is recorded, and the socket closed.
      request.on('upgrade', (response, socket) => {
        socket.destroy();
        resolve({ status: response.statusCode ?? 0 });
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
        const signal = stop ? AbortSignal.any([stop, timeout]) : timeout;
        const { status, bodyEnded } = await send(new URL(address), headers, body, signal);
        const outcome = ended(status, answerProblem(status));
        await bodyEnded;
        return outcome;
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

export function isAllowedHost({ hostname, port, protocol }: URL, allowedHosts: readonly string[]): boolean {
  const called = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`;
  const anyPort = `${hostname}:*`;
  return allowedHosts.some((host) => host === anyPort || (hasPort(host) ? host : `${host}:443`) === called);
}

/** Whether a host of `WEBHOOK_ALLOWED_HOSTS` names its port, or `*` for all. The last part of an IPv6 address is none. */
export const hasPort = (host: string): boolean => /:(\d+|\*)$/.test(host);

type Answer = { status: number; bodyEnded?: Promise<void> };

class NotPublic extends Error {}

/** Finds the addresses of a name once, and gives them to the connection only if all of them may be called. */
export function lookupWith(findAddresses: FindAddresses, options: Parameters<FindAddresses>[1]): LookupFunction {
  return (hostname, { all }, callback) => {
    const use = (found: string[]) => {
      const [first] = found;
      if (!first || !(options.isInternal || found.every(isPublicAddress)))
        return callback(new NotPublic('The address is not on the internet.'), '');
      const addresses = found.map((address) => ({ address, family: isIP(address) }));
      return all ? callback(null, addresses) : callback(null, first, isIP(first));
    };
    findAddresses(hostname, options).then(use, (error) => callback(error, ''));
  };
}

/**
 * Reads a short body, so that the connection can be used again, and closes the connection otherwise. The next message waits for
 * its end: endless bodies would take a connection each.
 */
function discardBody(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  const timer = setTimeout(() => response.destroy(), LONGEST_BODY_MILLISECONDS);
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) response.destroy();
  });
  // The status is known already.
  response.on('error', () => undefined);
  return new Promise((resolve) => {
    response.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
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
  if (error instanceof UnknownHost) return error.message;
  if (code === 'ECONNREFUSED') return 'The connection was refused.';
  if (/CERT|ERR_TLS|SIGNATURE|ISSUER|EPROTO|ERR_SSL/.test(code))
    return 'The TLS connection failed; check its certificate.';
  return 'The connection failed.';
}
