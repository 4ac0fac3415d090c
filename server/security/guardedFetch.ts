import http from 'node:http';
import https from 'node:https';
import { type FindAddresses, makeAddressFinder } from './hostAddresses.ts';
import { addressProblem, isAllowedHost, lookupWith } from './outgoing.ts';

/** Like `fetch`, for documents of identity providers: within a time, of a bounded size, without redirects. */
export type GuardedFetch = (url: string, options?: Sent) => Promise<Response>;

type Sent = {
  method?: string | undefined;
  headers?: Record<string, string> | undefined;
  body?: string | Uint8Array | undefined;
  signal?: AbortSignal | undefined;
};

type Options = {
  /** Names of hosts with a port, which need be neither on the internet nor on https. */
  allowedHosts: readonly string[];
  findAddresses?: FindAddresses;
  timeoutMilliseconds?: number;
  mostBytes?: number;
};

/** Why an identity provider could not be asked, as a sentence for those who set it up. */
export class FetchRefused extends Error {}

export function makeGuardedFetch({
  allowedHosts,
  findAddresses = makeAddressFinder(),
  timeoutMilliseconds = 5000,
  mostBytes = 256 * 1024,
}: Options): GuardedFetch {
  return (address, { method = 'GET', headers = {}, body, signal: sent } = {}) => {
    const problem = addressProblem(address, allowedHosts);
    if (problem !== undefined) return Promise.reject(new FetchRefused(`The address ${problem}.`));
    const url = new URL(address);
    const timeout = AbortSignal.timeout(timeoutMilliseconds);
    const signal = sent ? AbortSignal.any([sent, timeout]) : timeout;
    return new Promise<Response>((resolve, reject) => {
      const fail = (error: Error) => reject(timeout.aborted ? new FetchRefused('There was no answer in time.') : error);
      const request = (url.protocol === 'https:' ? https : http).request(url, {
        method,
        headers: { 'accept-encoding': 'identity', ...headers },
        agent: false,
        lookup: lookupWith(findAddresses, { isInternal: isAllowedHost(url, allowedHosts), signal }),
        signal,
      });
      request.on('error', fail);
      request.on('upgrade', (_, socket) => socket.destroy(new FetchRefused('It switched to another protocol.')));
      request.on('response', (response) => {
        const { statusCode: status = 0 } = response;
        if (status < 200 || (status >= 300 && status < 400))
          return void request.destroy(new FetchRefused(`It answered ${status}: redirects are not followed.`));
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          chunks.push(chunk);
          if (bytes > mostBytes) request.destroy(new FetchRefused(`Its answer has more than ${mostBytes} bytes.`));
        });
        response.on('error', fail);
        response.on('end', () => {
          const type = response.headers['content-type'];
          const content = status === 204 ? null : new Uint8Array(Buffer.concat(chunks));
          resolve(new Response(content, { status, headers: type ? { 'content-type': type } : {} }));
        });
      });
      request.end(body);
    });
  };
}
