import { BlockList, isIP, isIPv6 } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

const WILDCARD = new BlockList();
WILDCARD.addAddress('0.0.0.0');
WILDCARD.addAddress('::', 'ipv6');

/** Whether only this machine can reach a service on this host; an unknown name counts as public. */
export const isLoopback = (host: string) => host.toLowerCase() === 'localhost' || isIn(LOOPBACK, host);

/** Whether a service is for this machine alone: nothing says that others reach it, also through a proxy. */
export const isForThisMachine = ({ HOST, PUBLIC_URL, TRUST_PROXY }: Reached): boolean =>
  isLoopback(HOST) && TRUST_PROXY === false && (!PUBLIC_URL || isLoopback(hostnameOf(PUBLIC_URL)));
type Reached = { HOST: string; PUBLIC_URL?: string | undefined; TRUST_PROXY: unknown };

/** An IPv6 address without its brackets. */
export const hostnameOf = (url: string) => new URL(url).hostname.replace(/^\[|\]$/g, '');

/** Whether it stands for all addresses of the machine. */
export const isWildcard = (host: string) => host === '0' || isIn(WILDCARD, host);

/** The address of a service without `PUBLIC_URL`; localhost for a wildcard. */
export function ownAddress(host: string, port: number): string {
  if (isWildcard(host)) return `http://localhost:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

const isIn = (list: BlockList, host: string) => isIP(host) !== 0 && list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4');
